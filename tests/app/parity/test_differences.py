"""How a difference is told: prompts, tokens, images and pixels with one thing wrong each, and logits that move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.parity.diagnosis import causes, verdict
from app.parity.inputs import image_difference, prompt_difference, token_difference
from app.parity.numerics import compare_numerics, noise_of, numerics_finding, replay
from app.parity.outputs import diverging
from app.parity.pixels import relation
from app.parity.probe_store import RefusedRequest, StoredProbes, load, save
from app.parity.stages import StageFinding, counted
from app.store.workspace import Workspace
from mlx_backends.core.probe import Probe
from tests.support.runs import instances, make_run, says

IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
PROMPT = f"<|im_start|>user\nHere: {IMAGE}How many trams run?<|im_end|>\n<|im_start|>assistant\n"
SYSTEM = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (SYSTEM + PROMPT, PROMPT, "the system prompt is missing in B (“You are a helpful assistant.”)"),
        (PROMPT, SYSTEM + PROMPT, "the system prompt is missing in A (“You are a helpful assistant.”)"),
        (
            "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHow many? [/INST]",
            "[INST] How many? [/INST]",
            "the system prompt is missing in B",
        ),
        (
            SYSTEM + PROMPT,
            SYSTEM.replace("helpful", "careful") + PROMPT,
            "the system prompt is another one: “helpful” in A, “careful” in B",
        ),
        (PROMPT, PROMPT.replace(IMAGE, ""), "A's prompt has 1 image, B's 0"),
        (
            PROMPT,
            PROMPT.replace(IMAGE, "").replace("user\n", f"user\n{IMAGE}"),
            "the images stand in other places among the texts",
        ),
        (PROMPT, PROMPT.replace("\n", "\n\n", 1), "white space alone, after"),
        (PROMPT, PROMPT.replace("trams", "buses"), "A has “trams”, B “buses”, after"),
        (PROMPT, PROMPT.replace("<|im_start|>assistant\n", ""), "B lacks “<|im_start|>assistant”"),
    ],
)
def test_what_a_prompt_lacks_is_told(a: str, b: str, said: str) -> None:
    assert prompt_difference(a, b).startswith(said), prompt_difference(a, b)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_prompts_differ_in_words_exactly_where_they_differ(a: str, b: str) -> None:
    assert bool(prompt_difference(a, b)) == (a != b)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ((1, 2, 3), (1, 2, 3), ""),
        ((9, 1, 2, 3), (1, 2, 3), "A begins with one token more (9 “word 9”)"),
        ((1, *[7] * 64, 2), (1, *[7] * 16, 2), "an image takes 64 tokens in A and 16 in B: it is sized otherwise"),
        ((1, 2, 3), (1, 4, 3), "token 2 is 2 “word 2” in A and 4 “word 4” in B"),
        ((1, 2), (1, 2, 3), "token 3 is its end in A and 3 “word 3” in B"),
    ],
)
def test_the_first_other_token_is_told(a: tuple[int, ...], b: tuple[int, ...], said: str) -> None:
    assert token_difference(a, b, lambda token: f"word {token}") == said


def picture(seed: int = 0) -> np.ndarray[Any, Any]:
    """Pixels as a processor leaves them, (channels, height, width), of a picture that is smooth."""
    random = np.random.default_rng(seed)
    rough = random.uniform(-1, 1, (3, 8, 8))
    return np.kron(rough, np.ones((8, 8)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x + 1e-7, ""),
        (lambda x: x + np.array([0.5, 0.4, 0.2])[:, None, None], "another image mean (B = A + (0.5, 0.4, 0.2))"),
        (lambda x: x * 2, "another standard deviation of the image (B = 2 A)"),
        (lambda x: x * 255, "pixels are rescaled in one of the two alone (B = 255 A)"),
        (lambda x: x * 1.1 - 0.3, "another image mean or standard deviation (B = 1.1 A - 0.3)"),
        (lambda x: x[::-1], "the colour channels come in another order: BGR of A are B's"),
        (lambda x: x[:, ::2, ::2], "the image has another size: 3x64x64 values in A, 3x32x32 in B"),
        (lambda x: (x + np.roll(x, 1, axis=2)) / 2, "the picture is resized or filtered otherwise"),
        (lambda x: picture(1), "it is another picture"),
    ],
)
def test_what_pixels_are_to_others_is_told(change: Callable[[Any], Any], said: str) -> None:
    x = picture()
    told = relation(x, change(x))
    assert told.startswith(said), told
    assert bool(told) == bool(said)


def test_a_mean_is_told_of_patches_in_which_processors_flatten_pictures() -> None:
    """Qwen's rows hold a patch's channels one after the other; LFM2's a pixel's."""
    shift = np.array([0.5, 0.4, 0.2])
    rows = np.random.default_rng(0).uniform(-1, 1, (20, 3 * 16))
    assert relation(rows, rows + np.repeat(shift, 16)).startswith("another image mean (B = A + (0.5, 0.4, 0.2))")
    assert relation(rows, rows + np.tile(shift, 16)).startswith("another image mean (B = A + (0.5, 0.4, 0.2))")


def probe(forced: tuple[int, ...] = (), logits: Any = None, images: tuple[str, ...] = ()) -> Probe:
    """A probe with these logits, (tokens, vocabulary), and images of which only the digests are known."""
    values = np.zeros((0, 1)) if logits is None else np.asarray(logits, float)
    logprobs = values - np.log(np.exp(values).sum(-1, keepdims=True))
    top = tuple(tuple((int(t), float(row[t])) for t in np.argsort(-row)[:20]) for row in logprobs)
    given = tuple(float(row[token]) for row, token in zip(logprobs, forced, strict=True))
    stats = tuple((float(hash(image) % 97), 1.0, 2.0) for image in images)
    return Probe("r#0", "p", (1,), images, stats, None, forced, top, given)


def test_images_in_another_order_are_told_from_other_images() -> None:
    a = probe(images=("x", "y", "z"))
    assert image_difference(a, probe(images=("x", "y", "z"))) == ""
    assert (
        image_difference(a, probe(images=("y", "x", "z")))
        == "the images come in another order: the first in A is the second in B"
    )
    assert image_difference(a, probe(images=("x", "y"))) == "A is shown 3 images, B 2"
    assert image_difference(a, probe(images=("x", "y", "w"))) == "", "other pixels are told with the pixels"


def test_logits_are_compared_up_to_a_shift() -> None:
    logits = np.random.default_rng(0).normal(0, 3, (5, 30))
    forced = tuple(int(row.argmax()) for row in logits)
    a = probe(forced, logits)
    shifted = compare_numerics([(a, probe(forced, logits + 7.0))])
    assert shifted is not None
    assert (shifted.positions, shifted.top_same) == (5, 5)
    assert shifted.moved == pytest.approx(0, abs=1e-9)
    assert shifted.kl == pytest.approx(0, abs=1e-9)
    other = logits.copy()
    other[2, forced[2]] -= 20
    moved = compare_numerics([(a, probe(forced, other))])
    assert moved is not None
    assert moved.top_same == 4
    best, second = np.sort(logits[2])[::-1][:2]
    assert moved.margin == pytest.approx(best - second)
    assert moved.kl > 0.1
    assert compare_numerics([(a, probe((1,), logits[:1]))]) is None, "other answers are no measure"


def test_what_is_rounding_depends_on_what_is_computed_in() -> None:
    assert noise_of("fp32", "bf16 in fp32") == noise_of("4-bit g64 in fp32", "fp32") < noise_of("bf16", "fp32")
    logits = np.random.default_rng(0).normal(0, 3, (5, 30))
    forced = tuple(int(row.argmax()) for row in logits)
    near = compare_numerics(
        [(probe(forced, logits), probe(forced, logits + np.random.default_rng(1).normal(0, 0.01, (5, 30))))]
    )
    assert numerics_finding(near, "the framework", noise_of("bf16")).found == "noise"
    assert numerics_finding(near, "the framework", noise_of("fp32")).found == "differs"
    assert numerics_finding(None, "the framework", 0.1).found == "unknown"


def test_an_answer_that_is_not_the_engines_own_is_found_but_not_a_near_tie() -> None:
    logits = np.zeros((3, 30))
    logits[:, 4], logits[:, 5] = 5.0, 4.999
    assert replay([probe((4, 4, 4), logits), probe((4, 5, 4), logits)], 0.01).other == 0
    found = replay([probe((4, 4, 4), logits), probe((4, 9, 9), logits)], 0.01)
    assert (found.answers, found.other, found.first) == (2, 1, "r#0, token 2")
    assert found.margin == pytest.approx(5.0)


def test_what_follows_from_another_difference_is_no_cause_of_its_own() -> None:
    prompt = StageFinding("prompt", "differs", "", "the system prompt is missing in B")
    tokens, numerics = (
        StageFinding("tokens", "differs", "", "token 1"),
        StageFinding("numerics", "differs", "", "4 bits"),
    )
    batching = StageFinding("batching", "differs", "", "2 of 8 answers")
    assert causes([prompt, tokens, numerics, batching]) == [prompt, batching]
    told = verdict([prompt, tokens, numerics, batching], "3 of 8 answers are the same.")
    assert told == (
        "A and B part at the prompt after the chat template: the system prompt is missing in B. "
        "Besides, at an answer alone and the answer in the run: 2 of 8 answers. 3 of 8 answers are the same."
    )
    assert verdict([replace(numerics, found="noise")], "All.") == (
        "A and B part at what the weights make of the same inputs, within the noise of rounding alone. All."
    )


def test_the_commonest_cause_is_the_one_that_is_named() -> None:
    found = counted("pixels", ["", "a mean", "a mean", "a size"], "images")
    assert (found.found, found.cause) == ("differs", "a mean")
    assert found.said == "1 of 4 images are the same; 2 times: a mean; 1 other difference"
    assert counted("pixels", [], "images").found == "unknown"


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_two_answers_part_at_their_first_other_token(a: list[int], b: list[int]) -> None:
    at = diverging(a, b)
    if at is None:
        assert a == b
    else:
        assert a[: at - 1] == b[: at - 1]
        assert a[at - 1 : at] != b[at - 1 : at]


def test_why_a_request_was_not_shown_is_kept_with_its_cause(tmp_path: Path) -> None:
    refused = {
        "a#0": RefusedRequest("the image 'x.png' is missing; put the file in its place.", lost=True),
        "b#0": RefusedRequest("no"),
    }
    folder = make_run(Workspace(tmp_path), "r", instances(1), says("12"))
    save(folder, StoredProbes({"engine": "mlx"}, (probe((4,), np.zeros((1, 30))),), {"c#0": "digest"}, refused=refused))
    found = load(folder)
    assert found is not None
    assert (found.refused, found.digests, [each.forced for each in found.probes]) == (
        refused,
        {"c#0": "digest"},
        [(4,)],
    )
