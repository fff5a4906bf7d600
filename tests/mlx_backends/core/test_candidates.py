"""Candidates beside an open answer: scored as continuations of one prompt, equal in every mode and in both engines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.system.project_paths import ASSETS
from benchmarks.cmc_bench.cmc_prompts import parts
from benchmarks.vocabulary import Candidates, Decoding, Generation, Media, Request, Text
from mlx_backends.base import no_media
from mlx_backends.core.loglikelihood import words_before
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.lm_backend import LMBackend
from mlx_backends.mlx.mode_choice import BATCHED_SHARED, SEQUENTIAL_SHARED
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support.fp32 import in_fp32
from tests.support.in_torch import in_torch, needs_torch
from tests.support.scores import scores_of
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm

VALUES = ("forty-three", "the image says")
FORM = Candidates(VALUES, "The sources disagree.")
WORDS = (*VALUES, FORM.abstention)
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_fp32(build_tiny_vlm(tmp_path_factory.mktemp("fp32") / "model", TEXTS, quantise=False))


def questions(pictures: Pictures, form: Candidates | None = FORM, count: int = 6) -> list[Request]:
    images = [pictures.noise(1), pictures.noise(2)]
    prompts = [(Text("Which?"),), (images[0], Text("Which?")), (images[1], Text("or"), images[0], Text("which?"))]
    return [
        replace(request_of(*prompts[n % 3]), instance_id=str(n), form=form, decoding=Decoding(max_tokens=5))
        for n in range(count)
    ]


def generations(backend: VLMBackend, requests: Sequence[Request]) -> dict[str, Generation]:
    """Answer requests, as many at a time as the backend takes."""
    waiting, done = list(requests), dict[str, Generation]()
    while len(done) < len(requests):
        while waiting and backend._in_flight < backend.capacity:
            backend.submit(waiting.pop(0))
        done |= {generation.request_id: generation for generation in backend.step()}
    assert {generation.error for generation in done.values()} == {None}
    return done


def expect_same(first: dict[str, Generation], second: dict[str, Generation]) -> None:
    assert first.keys() == second.keys()
    for name, generation in first.items():
        assert (generation.text, generation.tokens) == (second[name].text, second[name].tokens)
        assert generation.finish_reason == second[name].finish_reason
        assert np.allclose(scores_of(generation), scores_of(second[name]), atol=TOLERANCE)


@pytest.fixture(scope="module")
def scored(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pictures, dict[str, Generation]]:
    pictures = Pictures(tmp_path_factory.mktemp("pictures"))
    backend = load_backend(str(model), pictures.path)
    assert isinstance(backend, VLMBackend)
    result = generations(backend, questions(pictures))
    backend.close()
    return pictures, result


@pytest.mark.slow
def test_scores_are_those_of_forcing_and_change_no_answer(
    model: Path, scored: tuple[Pictures, dict[str, Generation]]
) -> None:
    pictures, result = scored
    backend = load_backend(str(model), pictures.path)
    assert isinstance(backend, VLMBackend)
    plain = generations(backend, questions(pictures, None))
    for request in questions(pictures)[:3]:
        generation = result[request.id]
        assert (generation.text, generation.tokens) == (plain[request.id].text, plain[request.id].tokens)
        stopped = generation.finish_reason == "stop"
        own = generation.tokens[:-1] if stopped else generation.tokens
        sequences = [backend._tokenizer.encode(word, add_special_tokens=False) for word in WORDS]
        by_probe = [sum(backend.probe(request.unscored, tokens).logprobs) for tokens in (*sequences, own)]
        assert np.allclose(scores_of(generation), by_probe, atol=TOLERANCE)
    backend.close()


@pytest.mark.parametrize("width", [1, 8])
def test_one_prompt_and_its_images_are_computed_once(
    width: int, model: Path, scored: tuple[Pictures, dict[str, Generation]]
) -> None:
    pictures, result = scored
    backend = load_backend(str(model), pictures.path)
    assert isinstance(backend, VLMBackend)
    backend.width = width
    requests = questions(pictures)
    proof = backend.choose_mode(requests)
    assert proof is not None
    assert proof.way == (SEQUENTIAL_SHARED if width == 1 else BATCHED_SHARED)
    expect_same(result, generations(backend, requests))
    reuse = backend.reuse
    assert reuse is not None
    assert reuse.prompts == len(requests) * (1 + len(WORDS))
    # Each row computes the last token of its prompt again; nothing else is computed twice.
    assert reuse.distinct_tokens <= reuse.computed_tokens <= reuse.distinct_tokens + reuse.prompts
    assert reuse.computed_tokens < reuse.prompt_tokens / 3
    assert reuse.encoded + reuse.from_disk == reuse.distinct_images == 2
    backend.close()


def test_a_value_without_tokens_has_no_score(model: Path, pictures: Pictures) -> None:
    backend = load_backend(str(model), pictures.path)
    form = Candidates(("", "same"), "same")
    generation = answer(backend, replace(questions(pictures)[0], form=form))
    assert generation.error is None
    assert generation.scores[0] is None
    assert generation.scores[1] == generation.scores[2] is not None
    backend.close()


@pytest.mark.slow
def test_values_are_scored_where_the_answer_states_one() -> None:
    chart = ASSETS / "demo" / "held_out" / "cmc-bench" / "charts" / "000.png"
    backend = load_backend(str(ASSETS / "demo" / "model-bf16"), lambda media: chart)
    image = Media(hashlib.sha256(chart.read_bytes()).hexdigest(), ".png")
    request = request_of(*parts("paper", "What is the value of kale?", image, None))
    plain = answer(backend, request)
    assert (plain.text, plain.error) == ("kale: 43", None), "the value is not the beginning of its answer"
    generation = answer(backend, replace(request, form=Candidates(("43", "68"), "I cannot tell.")))
    shown, other, abstention, own = scores_of(generation)
    assert shown == pytest.approx(own, abs=1e-4)
    assert other < shown - 5
    assert abstention < other
    backend.close()


@pytest.mark.parametrize(
    ("values", "text", "before"),
    [
        (("43", "68"), "The chart shows 43, not 68.", "The chart shows "),
        (("43", "68"), "68", ""),
        (("4", "68"), "It is 43.", ""),
        (("Red car", ""), "I see a red car", "I see a "),
        (("", " "), "anything", ""),
        (("a(b", "x"), "is a(b", "is "),
    ],
)
def test_words_before_the_value_that_is_stated_first(values: tuple[str, str], text: str, before: str) -> None:
    assert words_before(values, text) == before


def test_an_engine_without_scores_refuses(tmp_path: Path) -> None:
    backend = load_backend(str(build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)), no_media)
    assert isinstance(backend, LMBackend)
    generation = answer(backend, replace(request_of(Text("Which?")), form=FORM))
    assert generation.finish_reason == "error"
    assert "--score" in (generation.error or "")
    backend.close()


@needs_torch
@pytest.mark.parametrize("prove", [False, True])
def test_pytorch_scores_match(prove: bool, model: Path, scored: tuple[Pictures, dict[str, Generation]]) -> None:
    pictures, result = scored
    expect_same(result, in_torch(model, questions(pictures), pictures.path, prove=prove).answers)
