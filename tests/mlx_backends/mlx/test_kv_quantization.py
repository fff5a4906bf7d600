"""A quantised key-value cache: the same answers in every mode, less memory, and refusals of models that cannot have one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Request, Text
from mlx_backends.engine_registry import check_kv_bits, load_backend
from mlx_backends.mlx.kv_quantization import QuantizedCache, QuantizedTextCache, make_text_cache, make_vlm_cache
from mlx_backends.mlx.mlx_load import load, load_text
from mlx_backends.mlx.mode_choice import BATCHED_SHARED
from mlx_backends.mlx.vlm_backend import VLMBackend
from mlx_backends.models.model_discovery import read_config
from mlx_backends.models.request_memory import cache_bytes
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support.benchmark_requests import RequestFactory, answers
from tests.support.text_architectures import text_model
from tests.support.tiny_models import TEXTS
from tests.support.wide_heads import build_lm, build_vlm


@pytest.fixture(scope="module")
def vlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_vlm(tmp_path_factory.mktemp("vlm") / "model", TEXTS)


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lm(tmp_path_factory.mktemp("lm") / "model", TEXTS)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> tuple[RequestFactory, list[Request]]:
    factory = RequestFactory(tmp_path_factory.mktemp("asked"))
    return factory, [*factory.clash(1), *factory.cmc_bench(1)]


@pytest.fixture(scope="module", params=[pytest.param(8, marks=pytest.mark.slow), 4])
def backend(
    request: pytest.FixtureRequest, vlm: Path, questions: tuple[RequestFactory, list[Request]]
) -> Iterator[VLMBackend]:
    loaded = load_backend(str(vlm), questions[0].path, kv_bits=request.param)
    assert isinstance(loaded, VLMBackend)
    yield loaded
    loaded.close()


@pytest.mark.slow
def test_answers_in_batches_with_shared_prefixes_equal_sequential_ones(
    backend: VLMBackend, questions: tuple[RequestFactory, list[Request]]
) -> None:
    _, requests = questions
    backend.use_sequential_mode()
    alone = {key: generation.tokens for key, generation in answers(backend, requests).items()}
    invariance = backend.choose_mode(requests)
    assert invariance is not None
    assert (invariance.way, invariance.failed) == (BATCHED_SHARED, {})
    batched = answers(backend, requests)
    assert {key: generation.tokens for key, generation in batched.items()} == alone
    assert not any(generation.error for generation in batched.values())


def test_prompts_are_read_from_the_quantised_cache_whatever_the_pieces(vlm: Path) -> None:
    """mlx-vlm's own ``kv_bits`` quantises after each piece, so that the pieces decide what attention reads."""
    model, _ = load(vlm)
    ids = (mx.arange(60) % 90 + 5)[None]
    embedded = {
        name: value for name, value in model.get_input_embeddings(ids, None).to_dict().items() if value is not None
    }
    logits = []
    for pieces in ((60,), (7, 20, 33)):
        cache, start = make_vlm_cache(model.language_model, 4), 0
        for size in pieces:
            inputs = {"inputs_embeds": embedded["inputs_embeds"][:, start : start + size]}
            output = model.language_model(ids[:, start : start + size], cache=cache, **inputs)
            start += size
        logits.append(output.logits[0, -1])
    assert mx.abs(logits[0] - logits[1]).max() < 1e-3 * mx.std(logits[0])


def test_quantisation_changes_what_the_model_computes_and_fewer_bits_change_more(vlm: Path, pictures: Pictures) -> None:
    request = request_of(pictures.noise(1), Text("What is the value of the bar?"))
    logits = {}
    for bits in (None, 8, 4):
        loaded = load_backend(str(vlm), pictures.path, kv_bits=bits)
        assert isinstance(loaded, VLMBackend)
        logits[bits] = loaded._teacher_forcing.forced(request, [7, 9, 11])
        loaded.close()
    shifts = {bits: abs(logits[bits] - logits[None]).max() for bits in (8, 4)}
    assert 0 < shifts[8] < shifts[4]


