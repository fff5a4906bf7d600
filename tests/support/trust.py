"""Consent of the user: agreement to addresses, and adoption of runs assembled by a test."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import tomli_w

from app.engine.run_plan import without_none
from app.store.run_store import RunStore
from benchmarks.untrusted import private_state
from mlx_backends.remote import allowed_addresses
from mlx_backends.remote.remote_names_and_media import address_of


def agree_to(*urls: str) -> None:
    """Agree to the servers of these URLs, for all that runs in the state folder of this process."""
    allowed_addresses.allow([address_of(url) for url in urls])


def forget(url: str) -> None:
    """Withdraw what was agreed to for a server: an earlier one of another test may have had its port."""
    kept = [address for address in allowed_addresses._recorded() if address != address_of(url)]
    private_state.write(allowed_addresses.ADDRESSES_FILE, "".join(f"{address}\n" for address in kept))


def seal(folder: Path) -> None:
    """Make a run one of this machine, whatever it holds."""
    with RunStore._connect(folder) as store:
        store.set_meta("id", "sealed by a test")


@contextmanager
def elsewhere() -> Iterator[None]:
    """Be another machine: what is made or changed inside is foreign afterwards."""
    with TemporaryDirectory() as state, patch.dict(os.environ, {"XDG_STATE_HOME": state}):
        yield


def receive(folder: Path, **values: Any) -> None:
    """Have a run come from another machine, which has changed these of its values."""
    with elsewhere(), RunStore._connect(folder) as store:
        for key, value in {"id": "made elsewhere", **values}.items():
            store.set_meta(key, value)
    spec = without_none(values.get("spec", {}))
    if spec:
        (folder / "spec.toml").write_text(tomli_w.dumps(spec), "utf-8")


def tree(folder: Path) -> dict[str, str]:
    """Return the contents of a folder: links as such, files by digest."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            entries[str(path)] = f"link to {os.readlink(path)}"
        else:
            entries[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return entries
