"""Limits on how much a tokenizer may lengthen a text, checked before any library loads it.

A tokenizer's file defines how texts are rewritten before and after they are split. Forty steps that each write a letter twice
make terabytes of one word, in a library that nothing interrupts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.models.broken_file_advice import fetch_again

MAX_GROWTH = 10_000
"""Most times a text may become longer. Published tokenizers lengthen a text three times or less, single characters more."""

MAX_STEPS = 100
MAX_SPECIAL_TOKENS = 1000
"""Most special tokens added around a text."""

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")


def check_tokenizer(path: Path) -> dict[str, Any] | None:
    """Return ``tokenizer.json`` in the folder ``path``, None without one.

    Raises ModelError where it would lengthen a text beyond ``MAX_GROWTH``.
    """
    file = path / "tokenizer.json"
    if not file.is_file():
        return None
    try:
        settings: dict[str, Any] = json.loads(file.read_bytes())  # its size is limited already
        for name in _PARTS:
            steps = list(_steps(settings.get(name)))
            if len(steps) > MAX_STEPS or math.prod(map(_growth, steps)) > MAX_GROWTH:
                raise ModelError(
                    f"{file} has more than {MAX_STEPS} steps, or lengthens a text more than {MAX_GROWTH:,} times, "
                    "and no published model does; do not use this model."
                )
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read as a tokenizer; {fetch_again(file)}.") from error
    return settings


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raise ModelError for a panic of the tokenizers library, such as of a pattern that backtracks too much.

    Such a panic is no Exception.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise ModelError(f"its tokenizer failed on this text: {' '.join(str(error).split())[:200]}") from error


def _steps(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every step in a part of a tokenizer, including steps in sequences."""
    if isinstance(value, Mapping):
        if "type" in value:
            yield value
        for inner in value.values():
            yield from _steps(inner)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, Mapping | list):
                yield from _steps(inner)


def _growth(step: Mapping[str, Any]) -> float:
    """Return how many times as long a step can make a text."""
    match step:
        case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(content)} if pattern:
            return max(1.0, len(content) / len(pattern))
        case {"type": "Replace", "content": str(content)}:
            return 1.0 + len(content)  # a regular expression may match at every place
        case {"type": "Precompiled", "precompiled_charsmap": str(encoded)}:
            return float(_longest_replacement(base64.b64decode(encoded)))
        case {"type": "TemplateProcessing", "single": list(pieces)} if len(pieces) > MAX_SPECIAL_TOKENS:
            return math.inf
        case {"type": "TemplateProcessing", "special_tokens": Mapping() as special} if any(
            len(token["ids"]) > MAX_SPECIAL_TOKENS for token in special.values()
        ):
            return math.inf
    return 1.0


def _longest_replacement(charsmap: bytes) -> int:
    """Return the bytes of the longest replacement of one character in SentencePiece's table."""
    start = 4 + int.from_bytes(charsmap[:4], "little")
    return max(1, *map(len, charsmap[start:].split(b"\0"))) if len(charsmap) > start else 1
