"""JSON from outside (files, servers, models), parsed within bounds and with one error type."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

MAX_DEPTH = 100
"""Levels of nesting that are read. Whatever walks the value later may recurse this far without harm."""

MAX_BYTES = 64 * 1024 * 1024
"""Size of the largest text that is read unless a caller says otherwise."""

MAX_SOURCE_BYTES = 512 * 1024 * 1024
"""Size of the largest file of a published data set that is one JSON value; COCO's largest annotations have 470 MB."""


class OutsideJSONError(ValueError):
    """JSON that cannot be used; the message completes "it is ..."."""


def parse_json(text: str | bytes, max_size: int = MAX_BYTES) -> Any:
    """Return the value of a JSON text of at most ``max_size`` characters or bytes.

    Raise OutsideJSONError for everything that can be wrong: a syntax error, NaN and other numbers that are not finite or
    have too many digits, bytes that are no text, too deep a nesting, and too long a text.
    """
    if len(text) > max_size:
        raise OutsideJSONError(f"longer than {max_size:,} characters")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
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


def read_json_file(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value of a JSON file. Raise OSError where it cannot be read, else OutsideJSONError as :func:`parse_json`.

    A pipe or device is never waited for: only a regular file is read, and no more of it than ``max_bytes``.
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
