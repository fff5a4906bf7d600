"""Limits on what a tokenizer may make of a text, checked before any library loads it.

A tokenizer's file says how texts are rewritten before and after they are split. Forty steps that each write a letter twice make
terabytes of one word, in a library that nothing interrupts.
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

MOST_GROWTH = 10_000
"""Times that a text may become longer. The published tokenizers lengthen one three times or less, single characters more."""

MOST_STEPS = 100
MOST_SPECIAL = 1000
"""Special tokens that are put around a text."""

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")


def check_tokenizer(path: Path) -> None:
    """Raise ModelError where ``tokenizer.json`` in the folder ``path`` would make a text very much longer."""
    file = path / "tokenizer.json"
    if not file.is_file():
        return
    try:
        whole = json.loads(file.read_bytes())  # whose size is limited; most of it, the vocabulary, is not looked at
        for name in _PARTS:
            steps = list(_steps(whole.get(name)))
            if len(steps) > MOST_STEPS or math.prod(map(_growth, steps)) > MOST_GROWTH:
                raise ModelError(
                    f"{file} has more than {MOST_STEPS} steps, or steps that make a text more than {MOST_GROWTH:,} times as "
                    "long, and no published model has; do not use this model."
                )
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read as a tokenizer; fetch the model again.") from error


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raise ModelError for a panic of the tokenizers library, which is no Exception: of a pattern that tries too much, say."""
    try:
        yield
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise ModelError(f"its tokenizer failed on this text: {' '.join(str(error).split())[:200]}") from error


def _steps(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every step in a part of a tokenizer, those in sequences too."""
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
    """Return how many times as long a step makes a text of some length, at most."""
    match step:
        case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(content)} if pattern:
            return max(1.0, len(content) / len(pattern))
        case {"type": "Replace", "content": str(content)}:
            return 1.0 + len(content)  # a regular expression may match at every place
        case {"type": "Precompiled", "precompiled_charsmap": str(encoded)}:
            return float(_longest(base64.b64decode(encoded)))
        case {"type": "TemplateProcessing", "single": list(pieces)} if len(pieces) > MOST_SPECIAL:
            return math.inf
        case {"type": "TemplateProcessing", "special_tokens": Mapping() as special} if any(
            len(token["ids"]) > MOST_SPECIAL for token in special.values()
        ):
            return math.inf
    return 1.0


def _longest(charsmap: bytes) -> int:
    """Bytes of the longest text that SentencePiece's table of characters puts in the place of one."""
    start = 4 + int.from_bytes(charsmap[:4], "little")
    return max(1, *map(len, charsmap[start:].split(b"\0"))) if len(charsmap) > start else 1
