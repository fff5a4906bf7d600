"""Parser of untrusted JSON (from files, servers and models) with limits and a single error type."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

MAX_DEPTH = 100
"""The maximum depth of nesting. Code that walks the value may safely recurse this deep."""

MAX_BYTES = 64 * 1024 * 1024
"""The default maximum size of a text."""

MAX_SOURCE_BYTES = 512 * 1024 * 1024
"""The maximum size of a published data set's file that is one JSON value; COCO's largest annotations have 470 MB."""


class OutsideJSONError(ValueError):
    """JSON that cannot be used; the message completes "it is ..."."""


def parse_json(text: str | bytes, max_size: int = MAX_BYTES) -> Any:
    """Return the value of a JSON text of at most ``max_size`` characters or bytes.

    Raises OutsideJSONError for every fault: a syntax error, numbers that a float cannot hold, bytes that are not text, nesting
    that is too deep, and a text that is too long.
    """
    if len(text) > max_size:
        raise OutsideJSONError(f"longer than {max_size:,} characters")
    try:
        value = _DECODER.decode(_decoded(text))
    except OutsideJSONError:
        raise
    except ValueError as error:
        raise OutsideJSONError("not JSON") from error
    except RecursionError as error:
        raise OutsideJSONError("nested too deeply") from error
    opening = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, opening)) > MAX_DEPTH and _is_deep(value):  # type: ignore[arg-type]
        raise OutsideJSONError("nested too deeply")
    return value


def _decoded(text: str | bytes) -> str:
    """Return the text of JSON as :func:`json.loads` reads it, in any encoding of Unicode. Raises ValueError."""
    if not isinstance(text, str):
        return text.decode(json.detect_encoding(text), "surrogatepass")
    if text.startswith("\ufeff"):
        raise ValueError("it begins with a byte order mark")
    return text


def read_json_file(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value of a JSON file. Raises OSError if it cannot be read, else OutsideJSONError as :func:`parse_json`.

    Only a regular file is read, without waiting for pipes or devices, and at most ``max_bytes`` of it.
    """
    with open(path, "rb", opener=_open_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OutsideJSONError("not a regular file")
        data = file.read(max_bytes + 1)
    return parse_json(data, max_bytes)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _refuse_constant(name: str) -> NoReturn:
    raise OutsideJSONError(f"not JSON ({name} is no number)")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise OutsideJSONError("not JSON (a number is too large)")
    return number


def _integer(digits: str) -> int:
    _finite(digits)  # or else float() of the number would raise OverflowError
    return int(digits)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
