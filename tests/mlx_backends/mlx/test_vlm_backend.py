"""Requests to a real, tiny model through mlx-vlm."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.media import load_image
from benchmarks.vocabulary import Decoding, Generation, Mark, Media, Message, Request, Text
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.mlx_load import load
from tests.mlx_backends.conftest import GREEDY, SAMPLED, Pictures, answer, request_of

QUESTION = Text("What is the value of the bar? <|im_end|>")


class Reference:
    """mlx-vlm used directly on a folder, as its documentation shows it."""

    def __init__(self, folder: Path, pictures: Pictures) -> None:
        self.model, self.processor = load(folder)
        self._pictures = pictures

    def prepared(self, prompt: str, images: Sequence[Media]) -> list[int]:
        from mlx_vlm.utils import prepare_inputs

        inputs = prepare_inputs(self.processor, images=self._opened(images) or None, prompts=prompt)
        ids: list[int] = inputs["input_ids"].flatten().tolist()
        return ids

    def greedy(self, prompt: str, images: Sequence[Media]) -> tuple[int, ...]:
        from mlx_vlm import generate

        opened = self._opened(images) or None
        result: Any = generate(self.model, self.processor, prompt, opened, max_tokens=16, temperature=0.0)
        return tuple(result.token_ids)

    def _opened(self, images: Sequence[Media]) -> list[Any]:
        from PIL import Image

        return [Image.open(self._pictures.path(image)).convert("RGB") for image in images]


def put(*parts: Text | Media) -> str:
    """A user turn as the tiny model's template writes it."""
    body = "".join(p.text if isinstance(p, Text) else "<|vision_start|><|image_pad|><|vision_end|>" for p in parts)
    return f"<|im_start|>user\n{body}<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tiny", "tiny_4bit"])
