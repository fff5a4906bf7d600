"""JSON of the page's data types, and columns in them."""

from __future__ import annotations

import base64
import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_json(value: Any) -> bytes:
    """Return a value of the page's data types as JSON. A lone surrogate becomes its escape."""
    text = json.dumps(value, default=_fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def column(values: NDArray[Any], kind: str) -> str:
    """Return an array as base64, little-endian, with items of a numpy ``kind`` such as "u1"."""
    return base64.b64encode(np.ascontiguousarray(values, f"<{kind}").tobytes()).decode("ascii")


def _fields(value: Any) -> dict[str, Any]:
    if not is_dataclass(value):
        raise TypeError(type(value).__name__)
    return {field.name: getattr(value, field.name) for field in fields(value)}
