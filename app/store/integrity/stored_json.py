"""JSON of a run's database, parsed and checked like any input."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.errors import StoreError

_DEPTH = 32
TYPE_WORDS = {str: "text", int: "whole number", float: "number", bool: "yes or no", bytes: "sequence of bytes"}


class StoredObject(dict[str, Any]):
    """A JSON object of a run's database; a missing key raises StoreError, since the database is at fault."""

    def __missing__(self, key: str) -> Any:
        raise StoreError(
            f"a stored value of this run lacks {key!r}; the run is damaged, run `rashomon doctor RUN` to find out where."
        )


def parse_json(text: Any, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of a JSON text; objects are :class:`StoredObject` unless there is a ``decoder``."""
    if not isinstance(text, str):
        raise ValueError("it is no text")
    try:
        value, end = (decoder or _OBJECTS).raw_decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if end != len(text):
        raise ValueError("more follows its end")
    if decoder is None and not _is_shallow(value):
        raise ValueError("it is nested too deeply")
    return _visible(value) if "\\" in text and _SURROGATE.search(text) else value


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _number(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word[:20]} is no number")
    return value


_SURROGATE = re.compile(r"\\u[dD]")
PLAIN = json.JSONDecoder(parse_constant=_no_number, parse_float=_number)
_OBJECTS = json.JSONDecoder(parse_constant=_no_number, parse_float=_number, object_hook=StoredObject)


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def _visible(value: Any) -> Any:
    """Return the value with lone surrogates, which cannot be written, as visible escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_visible(inner) for inner in value]
    if isinstance(value, dict):
        return type(value)({_visible(key): _visible(inner) for key, inner in value.items()})
    return value


def check_texts(key: str, values: Iterable[Any]) -> None:
    """Raise ValueError unless all values are texts."""
    if not {str}.issuperset(map(type, values)):
        raise ValueError(f"{key}: it is no text")


def check_list(key: str, value: Any) -> Sequence[Any]:
    """Return a list. Raises ValueError where it is none."""
    if not isinstance(value, list):
        raise ValueError(f"{key}: it is no list")
    return value


def check_object(key: str, value: Any) -> Mapping[str, Any]:
    """Return an object. Raises ValueError where it is none."""
    if not isinstance(value, dict):
        raise ValueError(f"{key}: it is no object")
    return value
