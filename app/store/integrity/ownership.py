"""Ownership of runs: a seal tells the runs of this user and machine from received ones.

The seal is an HMAC-SHA256, by a random key that no run and no workspace holds, over the values that decide what a run does and
what it is. A run without the right seal opens read-only; `rashomon adopt` copies what is valid in it into a run of this machine.
"""

from __future__ import annotations

import hmac
import json
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import StoreError
from mlx_backends.core import user_state

SEALED = ("id", "spec", "identity", "data", "created")
"""The stored values that a seal covers: they decide side effects (model, addresses, judges, media folder) and identity."""

SEAL = "seal"
_KEY = "ownership.key"
_KEY_BYTES = 32


class ForeignRunError(StoreError):
    """A run that this machine has not made, or that was altered elsewhere, was to be changed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder.name} was not made on this machine, or was altered elsewhere, and is read-only; "
            f"`rashomon adopt {shlex.quote(str(folder))}` shows what it would use and makes a run of your own of it."
        )


def new_id() -> str:
    """Return an id that no other run has."""
    return secrets.token_hex(16)


def seal(stored: Mapping[str, str]) -> str:
    """Return the seal of stored values, as text, by their keys. Makes the machine's key if there is none. Raise StoreError."""
    key = _key()
    if key is None:
        user_state.write(_KEY, secrets.token_hex(_KEY_BYTES), replace=False)
        key = _key()
    if key is None:
        raise StoreError(f"cannot make {user_state.state_folder() / _KEY}; remove what is in its place.")
    return _mac(key, stored)


def is_own(stored: Mapping[str, Any]) -> bool:
    """Return whether the values that a run has stored, its seal among them, were sealed by this machine. Raise StoreError."""
    given = stored.get(SEAL)
    if not isinstance(given, str) or not all(isinstance(value, str) for value in stored.values()):
        return False
    key = _key()
    # The seal is stored as JSON, as all values are.
    return key is not None and hmac.compare_digest(
        given.encode("utf-8", "replace"), json.dumps(_mac(key, stored)).encode()
    )


def _mac(key: bytes, stored: Mapping[str, str]) -> str:
    sealed = json.dumps([[name, stored.get(name)] for name in SEALED])
    return hmac.new(key, sealed.encode(), "sha256").hexdigest()


def _key() -> bytes | None:
    text = user_state.read(_KEY)
    if text is None:
        return None
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise StoreError(
            f"{user_state.state_folder() / _KEY} is damaged; remove it, and adopt the runs that you go on with."
        )
    return key
