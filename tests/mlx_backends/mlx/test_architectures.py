"""Models whose templates, image tokens and processors differ from Qwen3-VL's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.vocabulary import Media, Text
from mlx_backends.engine_registry import load_backend
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support import tiny_models

BUILDERS = [tiny_models.lfm2_vl, tiny_models.qwen2_5_vl, tiny_models.internvl_chat]


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_images_at_any_position_are_answered_and_counted(
    build: Callable[[Path], Path], pictures: Pictures, tmp_path: Path
) -> None:
    backend = load_backend(str(build(tmp_path / "model")), pictures.path)
    a, b = pictures.noise(1, 64, 64), pictures.noise(2, 64, 64)
    text = answer(backend, request_of(Text("first second <|im_end|> <image>")))
    assert text.error is None
    counts = set()
    orders: list[tuple[Text | Media, ...]] = [
        (a, Text("first second")),
        (Text("first "), a, Text("second")),
        (Text("first second"), a),
    ]
    for parts in orders:
        got = answer(backend, request_of(*parts))
        assert got.error is None
        counts.add(got.prompt_tokens)
        again = answer(backend, request_of(*parts))
        assert again.tokens == got.tokens
    assert max(n for n in counts if n) - min(n for n in counts if n) <= 1  # a template's newline after an image
    two = answer(backend, request_of(Text("first "), a, Text(" then "), b, Text(" last")))
    assert two.error is None
    six = answer(backend, request_of(*(part for n in range(6) for part in (Text(f"{n}:"), pictures.noise(n, 64, 64)))))
    assert six.error is None
    assert (six.prompt_tokens or 0) > (two.prompt_tokens or 0) > max(n for n in counts if n)


def test_tiled_image_keeps_its_place(pictures: Pictures, tmp_path: Path) -> None:
    backend = load_backend(str(tiny_models.lfm2_vl(tmp_path / "model")), pictures.path)
    small, large = pictures.noise(1, 64, 64), pictures.noise(2, 300, 150)
    single = answer(backend, request_of(Text("see "), small, Text(" there")))
    tiled = answer(backend, request_of(Text("see "), large, Text(" there")))
    assert tiled.error is None
    assert (tiled.prompt_tokens or 0) > (single.prompt_tokens or 0) + 4


def test_prompt_truncated_by_the_processor_is_an_error(pictures: Pictures, tmp_path: Path) -> None:
    folder = tiny_models.internvl_chat(tmp_path / "model")
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "model_max_length": 40}))
    backend = load_backend(str(folder), pictures.path)
    short = answer(backend, request_of(pictures.noise(1), Text("short")))
    long = answer(backend, request_of(pictures.noise(1), Text("too long " * 40)))
    assert short.error is None
    assert long.finish_reason == "error"
    assert "it may be too long for the model" in (long.error or "")
