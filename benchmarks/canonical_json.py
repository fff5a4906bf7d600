"""Canonical JSON of values, and the digests of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def canonical_json(value: Any) -> str:
    """Return a value as JSON in its only spelling: sorted keys, no spaces, UTF-8 text unescaped."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the sha256, in hex, of a value's canonical JSON. Lone surrogates are hashed unchanged."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_list(values: Iterable[Any]) -> str:
    """Return :func:`digest` of a list of these values, holding one at a time."""
    contents, separator = hashlib.sha256(b"["), b""
    for value in values:
        contents.update(separator + canonical_json(value).encode("utf-8", "surrogatepass"))
        separator = b","
    contents.update(b"]")
    return contents.hexdigest()
