"""Standing in for the user: agreeing to addresses, and taking over runs that a test has put together by hand."""

from __future__ import annotations

from pathlib import Path

from app.store.run import RunStore
from mlx_backends.remote import addresses
from mlx_backends.remote.names import address_of


def agree_to(*urls: str) -> None:
    """Agree to the servers of these URLs, for all that runs in the state folder of this process."""
    addresses.agree([address_of(url) for url in urls])


def seal(folder: Path) -> None:
    """Make a run one of this machine, whatever it holds."""
    with RunStore._connect(folder) as store:
        store.set_meta("id", "sealed by a test")
