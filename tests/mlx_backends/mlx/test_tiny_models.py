"""The tiny model that tests build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.errors import ModelError
from mlx_backends.models.model_discovery import inspect
from mlx_backends.models.weight_files import weights_digest
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


def test_tiny_model_is_reproducible(tmp_path: Path) -> None:
    digests = [
        weights_digest(build_tiny_vlm(tmp_path / str(number), TEXTS, seed=seed, quantise=True))
        for number, seed in enumerate((3, 3, 4))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_quantised_model_is_smaller(tiny: Path, tiny_4bit: Path) -> None:
    assert inspect(tiny_4bit).quantisation == "4-bit g64"
    assert inspect(tiny_4bit).weights_bytes < inspect(tiny).weights_bytes < 3_000_000


def test_tokenizer_round_trips_any_script(tiny: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tiny / "tokenizer.json"))
    text = "Größe: 図表 42 % 🙂\n\tdone"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.get_vocab_size() % 64 == 0


def test_model_folder_appears_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("tests.support.tiny_qwen3._weights", fail)
        with pytest.raises(OSError, match="full"):
            build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
    assert os.listdir(tmp_path) == []


def test_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(ModelError, match="exists already"):
        build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
