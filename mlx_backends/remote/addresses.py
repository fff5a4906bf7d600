"""Addresses: the servers (scheme, host and port) that questions, pictures and keys may be sent to from this machine.

A vendor's own address needs no agreement. Any other one is agreed to once by the user, or named in the variable of its key; the
agreement is kept in a private file of the user's, so that a received spec or run cannot bring it along.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.errors import AddressError, SpecError
from mlx_backends.core import user_state
from mlx_backends.remote.api_keys import key_addresses
from mlx_backends.remote.model_names import KEYS, RemoteModelName, address_of, checked_url, is_remote, parse

FILE = "agreed-addresses"


def typed_address(text: str) -> str:
    """Return the address in what a user typed, an address or a whole URL. Raise SpecError for what is none."""
    return address_of(checked_url(text.strip(), "an address to allow"))


def agree(addresses: Iterable[str]) -> None:
    """Remember addresses as agreed to. Raise StoreError where they cannot be kept."""
    known = _remembered()
    if missing := [address for address in dict.fromkeys(addresses) if address not in known]:
        user_state.write(FILE, "".join(f"{address}\n" for address in [*known, *missing]))


def new_addresses(models: Iterable[str]) -> list[str]:
    """Return the addresses of those of ``models`` that are remote, without those that are agreed to. Raise SpecError."""
    names = [parse(model) for model in models if is_remote(model)]
    return list(dict.fromkeys(name.address for name in names if not _agreed(name)))


def agreed(models: Iterable[str]) -> bool:
    """Return whether all remote ones of ``models`` may be sent something; False for names that say too little."""
    try:
        return not new_addresses(models)
    except SpecError:
        return False


def require(name: RemoteModelName) -> None:
    """Raise AddressError unless the address of a remote model is agreed to."""
    if not _agreed(name):
        raise AddressError(
            f"{name.address} is new on this machine, and questions, pictures and any key {KEYS[name.engine][0]} would be sent "
            f"to it; add --allow-address {name.address} if you trust it."
        )


def _agreed(name: RemoteModelName) -> bool:
    return name.own or name.address in _remembered() or name.address in key_addresses(*KEYS[name.engine])


def _remembered() -> list[str]:
    return (user_state.read(FILE) or "").split()
