"""Ownership of runs: a seal distinguishes the runs of this user and machine from received ones.

The seal is an HMAC-SHA256 over the values that determine a run's identity and its side effects, by a random key that is stored
outside of runs and workspaces. A run without a valid seal opens read-only; `rashomon adopt` copies its valid contents into a run
of this machine.
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
from benchmarks.untrusted import private_state as user_state

SEALED = ("id", "spec", "identity", "data", "created")
"""The meta keys that a seal covers: they determine side effects (model, addresses, judges, media folder) and identity."""

SEAL = "seal"
_KEY = "ownership.key"
_KEY_BYTES = 32


class ForeignRunError(StoreError):
    """An attempt to change a run that was not made on this machine, or was altered elsewhere."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder.name} was not made on this machine, or was altered elsewhere, and is read-only; "
            f"`rashomon adopt {shlex.quote(str(folder))}` shows what it would use, and copies it to a run of your own."
        )


def new_id() -> str:
    """Return a unique id for a run."""
    return secrets.token_hex(16)


def seal(stored: Mapping[str, str]) -> str:
    """Return the seal of stored values, given as text by key; create the machine's key if there is none. Raises StoreError."""
    key = _key()
    if key is None:
        user_state.write(_KEY, secrets.token_hex(_KEY_BYTES), replace=False)
        key = _key()
    if key is None:
        raise StoreError(f"cannot create {user_state.state_folder() / _KEY}; remove what is in its place.")
    return _mac(key, stored)


def is_own(stored: Mapping[str, Any]) -> bool:
    """Return whether a run's stored values, including the seal, were sealed on this machine. Raises StoreError."""
    stored_seal = stored.get(SEAL)
    if not isinstance(stored_seal, str) or not all(isinstance(value, str) for value in stored.values()):
        return False
    key = _key()
    # The seal is stored as JSON, like all values.
    return key is not None and hmac.compare_digest(
        stored_seal.encode("utf-8", "replace"), json.dumps(_mac(key, stored)).encode()
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
            f"{user_state.state_folder() / _KEY} is damaged; remove it, and adopt the runs that you want to resume."
        )
    return key
