"""Descriptions of differences: prompts, tokens, images and pixels with one fault each, and shifted logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.parity.input_stages import image_difference, prompt_difference, token_difference
from app.parity.numerics_stage import compare_numerics, numerics_finding, replay, rounding_noise
from app.parity.output_stages import first_divergence
from app.parity.parity_diagnosis import root_causes, verdict_sentence
from app.parity.parity_stages import StageFinding, count_finding
from app.parity.pixel_differences import pixel_difference
from app.parity.probe_store import RefusedRequest, StoredProbes, load, save
from app.store.workspace import Workspace
from mlx_backends.core.engine_probe import Probe
from tests.support.runs import instances, make_run, says

IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
PROMPT = f"<|im_start|>user\nHere: {IMAGE}How many trams run?<|im_end|>\n<|im_start|>assistant\n"
SYSTEM = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
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
            "the system prompts differ: “helpful” in A, “careful” in B",
        ),
        (PROMPT, PROMPT.replace(IMAGE, ""), "A's prompt has 1 image, B's 0"),
        (
            PROMPT,
            PROMPT.replace(IMAGE, "").replace("user\n", f"user\n{IMAGE}"),
            "the images are at other places in the text",
        ),
        (PROMPT, PROMPT.replace("\n", "\n\n", 1), "only white space differs, after"),
        (PROMPT, PROMPT.replace("trams", "buses"), "A has “trams”, B “buses”, after"),
        (PROMPT, PROMPT.replace("<|im_start|>assistant\n", ""), "B lacks “<|im_start|>assistant”"),
    ],
)
def test_what_a_prompt_lacks_is_told(a: str, b: str, expected: str) -> None:
    assert prompt_difference(a, b).startswith(expected), prompt_difference(a, b)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_prompts_differ_in_words_exactly_where_they_differ(a: str, b: str) -> None:
    assert bool(prompt_difference(a, b)) == (a != b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1, 2, 3), (1, 2, 3), ""),
        ((9, 1, 2, 3), (1, 2, 3), "A begins with an extra token (9 “word 9”)"),
        ((1, *[7] * 64, 2), (1, *[7] * 16, 2), "an image takes 64 tokens in A and 16 in B: it is resized differently"),
        ((1, 2, 3), (1, 4, 3), "token 2 is 2 “word 2” in A and 4 “word 4” in B"),
        ((1, 2), (1, 2, 3), "token 3 is its end in A and 3 “word 3” in B"),
    ],
)
def test_the_first_other_token_is_told(a: tuple[int, ...], b: tuple[int, ...], expected: str) -> None:
    assert token_difference(a, b, lambda token: f"word {token}") == expected


def picture(seed: int = 0) -> np.ndarray[Any, Any]:
    """Pixels as a processor leaves them, (channels, height, width), of a picture that is smooth."""
    random = np.random.default_rng(seed)
    rough = random.uniform(-1, 1, (3, 8, 8))
    return np.kron(rough, np.ones((8, 8)))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x + 1e-7, ""),
        (lambda x: x + np.array([0.5, 0.4, 0.2])[:, None, None], "another image mean (B = A + (0.5, 0.4, 0.2))"),
        (lambda x: x * 2, "another standard deviation of the image (B = 2 A)"),
        (lambda x: x * 255, "pixels are rescaled in only one of the two (B = 255 A)"),
        (lambda x: x * 1.1 - 0.3, "another image mean or standard deviation (B = 1.1 A - 0.3)"),
        (lambda x: x[::-1], "the colour channels are in another order: BGR of A are B's"),
        (lambda x: x[:, ::2, ::2], "the image has another size: 3x64x64 values in A, 3x32x32 in B"),
        (lambda x: (x + np.roll(x, 1, axis=2)) / 2, "the picture is resized or filtered differently"),
        (lambda x: picture(1), "it is another picture"),
    ],
)
def test_what_pixels_are_to_others_is_told(change: Callable[[Any], Any], expected: str) -> None:
    x = picture()
    difference = pixel_difference(x, change(x))
    assert difference.startswith(expected), difference
    assert bool(difference) == bool(expected)


def test_a_mean_is_told_of_patches_in_which_processors_flatten_pictures() -> None:
    """Qwen's rows hold a patch's channels one after the other; LFM2's a pixel's."""
    shift = np.array([0.5, 0.4, 0.2])
    rows = np.random.default_rng(0).uniform(-1, 1, (20, 3 * 16))
    assert pixel_difference(rows, rows + np.repeat(shift, 16)).startswith(
        "another image mean (B = A + (0.5, 0.4, 0.2))"
    )
    assert pixel_difference(rows, rows + np.tile(shift, 16)).startswith("another image mean (B = A + (0.5, 0.4, 0.2))")


def probe(forced: tuple[int, ...] = (), logits: Any = None, images: tuple[str, ...] = ()) -> Probe:
    """Return a probe with these logits, of shape (tokens, vocabulary), and images known by their digests only."""
    values = np.zeros((0, 1)) if logits is None else np.asarray(logits, float)
    logprobs = values - np.log(np.exp(values).sum(-1, keepdims=True))
    top = tuple(tuple((int(t), float(row[t])) for t in np.argsort(-row)[:20]) for row in logprobs)
    answer_logprobs = tuple(float(row[token]) for row, token in zip(logprobs, forced, strict=True))
    stats = tuple((float(ord(image)), 1.0, 2.0) for image in images)
    return Probe("r#0", "p", (1,), images, stats, None, forced, top, answer_logprobs)


def test_images_in_another_order_are_told_from_other_images() -> None:
    a = probe(images=("x", "y", "z"))
    assert image_difference(a, probe(images=("x", "y", "z"))) == ""
    assert (
        image_difference(a, probe(images=("y", "x", "z")))
        == "the images are in another order: the first in A is the second in B"
    )
    assert image_difference(a, probe(images=("x", "y"))) == "A gets 3 images, B 2"
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
    assert (
        rounding_noise("fp32", "bf16 in fp32")
        == rounding_noise("4-bit g64 in fp32", "fp32")
        < rounding_noise("bf16", "fp32")
    )
    logits = np.random.default_rng(0).normal(0, 3, (5, 30))
    forced = tuple(int(row.argmax()) for row in logits)
    near = compare_numerics(
        [(probe(forced, logits), probe(forced, logits + np.random.default_rng(1).normal(0, 0.01, (5, 30))))]
    )
    assert numerics_finding(near, "the framework", rounding_noise("bf16")).status == "noise"
    assert numerics_finding(near, "the framework", rounding_noise("fp32")).status == "differs"
    assert numerics_finding(None, "the framework", 0.1).status == "unknown"


def test_an_answer_that_is_not_the_engines_own_is_found_but_not_a_near_tie() -> None:
    logits = np.zeros((3, 30))
    logits[:, 4], logits[:, 5] = 5.0, 4.999
    assert replay([probe((4, 4, 4), logits), probe((4, 5, 4), logits)], 0.01).other == 0
    replayed = replay([probe((4, 4, 4), logits), probe((4, 9, 9), logits)], 0.01)
    assert (replayed.answers, replayed.other, replayed.first) == (2, 1, "r#0, token 2")
    assert replayed.margin == pytest.approx(5.0)


def test_what_follows_from_another_difference_is_no_cause_of_its_own() -> None:
    prompt = StageFinding("prompt", "differs", "", "the system prompt is missing in B")
    tokens, numerics = (
        StageFinding("tokens", "differs", "", "token 1"),
        StageFinding("numerics", "differs", "", "4 bits"),
    )
    batching = StageFinding("batching", "differs", "", "2 of 8 answers")
    assert root_causes([prompt, tokens, numerics, batching]) == [prompt, batching]
    sentence = verdict_sentence([prompt, tokens, numerics, batching], "3 of 8 answers are the same.")
    assert sentence == (
        "A and B first differ at the prompt after the chat template: the system prompt is missing in B. "
        "They also differ at the batching of requests: 2 of 8 answers. 3 of 8 answers are the same."
    )
    assert verdict_sentence([replace(numerics, status="noise")], "All.") == (
        "A and B first differ at the logits for the same inputs, but only within rounding noise. All."
    )


def test_the_commonest_cause_is_the_one_that_is_named() -> None:
    finding = count_finding("pixels", ["", "a mean", "a mean", "a size"], "images")
    assert (finding.status, finding.cause) == ("differs", "a mean")
    assert finding.summary == "1 of 4 images are the same; 2 times: a mean; 1 other difference"
    assert count_finding("pixels", [], "images").status == "unknown"


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_two_answers_part_at_their_first_other_token(a: list[int], b: list[int]) -> None:
    at = first_divergence(a, b)
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
    stored = load(folder)
    assert stored is not None
    assert (stored.refused, stored.digests, [stored_probe.forced for stored_probe in stored.probes]) == (
        refused,
        {"c#0": "digest"},
        [(4,)],
    )
