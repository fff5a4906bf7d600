"""Tokens that end an answer, from all places in which a model's folder names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from mlx_backends.models.broken_file_advice import fetch_again


def end_tokens(path: Path, config: Mapping[str, Any]) -> list[int]:
    """Return the tokens that end an answer by the settings in the folder ``path``, whose ``config.json`` is ``config``.

    These are those of ``generation_config.json`` and of ``config.json``; where neither names any, those of ``text_config``,
    which transformers otherwise fills with defaults. Raises ModelError where a file cannot be read.
    """
    file = path / "generation_config.json"
    try:
        settings = read_json_file(file) if file.is_file() else {}
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{file} cannot be read as JSON; {fetch_again(file)}.") from error
    ends = [*_ends(settings), *_ends(config)] or _ends(config.get("text_config"))
    return list(dict.fromkeys(ends))


def _ends(settings: Any) -> list[int]:
    ends = settings.get("eos_token_id") if isinstance(settings, Mapping) else None
    return [end for end in (ends if isinstance(ends, list) else [ends]) if type(end) is int]
