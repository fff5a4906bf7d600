"""Tiny models, pictures, and a cache folder of our own."""

from __future__ import annotations

import os

os.environ["MLX_DISABLE_COMPILE"] = "1"  # before MLX is imported: compiling costs seconds and changes nothing

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.vocabulary import Decoding, Generation, Media, Message, Part, Request
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


@pytest.fixture(scope="package", autouse=True)
def user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Isolate the tests from the user's cache."""
    folder = tmp_path_factory.mktemp("user-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("platformdirs.user_cache_path", lambda name: folder / name)
        yield folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen3-VL in bf16."""
    return build_tiny_vlm(tmp_path_factory.mktemp("models") / "tiny-bf16", TEXTS, quantise=False)


@pytest.fixture(scope="session")
def tiny_4bit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same one in 4 bits."""
    return build_tiny_vlm(tmp_path_factory.mktemp("models") / "tiny-4bit", TEXTS, quantise=True)


class Pictures:
    """A folder of pictures, named as a build names its media."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, media: Media) -> Path:
        return self._folder / media.name

    def noise(self, seed: int, width: int = 80, height: int = 64) -> Media:
        """A picture of random pixels, a different one for every seed."""
        import io

        import numpy as np
        from PIL import Image

        pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
        data = io.BytesIO()
        Image.fromarray(pixels).save(data, "PNG")
        return self.file(data.getvalue())

    def file(self, data: bytes) -> Media:
        """Any bytes as a picture's file."""
        media = Media(hashlib.sha256(data).hexdigest(), ".png")
        self.path(media).write_bytes(data)
        return media


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Pictures:
    return Pictures(tmp_path_factory.mktemp("media"))


@pytest.fixture(scope="session")
def model(tiny: Path, pictures: Pictures) -> Iterator[Backend]:
    """The tiny bf16 model, loaded."""
    backend = load_backend(str(tiny), pictures.path)
    yield backend
    backend.close()


GREEDY = Decoding(max_tokens=16)
SAMPLED = Decoding(max_tokens=16, temperature=0.7, top_p=0.9, seed=7)


def request_of(*parts: Part, decoding: Decoding = GREEDY) -> Request:
    """A request of one user turn."""
    return Request("instance", 0, (Message("user", parts),), decoding)


def answer(backend: Backend, request: Request) -> Generation:
    """The one generation that ``request`` yields."""
    backend.submit(request)
    done: Sequence[Generation] = ()
    for _ in range(1000):
        done = backend.step()
        if done:
            break
    (generation,) = done
    assert generation.request_id == request.id
    return generation