@pytest.mark.parametrize(("bits", "bound"), [(8, 0.32), (4, 0.2)])
def test_a_quantised_cache_takes_as_much_memory_as_estimated(vlm: Path, bits: int, bound: float) -> None:
    model, _ = load(vlm)
    config, size = read_config(vlm), {}
    for kind in (None, bits):
        cache = make_vlm_cache(model.language_model, kind)
        model.language_model(mx.ones((1, 256), dtype=mx.int32), cache=cache)
        mx.eval([entry.state for entry in cache])
        size[kind] = sum(entry.nbytes for entry in cache)
        assert size[kind] == cache_bytes(config, 256, kind)
    assert size[bits] < bound * size[None]


def test_a_text_only_model_answers_one_request_at_a_time(lm: Path, pictures: Pictures) -> None:
    loaded = load_backend(str(lm), pictures.path, kv_bits=8)
    assert (loaded.capacity, loaded.max_capacity) == (1, 1)
    request = request_of(Text("What is the value of the bar?"))
    assert loaded.choose_mode([request] * 4) is None
    first, second = answer(loaded, request), answer(loaded, request)
    assert first.error is None
    assert first.tokens == second.tokens
    loaded.close()


def test_layers_with_a_window_or_without_attention_keep_their_cache() -> None:
    for kind, kept in (("gemma3_text", "RotatingKVCache"), ("lfm2", "ArraysCache")):
        kinds = {type(entry).__name__ for entry in make_text_cache(text_model(kind), 8)}
        assert kinds == {kept, QuantizedTextCache.__name__}


def test_a_model_with_narrow_heads_is_refused_before_it_is_loaded(tiny: Path) -> None:
    with pytest.raises(ModelError, match="16 numbers"):
        check_kv_bits(str(tiny), 8)
    check_kv_bits(str(tiny), None)


@pytest.mark.parametrize("model", ["policy:random", "openai:gpt-4o", "imported:x", "cuda:some/model"])
def test_other_engines_refuse(model: str, pictures: Pictures) -> None:
    with pytest.raises(ModelError, match="kv_bits"):
        check_kv_bits(model, 8)
    with pytest.raises(ModelError, match="kv_bits"):
        load_backend(model, pictures.path, kv_bits=8)


@pytest.mark.parametrize("vision", [True, False])
def test_a_model_that_reads_the_quantised_cache_wrongly_is_refused(
    vision: bool, vlm: Path, lm: Path, monkeypatch: pytest.MonkeyPatch, pictures: Pictures
) -> None:
    kind: Any = QuantizedCache if vision else QuantizedTextCache
    update = kind.update_and_fetch

    def wrong(self: Any, keys: Any, values: Any) -> Any:
        return update(self, keys, -values)

    monkeypatch.setattr(kind, "update_and_fetch", wrong)
    with pytest.raises(ModelError, match="computes wrongly"):
        load_backend(str(vlm if vision else lm), pictures.path, kv_bits=4)


def test_a_model_whose_attention_fails_on_it_is_refused(
    lm: Path, monkeypatch: pytest.MonkeyPatch, pictures: Pictures
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise TypeError("'tuple' object has no attribute 'shape'")

    monkeypatch.setattr(QuantizedTextCache, "update_and_fetch", fails)
    with pytest.raises(ModelError, match="cannot answer with a quantised"):
        load_backend(str(lm), pictures.path, kv_bits=8)


def test_a_model_without_keys_and_values_is_refused() -> None:
    from mlx_backends.mlx.kv_quantization import check_quantized_cache

    class Tokenizer:
        def encode(self, text: str) -> list[int]:
            return list(range(10, 30))

    with pytest.raises(ModelError, match="no key-value cache"):
        check_quantized_cache("mamba", text_model("mamba"), Tokenizer(), has_vision=False)


def test_loading_text_models_finds_the_cache_of_the_library(lm: Path) -> None:
    model, _ = load_text(lm)
    assert all(isinstance(entry, QuantizedTextCache) for entry in make_text_cache(model, 4))
    assert not any(isinstance(entry, QuantizedTextCache) for entry in make_text_cache(model, None))
