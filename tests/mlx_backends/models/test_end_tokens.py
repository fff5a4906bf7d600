"""The tokens that end an answer are those of every file that names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import ModelError
from mlx_backends.models.end_tokens import end_tokens


@pytest.mark.parametrize(
    ("generation", "config", "ends"),
    [
        (None, {"eos_token_id": 1}, [1]),
        (None, {"eos_token_id": [1, 2]}, [1, 2]),
        ({"eos_token_id": 7}, {"eos_token_id": [1, 2]}, [7, 1, 2]),
        ({"eos_token_id": [1, 7]}, {"eos_token_id": 1}, [1, 7]),
        (None, {"text_config": {"eos_token_id": [3]}}, [3]),
        (None, {"eos_token_id": 1, "text_config": {"eos_token_id": 2}}, [1]),  # transformers writes defaults there
        ({}, {"eos_token_id": None, "text_config": None}, []),
        ({"eos_token_id": "x"}, {"eos_token_id": True}, []),
    ],
)
def test_every_place_counts(tmp_path: Path, generation: Any, config: dict[str, Any], ends: list[int]) -> None:
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    assert end_tokens(tmp_path, config) == ends


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(ModelError, match="generation_config"):
        end_tokens(tmp_path, {})
