"""Tokenizers that inflate texts are refused; those of published models are not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import ModelError
from mlx_backends.models.tokenizer_limits import MAX_SPECIAL_TOKENS, check_tokenizer, panics_as_errors

SPACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
BACK = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
TWICE = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}


def charsmap(longest: int) -> dict[str, Any]:
    body = (8).to_bytes(4, "little") + bytes(8) + b"a\0" + b"e" * longest + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(body).decode()}


def template(pieces: int, ids: int) -> dict[str, Any]:
    piece = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    special = {"<s>": {"id": "<s>", "ids": [1] * ids, "tokens": ["<s>"] * ids}}
    return {"type": "TemplateProcessing", "single": [piece] * pieces, "pair": [], "special_tokens": special}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(steps)}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"normalizer": None, "decoder": {"type": "ByteLevel"}},
        {"normalizer": sequence({"type": "Prepend", "prepend": "\u2581"}, SPACE), "decoder": sequence(BACK)},
        {"normalizer": sequence({"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "})},
        {"normalizer": sequence(charsmap(36), {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})},
        {"post_processor": template(2, 1)},
    ],
)
def test_published_tokenizers_are_accepted(parts: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({**parts, "model": {"vocab": {"a": 0}}}))
    check_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "parts",
    [
        {"normalizer": sequence(*[TWICE] * 40)},
        {"pre_tokenizer": sequence(sequence(*[TWICE] * 20), sequence(*[TWICE] * 20))},
        {"decoder": {"type": "Sequence", "decoders": [TWICE] * 40}},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "e" * 10**5}},
        {"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "e" * 10**5}},
        {"normalizer": charsmap(10**5)},
        {"normalizer": sequence(*[{"type": "NFC"}] * 1000)},
        {"post_processor": template(MAX_SPECIAL_TOKENS + 1, 1)},
        {"post_processor": template(1, MAX_SPECIAL_TOKENS + 1)},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "x"}},
    ],
)
def test_text_inflating_tokenizer_is_refused(parts: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({**parts, "model": {"vocab": {"a": 0}}}))
    with pytest.raises(ModelError):
        check_tokenizer(tmp_path)


@pytest.mark.parametrize("text", ["[]", "{", '{"normalizer":' * 5000 + "1" + "}" * 5000, '{"normalizer": [[["x"]]]}'])
def test_invalid_tokenizer_is_no_traceback(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    try:
        check_tokenizer(tmp_path)
    except ModelError:
        pass
    else:
        assert text.endswith("]}")


def test_backtracking_pattern_does_not_crash() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex("(?:[a-z ]|[a-z]|.)+(?!)"), "isolated")
    with pytest.raises(ModelError), panics_as_errors():
        split.pre_tokenize_str("How many apples were sold in the first quarter of the year?")
