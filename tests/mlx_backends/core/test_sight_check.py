"""The sight check on tiny real models, with the faults that it must find injected into them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.vocabulary import Text
from mlx_backends.core.sight_check import ReplaceableMedia, SightCheck, check_sight, sight_requests
from mlx_backends.mlx.vlm import VLMBackend
from mlx_backends.registry import load_backend
from tests.mlx_backends.conftest import Pictures, answer, asked

FAMILIES = ["qwen3_vl", "lfm2_vl", "qwen2_5_vl", "internvl_chat", "gemma4"]


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest, tiny_model: Callable[[str], Path]) -> Path:
    return tiny_model(request.param)


def loaded(model: Path, pictures: Pictures) -> tuple[VLMBackend, ReplaceableMedia]:
    media = ReplaceableMedia(pictures.path)
    backend = load_backend(str(model), media)
    assert isinstance(backend, VLMBackend)
    return backend, media


def requests(pictures: Pictures) -> list[Any]:
    one, two = pictures.noise(1, 96, 64), pictures.noise(2, 96, 64)
    return [
        asked(Text("no image")),
        asked(Text("What is "), one, Text("?")),
        asked(one, Text(" or "), two, Text("?"), instance="two"),
    ]


def checked(backend: VLMBackend, media: ReplaceableMedia, pictures: Pictures) -> SightCheck:
    result = check_sight(backend, media, sight_requests(requests(pictures)))
    assert result is not None
    return result


def test_model_that_sees_passes(model: Path, pictures: Pictures) -> None:
    result = checked(*loaded(model, pictures), pictures)
    assert (result.problem, result.requests, result.images, result.repeated) == ("", 2, 3, 0)
    assert result.changed > 0
