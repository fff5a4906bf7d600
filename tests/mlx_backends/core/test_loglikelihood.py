"""The likeliest option: scored as the sum of its tokens' logprobs, the same in both engines, alone and with a shared prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Generation, Likelihood, Media, Request, Text
from mlx_backends.base import Backend
from mlx_backends.core.engine_probe import log_softmax
from mlx_backends.core.loglikelihood import score_options
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.lm_backend import LMBackend
from mlx_backends.mlx.mode_choice import SEQUENTIAL_SHARED
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support.fp32 import in_fp32
from tests.support.in_torch import in_torch, needs_torch
from tests.support.scores import scores_of
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm

WORDS = ("(A)", "(B)", "the image", "the image says", "Yes")


class Letters:
    """A tokenizer of one token a character."""

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return [ord(letter) - ord("A") for letter in text]


def test_score_is_the_sum_of_conditional_logprobs() -> None:
    probabilities = {(): [0.5, 0.3, 0.2], (0,): [0.1, 0.8, 0.1], (0, 1): [0.25, 0.25, 0.5]}
    asked_for: list[tuple[int, ...]] = []

    def forced_logits(sequences: Sequence[Sequence[int]]) -> list[Any]:
        asked_for.extend(map(tuple, sequences))
        return [np.log([probabilities[s[:n]] for n in range(len(s))]) for s in asked_for]

    scored = score_options(Likelihood(("A", "B", "ABC", "AB")), Letters(), forced_logits)
    assert np.allclose(np.exp(scored.scores), [0.5, 0.3, 0.5 * 0.8 * 0.5, 0.5 * 0.8])
    assert (scored.best, scored.tokens) == ("A", (0,))
    assert asked_for == [(0, 1, 2)], "one sequence tells of all of them"


def test_first_of_equal_scores_wins_and_empty_option_is_refused() -> None:
    def forced_logits(sequences: Sequence[Sequence[int]]) -> list[Any]:
        return [np.zeros((1, 3))]

    assert score_options(Likelihood(("B", "A")), Letters(), forced_logits).best == "B"
    with pytest.raises(ModelError, match="without text"):
        score_options(Likelihood(("A", "")), Letters(), forced_logits)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_fp32(build_tiny_vlm(tmp_path_factory.mktemp("fp32") / "model", TEXTS, quantise=False))


def questions(pictures: Pictures) -> list[Request]:
    form = Likelihood(WORDS)
    images: list[Media] = [pictures.noise(1), pictures.noise(2)]
    prompts = [(Text("Which?"),), (images[0], Text("Which?")), (images[1], Text("or"), images[0], Text("which?"))] * 3
    return [replace(request_of(*parts), instance_id=str(n), form=form) for n, parts in enumerate(prompts)]


def scored(backend: Backend, requests: list[Request]) -> dict[str, Generation]:
    generations = {request.id: answer(backend, request) for request in requests}
    assert {generation.error for generation in generations.values()} == {None}
    return generations


@pytest.mark.slow
def test_scores_match_forcing_each_option(model: Path, pictures: Pictures) -> None:
    backend = load_backend(str(model), pictures.path)
    assert isinstance(backend, VLMBackend)
    requests = questions(pictures)
    generations = scored(backend, requests)
    for request in requests[:3]:
        generation = generations[request.id]
        by_probe = []
        for word in WORDS:
            tokens = backend._tokenizer.encode(word, add_special_tokens=False)
            by_probe.append(sum(backend.probe(request, tokens).logprobs))
        assert np.allclose(scores_of(generation), by_probe, atol=1e-5)
        assert generation.text == WORDS[int(np.argmax(by_probe))]
        assert (generation.finish_reason, generation.completion_tokens) == ("stop", 0)
        assert generation.prompt_tokens
    assert len({generation.scores for generation in generations.values()}) == 3, "they depend on what is asked"
    backend.width = 1
    proof = backend.choose_mode(requests)
    assert proof is not None
    assert proof.way == SEQUENTIAL_SHARED
    shared = scored(backend, requests)
    reuse = backend.reuse
    assert reuse is not None
    assert (reuse.answers, reuse.distinct_images) == (len(requests), 2)
    assert reuse.distinct_tokens <= reuse.computed_tokens <= reuse.distinct_tokens + reuse.prompts < reuse.prompt_tokens
    assert (reuse.encoded, reuse.from_disk) == (2, 0), "once for all requests"
    for name, generation in generations.items():
        assert np.allclose(scores_of(generation), scores_of(shared[name]), atol=1e-4)
        assert generation.text == shared[name].text
    backend.close()


@needs_torch
def test_pytorch_scores_match(model: Path, pictures: Pictures) -> None:
    backend = load_backend(str(model), pictures.path)
    requests = questions(pictures)
    mine = scored(backend, requests)
    backend.close()
    for prove in (False, True):
        torch_results = in_torch(model, requests, pictures.path, prove=prove)
        for name, generation in mine.items():
            assert np.allclose(scores_of(generation), scores_of(torch_results.answers[name]), atol=1e-4)
            assert (generation.text, generation.tokens) == (
                torch_results.answers[name].text,
                torch_results.answers[name].tokens,
            )


def test_engine_without_scoring_is_refused(tmp_path: Path) -> None:
    from mlx_backends.base import no_media

    backend = load_backend(str(build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)), no_media)
    assert isinstance(backend, LMBackend)
    generation = answer(backend, replace(request_of(Text("Which?")), form=Likelihood(("A", "B"))))
    assert generation.finish_reason == "error"
    assert "--score" in (generation.error or "")
    backend.close()


def test_log_softmax_survives_large_logits() -> None:
    assert np.allclose(
        log_softmax(np.array([[1000.0, 1000.0, -1000.0]])), [[-np.log(2), -np.log(2), -2000 - np.log(2)]]
    )
