"""Keys of a row, nested ones included: ``inputs.question`` reaches into the object ``inputs``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from benchmarks.rows.reader_types import Fields

_DEEPEST = 4
_MOST_KEYS = 200
_LONGEST_OBJECT = 1 << 20
"""The maximum length of a cell that is read as JSON, in characters; tables hold objects as their text."""


def plain_names(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return ``fields`` with stripped names in lower case."""
    return {str(name).strip().lower(): value for name, value in fields.items()}


def is_filled(value: object) -> bool:
    """Return whether a value is there: not null, NaN, blank or an empty list or object."""
    if isinstance(value, float):
        return not math.isnan(value)
    return bool(value.strip()) if isinstance(value, str) else value is not None and value not in ([], {}, b"")


def lookup(fields: Fields, key: str) -> Any:
    """Return the value of ``key``, a name as :func:`plain_names` writes it or several joined by dots; None without it.

    A name that contains the dots itself goes first.
    """
    if key in fields or "." not in key:
        return fields.get(key)
    dot = key.find(".")
    while dot >= 0:
        inner = _object(fields.get(key[:dot]))
        if inner is not None and (value := lookup(plain_names(inner), key[dot + 1 :])) is not None:
            return value
        dot = key.find(".", dot + 1)
    return None


def flat_fields(fields: Fields) -> dict[str, Any]:
    """Return the filled values of a row by dotted key, without the objects around them, up to a limit of keys."""
    flat: dict[str, Any] = {}
    _collect(fields, "", flat)
    return flat


def _collect(fields: Fields, prefix: str, flat: dict[str, Any]) -> None:
    for name, value in fields.items():
        inner = _object(value) if prefix.count(".") < _DEEPEST else None
        if inner:
            _collect(plain_names(inner), f"{prefix}{name}.", flat)
        elif len(flat) < _MOST_KEYS and name:
            flat[prefix + name] = value


def _object(value: Any) -> dict[str, Any] | None:
    """Return an object, or the one that a cell holds as JSON; None for other values."""
    if isinstance(value, str) and value[:1] == "{" and len(value) <= _LONGEST_OBJECT:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None
