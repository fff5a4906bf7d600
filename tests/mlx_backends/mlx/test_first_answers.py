"""The first answers as the evidence of the checks: nothing changes by being observed, and every fault is still detected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from benchmarks.vocabulary import Decoding, Generation, Media, Message, Request, Text
from mlx_backends.core.batch_invariance import SEQUENTIAL, BatchInvariance
from mlx_backends.core.expected_time import ExpectedTime
from mlx_backends.mlx.mode_choice import BATCHED_SHARED, SEQUENTIAL_SHARED
from mlx_backends.mlx.prefix_cache import PrefixCache
from mlx_backends.mlx.vision.vision_cache import CachedVisionTower
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.mlx_backends.conftest import Pictures, answer
from tests.mlx_backends.mlx.test_batched_answers import loaded, tokens
from tests.support.benchmark_requests import answers


@pytest.fixture
def backend(pictures: Pictures, tmp_path: Any) -> VLMBackend:
    return loaded("qwen3_vl", tmp_path / "model", pictures.path)


def asked(images: Sequence[Media | None], siblings: int = 4) -> list[Request]:
    """Requests of 6 tokens, some ``siblings`` for each image, or without one."""
    return [
        Request(
            f"{number}-{sibling}",
            0,
            (Message("user", (*([] if image is None else [image]), Text(f"What is bar {sibling}? {number}"))),),
            Decoding(max_tokens=6),
        )
        for number, image in enumerate(images)
        for sibling in range(siblings)
    ]


def run(
    backend: VLMBackend, requests: Sequence[Request], total: int | None = None
) -> tuple[BatchInvariance | None, dict[str, Generation]]:
    """Answer as a run does: the first request, those that the check compares, and the others in the mode that passes."""
    backend.observe(requests[:1], requests)
    given = [answer(backend, requests[0])]
    result = None
    if backend.is_worth_checking(requests, total or len(requests)):
        missing = [request for request in backend.references if backend.observed(request) is None]
        backend.observe(missing, requests)
        given += [answer(backend, request) for request in requests if request.id in {item.id for item in missing}]
        result = backend.choose_mode(requests)
    done = {generation.request_id: generation for generation in given}
    return result, done | answers(backend, [request for request in requests if request.id not in done])


def expecting(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(ExpectedTime, "best", mode)


@pytest.mark.parametrize(("mode", "way"), [("shared", SEQUENTIAL_SHARED), ("batched", BATCHED_SHARED)])
@pytest.mark.parametrize(
    "kind", ["qwen3_vl", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("lfm2_vl", "qwen2_5_vl"))]
)
def test_checked_modes_give_the_sequential_answers(
    kind: str, mode: str, way: str, pictures: Pictures, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = loaded(kind, tmp_path / "model", pictures.path)
    requests = asked([pictures.noise(number) for number in range(3)])
    expected = tokens(answers(backend, requests))
    expecting(monkeypatch, mode)
    result, given = run(backend, requests, total=24)
    assert result is not None
    assert (result.way, result.failed) == (way, {})
    assert result.cases == (2 if mode == "shared" else 5)
    assert tokens(given) == expected


def test_what_a_check_has_read_is_not_read_again(
    backend: VLMBackend, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked([pictures.noise(1)], 6)
    expecting(monkeypatch, "shared")
    run(backend, requests)
    assert backend.reuse is not None
    assert (
        backend.reuse.computed_tokens <= backend.reuse.distinct_tokens + 2
    )  # the last token of a prompt that is continued
    assert backend.reuse.encoded == backend.reuse.distinct_images == 1


def test_an_observed_answer_has_the_logits_of_the_check(backend: VLMBackend, pictures: Pictures) -> None:
    request = asked([pictures.noise(1)])[0]
    backend.observe([request])
    answer(backend, request)
    observed, case = backend.observed(request), backend._teacher_forcing.case(request)
    assert observed is not None
    assert list(observed.tokens) == list(case.tokens)
    np.testing.assert_array_equal(observed.logits, case.logits)
    backend.use_sequential_mode()
    assert backend.observed(request) is None, "another run has other answers"


def perturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes that depend on what follows them, as in a model whose attention is not causal."""
    longest = PrefixCache.longest

    def wrong(self: PrefixCache, content: Any) -> Any:
        length, cache = longest(self, content)
        for entry in cache or ():
            entry.keys = entry.keys + 0.5 * mx.random.normal(entry.keys.shape, key=mx.random.key(1))
        return length, cache

    monkeypatch.setattr(PrefixCache, "longest", wrong)


def mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of the first picture for all others."""
    encode, first = CachedVisionTower._encode, list[Any]()

    def wrong(self: CachedVisionTower, images: Any, *arguments: Any, **named: Any) -> Any:
        first.append(encode(self, images, *arguments, **named))
        return first[0]

    monkeypatch.setattr(CachedVisionTower, "_encode", wrong)


@pytest.mark.parametrize("fault", [perturbed, mixed_up])
def test_faulty_sharing_is_detected_by_the_answers_given(
    fault: Any, backend: VLMBackend, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked([pictures.noise(number) for number in range(3)])
    expected = tokens(answers(backend, requests))
    expecting(monkeypatch, "shared")
    fault(monkeypatch)
    result, given = run(backend, requests, total=24)
    assert result is not None
    assert result.way == SEQUENTIAL
    assert "of an answer was another one" in result.failed[SEQUENTIAL_SHARED]
    assert tokens(given) == expected


@pytest.mark.parametrize("kind", ["one prompt", "without pictures", "equal pictures", "one picture a prompt"])
@pytest.mark.parametrize("mode", [None, "shared", "batched"])
def test_unusual_prompts_are_answered_as_ever(
    kind: str, mode: str | None, backend: VLMBackend, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = {
        "one prompt": asked([pictures.noise(1)], 1),
        "without pictures": asked([None, None]),
        "equal pictures": asked([pictures.noise(1)] * 2),
        "one picture a prompt": asked([pictures.noise(number) for number in range(5)], 1),
    }[kind]
    expected = tokens(answers(backend, requests))
    if mode is not None:
        expecting(monkeypatch, mode)
    _, given = run(backend, requests)
    assert tokens(given) == expected


def test_an_empty_first_answer_is_a_reference(
    backend: VLMBackend, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked([pictures.noise(1)])
    first = int(backend.first_logits(requests[0]).argmax())
    backend._model.config.eos_token_id = [first]
    backend._tokenizer.stopping_criteria.reset([first])
    expected = tokens(answers(backend, requests))
    assert expected[requests[0].id][:2] == ((first,), "")
    for mode in ("shared", "batched"):
        backend.use_sequential_mode()
        expecting(monkeypatch, mode)
        _, given = run(backend, requests)
        assert tokens(given) == expected