def test_greedy_answers_match_mlx_vlm(kind: str, pictures: Pictures, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(kind)
    reference, backend = Reference(folder, pictures), load_backend(str(folder), pictures.path)
    a, b = pictures.noise(1), pictures.noise(2, 96, 48)
    asked_of_both: list[tuple[Text | Media, ...]] = [
        (Text("Only text."),),
        (a, Text("What is it?")),
        (Text("Before "), a, Text(" after.")),
        (Text("At the end: "), a),
        (Text("Two: "), a, Text(" and "), b, Text(" differ.")),
    ]
    for parts in asked_of_both:
        images = [part for part in parts if isinstance(part, Media)]
        got = answer(backend, request_of(*parts))
        assert got.error is None
        assert got.tokens == reference.greedy(put(*parts), images)
        assert got.prompt_tokens == len(reference.prepared(put(*parts), images))
        assert got.completion_tokens == len(got.tokens) <= 16


def test_image_and_its_position_change_the_answer(model: Backend, pictures: Pictures) -> None:
    a, b = pictures.noise(1), pictures.noise(2)
    first, two = Text("What does the first show? "), Text("And the second?")
    orders: list[tuple[Text | Media, ...]] = [
        (a, first, two),
        (first, a, two),
        (first, two, a),
        (a, first, b, two),
        (b, first, a, two),
        (b, first, two),
    ]
    answers = [answer(model, request_of(*order)).tokens for order in orders]
    assert len(set(answers)) == len(orders)


@pytest.mark.parametrize("before", ["", "One two three. ", "x" * 50])
def test_an_images_tokens_follow_the_text_before_it(
    before: str, tiny: Path, model: Backend, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlx_vlm.utils

    prepared: list[int] = []
    real = mlx_vlm.utils.prepare_inputs

    def spy(*arguments: Any, **named: Any) -> Any:
        inputs = real(*arguments, **named)
        prepared.extend(inputs["input_ids"].flatten().tolist())
        return inputs

    monkeypatch.setattr(mlx_vlm.utils, "prepare_inputs", spy)
    assert answer(model, request_of(Text(before), pictures.noise(1, 64, 64), Text("after"))).error is None
    tokenizer = load(tiny)[1].tokenizer
    head = tokenizer(f"<|im_start|>user\n{before}<|vision_start|>")["input_ids"]
    tail = tokenizer("<|vision_end|>after<|im_end|>\n<|im_start|>assistant\n")["input_ids"]
    image = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    assert prepared == [*head, *[image] * 4, *tail]  # 64 by 64 pixels in patches of 32


def test_six_images_keep_their_order(model: Backend, pictures: Pictures) -> None:
    images = [pictures.noise(seed, 64, 64) for seed in range(6)]
    forwards, backwards = (
        [part for number, image in enumerate(order) for part in (Text(f"{number}: "), image)]
        for order in (images, images[::-1])
    )
    first, second = answer(model, request_of(*forwards)), answer(model, request_of(*backwards))
    assert first.error is None
    assert first.prompt_tokens == second.prompt_tokens
    assert first.tokens != second.tokens


def test_system_and_earlier_turns_are_part_of_the_prompt(tiny: Path, model: Backend, pictures: Pictures) -> None:
    picture = pictures.noise(1)
    messages = (
        Message("system", (Text("Answer in one word."),)),
        Message("user", (picture, Text("What is it?"))),
        Message("assistant", (Text("A chart."),)),
        Message("user", (Text("And its value?"),)),
    )
    prompt = (
        "<|im_start|>system\nAnswer in one word.<|im_end|>\n"
        "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>What is it?<|im_end|>\n"
        "<|im_start|>assistant\nA chart.<|im_end|>\n"
        "<|im_start|>user\nAnd its value?<|im_end|>\n<|im_start|>assistant\n"
    )
    got = answer(model, Request("conversation", 0, messages, GREEDY))
    assert got.tokens == Reference(tiny, pictures).greedy(prompt, [picture])


@pytest.mark.slow
@pytest.mark.parametrize("decoding", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_answer_does_not_depend_on_earlier_requests(
    tiny: Path, model: Backend, pictures: Pictures, decoding: Decoding
) -> None:
    request = request_of(Text("Look: "), pictures.noise(1), Text(" What is it?"), decoding=decoding)
    fresh = load_backend(str(tiny), pictures.path)
    alone = answer(fresh, request)
    others = [
        request_of(
            Text("Look: "), pictures.noise(2), Text(" What is it?"), decoding=decoding
        ),  # as long, another image
        request_of(Text("No image at all."), decoding=SAMPLED),
        request_of(pictures.noise(1), pictures.noise(2), Text("Two.")),
    ]
    for other in others:
        assert answer(model, other).tokens != alone.tokens
        again = answer(model, request)
        assert (again.tokens, again.text) == (alone.tokens, alone.text)


@pytest.mark.slow
def test_marks_are_visible_and_second_stage_sampling_is_reproducible(model: Backend, pictures: Pictures) -> None:
    plain = pictures.noise(3, 160, 120)
    marked = replace(plain, marks=(Mark("brand logo", (10, 10, 90, 90)),))
    image = load_image(pictures.path(plain), None, marked.marks)
    data = io.BytesIO()
    image.save(data, "PNG")
    drawn = pictures.file(data.getvalue())
    decoding = Decoding(max_tokens=16, temperature=0.7, top_p=0.9)

    def second_stage(medium: Media, reasoning: str) -> Request:
        first, again = Message("user", (plain, Text("What?"))), Message("user", (medium, Text("What?")))
        return Request("instance", 1, (first, Message("assistant", (Text(reasoning),)), again), decoding)

    same = [answer(model, request_of(image, Text("What?"))).tokens for image in (marked, drawn, plain)]
    assert same[0] == same[1] != same[2]
    requests = [second_stage(marked, f"The logo. {number}") for number in range(3)]
    tokens = [answer(model, request).tokens for request in requests]
    assert [answer(model, request).tokens for request in reversed(requests)] == tokens[::-1]
    assert len(set(tokens)) == 3


def test_sampling_follows_seed_and_temperature(model: Backend) -> None:
    def sampled(**changed: Any) -> tuple[int, ...]:
        return answer(model, request_of(Text("Say anything."), decoding=replace(SAMPLED, **changed))).tokens

    assert sampled() == sampled()
    assert len({sampled(), sampled(seed=8), sampled(temperature=0.0)}) == 3
    assert sampled(top_p=1e-6) == sampled(temperature=0.0)


def test_sampling_is_not_disturbed_by_other_random_draws(model: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlx.core as mx

    request = request_of(Text("Say anything."), decoding=SAMPLED)
    expected = answer(model, request).tokens
    monkeypatch.setattr("mlx_backends.mlx.sequential_generation._SLICE_S", 0.0)
    model.submit(request)
    while not (done := model.step()):
        mx.eval(mx.random.uniform(shape=(3,)))
    assert done[0].tokens == expected


def test_answer_is_truncated_at_max_tokens(model: Backend) -> None:
    full = answer(model, request_of(Text("Count.")))
    for limit in (1, 5):
        cut = answer(model, request_of(Text("Count."), decoding=Decoding(max_tokens=limit)))
        assert (cut.finish_reason, cut.completion_tokens) == ("length", limit)
        assert cut.tokens == full.tokens[:limit]


def test_finished_answer_has_finish_reason_stop(tiny: Path, pictures: Pictures, tmp_path: Path, model: Backend) -> None:
    request = request_of(Text("Count."), decoding=Decoding(max_tokens=40))
    full = answer(model, request)
    position = max(full.tokens.index(token) for token in full.tokens)
    folder = ending_with(tiny, tmp_path / "ends", full.tokens[position])
    got = answer(load_backend(str(folder), pictures.path), request)
    assert got.finish_reason == "stop"
    assert got.tokens == full.tokens[: position + 1]
    assert got.completion_tokens == position + 1
    assert full.text.startswith(got.text.removesuffix("\ufffd"))


def ending_with(tiny: Path, folder: Path, token: int) -> Path:
    """A copy of the model that ends an answer with ``token``."""
    shutil.copytree(tiny, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": [token, *config["eos_token_id"]]}))
    return folder


def test_generation_reports_its_metrics(model: Backend, pictures: Pictures) -> None:
    got = answer(model, request_of(pictures.noise(1), QUESTION))
    assert got.prefill_s is not None
    assert got.decode_s is not None
    assert got.peak_memory is not None
    assert 0 < got.prefill_s < 5
    assert 0 < got.decode_s < 5
    assert 100_000 < got.peak_memory < 1_000_000_000


def test_peak_memory_is_per_request(model: Backend, pictures: Pictures) -> None:
    short, long = request_of(Text("Short.")), request_of(*(pictures.noise(seed, 250, 250) for seed in range(4)))
    first, large, last = (answer(model, request).peak_memory or 0 for request in (short, long, short))
    assert 0 < first < large
    assert 0 < last < large


def test_max_pixels_bounds_an_image(model: Backend, pictures: Pictures) -> None:
    picture = pictures.noise(3, 256, 256)
    full = answer(model, request_of(picture)).prompt_tokens
    bounded = answer(model, request_of(picture, decoding=replace(GREEDY, max_pixels=64 * 64))).prompt_tokens
    assert full is not None
    assert bounded is not None
    assert full - bounded == (256 // 32) ** 2 - (64 // 32) ** 2


@pytest.mark.parametrize("data", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + bytes(40), "truncated"])
def test_broken_image_fails_and_the_next_request_is_answered(
    model: Backend, pictures: Pictures, data: bytes | str
) -> None:
    good = pictures.noise(1)
    content = pictures.path(good).read_bytes()[:500] if isinstance(data, str) else data
    before = answer(model, request_of(good, QUESTION))
    got = answer(model, request_of(pictures.file(content), QUESTION))
    assert (got.finish_reason, got.text, got.tokens) == ("error", "", ())
    assert got.error
    assert "\n" not in got.error
    assert answer(model, request_of(good, QUESTION)).tokens == before.tokens


def test_a_missing_image_is_an_error(model: Backend) -> None:
    got = answer(model, request_of(Media("0" * 64, ".png"), QUESTION))
    assert got.finish_reason == "error"
    assert got.error


def test_unsupported_modality_is_an_error(model: Backend) -> None:
    got = answer(model, request_of(Media("0" * 64, ".wav", "audio"), QUESTION))
    assert got.error == "this model cannot be given this prompt: no audio can be put into its prompt."


def test_a_prompt_longer_than_the_models_context_fails_and_the_next_is_answered(
    tiny: Path, model: Backend, pictures: Pictures, tmp_path: Path
) -> None:
    """The tiny model has M-RoPE, so that an image does not count however large it is."""
    folder = shutil.copytree(tiny, tmp_path / "short")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = 60
    (folder / "config.json").write_text(json.dumps(config))
    short = load_backend(str(folder), pictures.path)
    long = answer(short, request_of(Text("What is the value of the bar? " * 20)))
    assert (long.finish_reason, long.text, long.tokens) == ("error", "", ())
    assert "60 tokens" in str(long.error)
    large = request_of(pictures.noise(1, 512, 512), QUESTION)
    got = answer(short, large)
    assert got.prompt_tokens is not None
    assert got.prompt_tokens > 60
    assert got.tokens == answer(model, large).tokens
    short.close()


def test_lone_surrogates_and_nul_are_accepted(model: Backend) -> None:
    assert answer(model, request_of(Text("broken \ud800 text \0 here"))).error is None


def test_cancelled_request_yields_nothing(model: Backend, pictures: Pictures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlx_backends.mlx.sequential_generation._SLICE_S", 0.0)  # one token a step
    request = request_of(pictures.noise(1), QUESTION)
    expected = answer(model, request).tokens
    long = request_of(pictures.noise(2), QUESTION, decoding=Decoding(max_tokens=5000))
    for steps in (0, 1, 3):
        model.submit(long)
        assert [model.step() for _ in range(steps)] == [[]] * steps
        model.cancel("somebody else's")
        model.cancel(long.id)
        assert model.step() == []
        assert answer(model, request).tokens == expected


def test_cancelling_closes_the_generator_of_mlx_vlm(model: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    ended: list[bool] = []

    def stream(*_: object, **__: object) -> Any:
        try:
            while True:
                yield SimpleNamespace(finish_reason=None, is_draft=False, token=1)
        finally:
            ended.append(True)

    held = stream()
    monkeypatch.setattr("mlx_vlm.stream_generate", lambda *_, **__: held)
    request = request_of(Text("Hello."))
    model.submit(request)
    assert model.step() == []
    model.cancel(request.id)
    assert ended == [True]


def test_stream_without_finish_reason_is_an_error(model: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlx_vlm.stream_generate", lambda *_, **__: (_ for _ in ()))
    assert (
        answer(model, request_of(Text("Hello."))).error == "RuntimeError: mlx-vlm ended the answer without saying why"
    )


@pytest.mark.slow
def test_unknown_tokens_do_not_end_an_answer(tiny: Path, pictures: Pictures, tmp_path: Path, model: Backend) -> None:
    folder = shutil.copytree(tiny, tmp_path / "short-vocabulary")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    known = [token for token in tokenizer["added_tokens"] if not token["content"].startswith("<extra_")]
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "added_tokens": known}))
    backend = load_backend(str(folder), pictures.path)
    limit = 1 + max(token["id"] for token in known)
    beyond = 0
    for number in range(20):
        request = request_of(Text(f"Question {number}"))
        got = answer(backend, request)
        assert got.error is None
        assert got.tokens == answer(model, request).tokens
        beyond += any(token >= limit for token in got.tokens)
    assert beyond


def test_sequential_backend_takes_one_request(model: Backend) -> None:
    request = request_of(Text("Hello."))
    model.submit(request)
    with pytest.raises(RuntimeError, match="one request at a time"):
        model.submit(request)
    model.cancel(request.id)


def test_interrupt_while_answering_frees_the_model(model: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    request = request_of(Text("Hello."))
    with monkeypatch.context() as patch:
        patch.setattr("mlx_backends.core.prompts.chat_prompt.Prompter.prompt", interrupt)
        model.submit(request)
        with pytest.raises(KeyboardInterrupt):
            model.step()
    assert answer(model, request).error is None


def test_any_exception_while_answering_is_one_line(model: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("first\nsecond \x1b[31m line")

    with monkeypatch.context() as patch:
        patch.setattr("mlx_vlm.utils.prepare_inputs", fail)
        got = answer(model, request_of(Text("Hello.")))
    assert got.error == "ValueError: first second ?[31m line"


def test_closed_model_refuses_requests(tiny: Path, pictures: Pictures) -> None:
    backend = load_backend(str(tiny), pictures.path)
    backend.submit(request_of(Text("Hello.")))
    backend.step()
    backend.close()
    with pytest.raises(RuntimeError, match="closed"):
        backend.submit(request_of(Text("Hello.")))


def test_text_keeps_think_tags_and_drops_control_tokens(
    tiny: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace

    backend = load_backend(str(tiny), pictures.path)
    tokenizer = load(tiny)[1].tokenizer
    half = tokenizer.encode("é")[:1]
    tokens = [*tokenizer.encode("<think>no</think> 7"), *tokenizer.encode("<|vision_start|>"), *half, 0]

    def stream(*_: object, **__: object) -> Any:
        yield SimpleNamespace(finish_reason="stop", token_ids=tokens, prompt_tokens=3)

    monkeypatch.setattr("mlx_vlm.stream_generate", stream)
    got: Generation = answer(backend, request_of(Text("Hello.")))
    assert got.text == "<think>no</think> 7\ufffd"
    assert got.tokens == tuple(tokens)
