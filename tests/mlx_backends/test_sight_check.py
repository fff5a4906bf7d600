"""The sight check on tiny real models, with the faults that it must find injected into them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.vocabulary import Request, Text
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.vision.image_guard import guard_image_features
from mlx_backends.mlx.vlm_backend import VLMBackend
from mlx_backends.sight_check import ReplaceableMedia, SightCheck, check_sight, sight_requests
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support import tiny_models
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm

FAMILIES = [
    "qwen3_vl",
    "lfm2_vl",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("qwen2_5_vl", "internvl_chat", "gemma4")),
]


@pytest.fixture(scope="module", params=FAMILIES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / str(request.param)
    if request.param == "qwen3_vl":
        return build_tiny_vlm(folder, TEXTS, quantise=False)
    built: Path = getattr(tiny_models, request.param)(folder)
    return built


def loaded(model: Path, pictures: Pictures) -> tuple[VLMBackend, ReplaceableMedia]:
    media = ReplaceableMedia(pictures.path)
    backend = load_backend(str(model), media)
    assert isinstance(backend, VLMBackend)
    return backend, media


def requests(pictures: Pictures) -> list[Request]:
    first, second = pictures.noise(1, 96, 64), pictures.noise(2, 96, 64)
    return [
        request_of(Text("none")),
        request_of(Text("What is "), first, Text("?")),
        request_of(first, Text(" or "), second, Text("?")),
    ]


def checked(backend: VLMBackend, media: ReplaceableMedia, pictures: Pictures, *, observed: bool = False) -> SightCheck:
    """Return the result; ``observed`` compares with the answers to the requests, which are given before."""
    selected = sight_requests(requests(pictures))
    if observed:
        backend.observe(selected, requests(pictures))
        given = [answer(backend, request) for request in selected]
        assert [backend.observed(request) is None for request in selected] == [item.error is not None for item in given]
    result = check_sight(backend, media, selected)
    assert result is not None
    return result


@pytest.mark.slow
@pytest.mark.parametrize("observed", [False, True])
def test_model_that_sees_passes(model: Path, observed: bool, pictures: Pictures) -> None:
    result = checked(*loaded(model, pictures), pictures, observed=observed)
    assert (result.problem, result.requests, result.images) == ("", 2, 3)
    assert result.repeated <= (1e-4 if observed else 0)
    assert result.changed > 100 * result.repeated


def test_first_answer_that_is_empty_is_compared_as_any_other(pictures: Pictures, tmp_path: Path) -> None:
    backend, media = loaded(build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False), pictures)
    request = requests(pictures)[1]
    first = int(backend.first_logits(request).argmax())
    backend._model.config.eos_token_id = [first]
    backend._tokenizer.stopping_criteria.reset([first])
    backend.observe([request], [request])
    generation = answer(backend, request)
    assert (generation.text, generation.tokens, generation.finish_reason) == ("", (first,), "stop")
    assert backend.observed(request) is not None
    result = check_sight(backend, media, [request])
    assert result is not None
    assert (result.problem, result.images) == ("", 1)


def test_picture_that_is_its_own_inverted_mirror_image_is_replaced_by_a_blank_one(
    pictures: Pictures, tmp_path: Path
) -> None:
    backend, media = loaded(build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False), pictures)
    picture, data = Image.new("RGB", (96, 64), "black"), io.BytesIO()
    picture.paste((255, 255, 255), (48, 0, 96, 64))
    picture.save(data, "PNG")
    image = pictures.file(data.getvalue())
    result = check_sight(backend, media, [request_of(Text("What is "), image, Text("?"))])
    assert result is not None
    assert result.problem == ""


@pytest.mark.slow
@pytest.mark.parametrize("blind", [False, True])
def test_model_that_attends_to_images_beside_its_tokens_passes_unless_it_is_blind(
    blind: bool, pictures: Pictures, tmp_path: Path
) -> None:
    backend, media = loaded(tiny_models.mllama(tmp_path / "mllama"), pictures)
    embed = backend._model.get_input_embeddings
    if blind:  # as if every image were the first
        pixels: list[Any] = []

        def first(ids: Any, own: Any = None, **others: Any) -> Any:
            pixels.extend([own] if own is not None and not pixels else [])
            return embed(ids, own if own is None else pixels[0], **others)

        backend._model.get_input_embeddings = first
    result = check_sight(backend, media, sight_requests([request_of(Text("What is "), pictures.noise(1), Text("?"))]))
    assert result is not None
    assert (result.problem != "") == blind


Embed = Callable[..., Any]
Fault = Callable[[Embed, Any, Any, Any], Any]
"""A faulty ``get_input_embeddings``: of the real one, which positions are images, token ids, pixels and what else there is."""


def _changed(output: Any, embeddings: Any) -> Any:
    output.inputs_embeds = embeddings
    return output


def blind(embed: Embed, is_image: Any, ids: Any, pixels: Any, **others: Any) -> Any:
    return _changed(embed(ids, pixels, **others), embed(ids).inputs_embeds)


def half_blind(embed: Embed, is_image: Any, ids: Any, pixels: Any, **others: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    positions = np.flatnonzero(is_image)
    lost = np.zeros(len(is_image), dtype=bool)
    lost[positions[len(positions) // 2 :]] = True
    output, texts = embed(ids, pixels, **others), embed(ids).inputs_embeds
    return _changed(output, mx.where(mx.array(lost)[None, :, None], texts, output.inputs_embeds))


def constant(embed: Embed, is_image: Any, ids: Any, pixels: Any, **others: Any) -> Any:
    return embed(ids, pixels * 0, **others)


def unrepeatable(embed: Embed, is_image: Any, ids: Any, pixels: Any, **others: Any) -> Any:
    import mlx.core as mx

    return embed(ids, pixels + mx.random.normal(pixels.shape, key=mx.random.key(next(_SEEDS))), **others)


_SEEDS = iter(range(10_000))


def not_finite(embed: Embed, is_image: Any, ids: Any, pixels: Any, **others: Any) -> Any:
    return embed(ids, pixels * float("nan"), **others)


def swapped(embed: Embed, is_image: Any, ids: Any, pixels: Any, **others: Any) -> Any:
    return _moved(embed(ids, pixels, **others), is_image, lambda first, second: (second, first))


def first_image_twice(embed: Embed, is_image: Any, ids: Any, pixels: Any, **others: Any) -> Any:
    return _moved(embed(ids, pixels, **others), is_image, lambda first, second: (first, first))


def _moved(output: Any, is_image: Any, move: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    """``output`` with the rows of its two images, of equal size, moved; as it is with one image."""
    import mlx.core as mx
    import numpy as np

    positions = np.flatnonzero(is_image)
    text_between = np.flatnonzero(np.diff(positions) > 3)
    if not len(text_between):
        return output
    first, second = np.split(positions, [text_between[0] + 1])
    rows = np.array(output.inputs_embeds.astype(mx.float32))
    rows[0, first], rows[0, second] = move(rows[0, first].copy(), rows[0, second].copy())
    return _changed(output, mx.array(rows).astype(output.inputs_embeds.dtype))


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("fault", [blind, half_blind, constant, unrepeatable, not_finite, swapped, first_image_twice])
def test_faulty_model_fails(model: Path, fault: Any, observed: bool, pictures: Pictures) -> None:
    import numpy as np

    backend, media = loaded(model, pictures)
    tokens = backend._preprocessor.image_tokens()
    assert tokens
    embed = type(backend._model).get_input_embeddings.__get__(backend._model)

    def faulty(input_ids: Any = None, pixel_values: Any = None, **others: Any) -> Any:
        if pixel_values is None:
            return embed(input_ids, **others)
        is_image = np.isin(np.array(input_ids)[0], sorted(tokens))
        return fault(embed, is_image, input_ids, pixel_values, **others)

    backend._model.get_input_embeddings = faulty
    guard_image_features(backend._model, tokens)
    result = checked(backend, media, pictures, observed=observed)
    assert result.problem
    if fault in (blind, half_blind, not_finite):  # which an answer shows by itself
        generation = answer(backend, requests(pictures)[1])
        assert generation.error is not None
        assert "image positions" in generation.error
