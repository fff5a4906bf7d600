"""The cache of processed images: a picture is processed once, and cached tensors equal fresh ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import MediaError
from benchmarks.vocabulary import Decoding, Mark, Request, Text
from mlx_backends.core.image_inputs import ProcessedImages, keyed_image
from mlx_backends.core.lru_cache import LRUCache
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.mlx_backends.conftest import Pictures as Folder
from tests.mlx_backends.conftest import request_of
from tests.support import tiny_models
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


def loaded(kind: str, folder: Path, pictures: Folder) -> VLMBackend:
    if kind == "qwen3_vl":
        build_tiny_vlm(folder, TEXTS, quantise=False)
    else:
        getattr(tiny_models, kind)(folder)
    backend = load_backend(str(folder), pictures.path)
    assert isinstance(backend, VLMBackend)
    return backend


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory, pictures: Folder) -> VLMBackend:
    return loaded("qwen3_vl", tmp_path_factory.mktemp("qwen") / "model", pictures)


def image_requests(pictures: Folder) -> list[Request]:
    """One picture under two texts, smaller, and marked; two in both orders, of different sizes; one of them twice."""
    first, second = pictures.noise(1, 96, 64), pictures.noise(2, 64, 128)
    marked = replace(first, marks=(Mark("1", (4.0, 4.0, 40.0, 40.0)),))
    small = Decoding(max_tokens=4, max_pixels=48 * 48)
    return [
        request_of(Text("What is it?"), first),
        request_of(first, Text("Something else.")),
        request_of(first, Text("How small?"), decoding=small),
        request_of(marked, Text("What is marked?")),
        request_of(first, Text(" and "), second),
        request_of(second, Text(" and "), first),
        request_of(first, Text(" and "), second, Text(" and "), first),
        request_of(Text("No picture at all.")),
    ]


def same(value: Any, other: Any) -> bool:
    if isinstance(value, mx.array):
        return value.dtype == other.dtype and value.shape == other.shape and bool(mx.array_equal(value, other))
    return bool(value == other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen3_vl", "qwen2_5_vl", "lfm2_vl", "internvl_chat"])
def test_cached_inputs_equal_fresh_inputs(kind: str, pictures: Folder, tmp_path: Path) -> None:
    backend = loaded(kind, tmp_path / "model", pictures)
    preparer = backend._preprocessor
    asks = 0
    for _ in range(2):
        for request in image_requests(pictures):
            _, fresh = preparer.tensors(request)
            cached = preparer.inputs(request).tensors
            assert cached.keys() == fresh.keys()
            assert all(same(cached[name], fresh[name]) for name in fresh), request
        asks = asks or preparer._processed_images.processed
        assert preparer._processed_images.processed == asks, "the second time nothing is processed"
    images = [preparer.inputs(request).images for request in image_requests(pictures)]
    assert len(set(images)) == len(images) - 1, "only two of them show the same"
    if kind.startswith("qwen"):
        assert asks == 4, "as many as there are pictures: two, one of them smaller and marked too"
    backend.close()


def test_processor_is_restored_after_an_error(qwen: VLMBackend, pictures: Folder) -> None:
    processor = qwen._processor.image_processor
    data = pictures.path(pictures.noise(5)).read_bytes()
    torn = request_of(pictures.file(data[: len(data) // 2]), Text("What?"))
    for _ in range(2):
        with pytest.raises(MediaError, match="truncated or damaged"):
            qwen._preprocessor.inputs(torn)
        assert qwen._processor.image_processor is processor


def test_changed_file_is_never_served_from_the_cache(qwen: VLMBackend, pictures: Folder) -> None:
    media, other = pictures.noise(21, 64, 64), pictures.noise(22, 64, 64)
    request = request_of(media, Text("What?"))
    qwen._preprocessor.inputs(request)
    right = pictures.path(media).read_bytes()
    pictures.path(media).write_bytes(pictures.path(other).read_bytes())
    with pytest.raises(MediaError, match="not the one that was built"):
        qwen._preprocessor.inputs(request)
    pictures.path(media).unlink()
    with pytest.raises(MediaError, match="missing"):
        qwen._preprocessor.inputs(request)
    pictures.path(media).write_bytes(right)
    assert same(
        qwen._preprocessor.inputs(request).tensors["pixel_values"],
        qwen._preprocessor.tensors(request)[1]["pixel_values"],
    )


class Careless:
    """Processor that modifies its input images and its own output tensors."""

    class image_processor:  # noqa: N801
        calls = 0

        @classmethod
        def preprocess(cls, images: list[Image.Image], scale: float = 1.0) -> dict[str, Any]:
            cls.calls += 1
            for image in images:
                image.putpixel((0, 0), (9, 9, 9))
            return {"pixel_values": np.stack([np.asarray(image, np.float32) * scale for image in images])}

    def __call__(self, images: Any, **how: Any) -> Any:
        processed = self.image_processor.preprocess(images, **how)
        processed["pixel_values"] += 1
        return processed["pixel_values"]


def test_cached_tensors_are_read_only_and_keyed_by_settings(pictures: Folder) -> None:
    processor = Careless()
    cache = ProcessedImages(processor)
    media = pictures.noise(31, 16, 16)
    calls = Careless.image_processor.calls
    outputs = []
    for how in ({}, {}, {"scale": 2.0}, {}):
        with cache.showing([keyed_image(pictures.path(media), media, None)]) as images:
            outputs.append(processor(images, **how))
    assert Careless.image_processor.calls == calls + 2
    assert all(np.array_equal(outputs[0], outputs[n]) for n in (1, 3))
    assert np.array_equal(outputs[2] - 1, (outputs[0] - 1) * 2)


def test_image_modified_by_the_processor_is_not_cached(pictures: Folder) -> None:
    processor = Careless()
    cache = ProcessedImages(processor)
    media = pictures.noise(32, 16, 16)
    for turn in range(3):
        with cache.showing([keyed_image(pictures.path(media), media, None)]) as images:
            turned = images[0].rotate(90 * turn)
            pixels = processor([turned])
            assert np.array_equal(pixels[0], np.asarray(turned, np.float32) + 1)
    assert cache.processed == 0


def test_cache_is_bounded_and_evicts_least_recently_used() -> None:
    cache: LRUCache[str] = LRUCache(10)
    asks: list[str] = []

    def get(key: str, size: int) -> None:
        before = cache.misses
        assert cache.get(key, lambda: key.upper(), lambda value: size) == key.upper()
        asks.extend([key] * (cache.misses - before))

    for key in "abab":
        get(key, 5)
    get("c", 5)  # b was used later than a
    get("b", 5)
    get("a", 5)
    assert asks == ["a", "b", "c", "a"]
    get("large", 50)
    get("large", 50)
    get("a", 5)
    assert asks[4:] == ["large", "a"]
