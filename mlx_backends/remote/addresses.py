"""Addresses: the servers (scheme, host and port) that questions, images and keys may be sent to from this machine.

A provider's own address needs no agreement. The user agrees to any other one once, or names it in the variable of its key; the
agreement is stored in a private file of the user's, so that a received spec or run cannot bring it along.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.errors import AddressError, SpecError
from mlx_backends import user_state
from mlx_backends.remote.api_keys import key_addresses
from mlx_backends.remote.model_names import KEYS, RemoteModelName, address_of, check_url, is_remote, parse

ADDRESSES_FILE = "agreed-addresses"


CLUSTER = "ray://"
"""The scheme of a cluster's address, which is recorded as it is."""


def parse_address(text: str) -> str:
    """Return the address in a user's input, an address or a whole URL. Raise SpecError for anything else."""
    if text.startswith(CLUSTER):
        return text.strip()
    return address_of(check_url(text.strip(), "an address to allow"))


def allow(addresses: Iterable[str]) -> None:
    """Record addresses as allowed. Raise StoreError where they cannot be stored."""
    wanted = list(dict.fromkeys(addresses))
    if not wanted:
        return
    with user_state.lock():
        recorded = _recorded()
        if missing := [address for address in wanted if address not in recorded]:
            user_state.write(ADDRESSES_FILE, "".join(f"{address}\n" for address in [*recorded, *missing]))


def new_addresses(models: Iterable[str]) -> list[str]:
    """Return the addresses of the remote ones of ``models`` that are not allowed yet. Raise SpecError."""
    names = [parse(model) for model in models if is_remote(model)]
    servers = [server for name in names for server in name.servers]
    return list(dict.fromkeys(server.address for server in servers if not _is_allowed(server)))


def all_allowed(models: Iterable[str]) -> bool:
    """Return whether requests may be sent to all remote ones of ``models``; False for incomplete names."""
    try:
        return not new_addresses(models)
    except SpecError:
        return False


def is_recorded(address: str) -> bool:
    """Return whether the user has allowed an address."""
    return address in _recorded()


def check_allowed(name: RemoteModelName) -> None:
    """Raise AddressError unless the addresses of a remote model are allowed."""
    for server in name.servers:
        if not _is_allowed(server):
            raise AddressError(
                f"{server.address} is new on this machine, and questions, images and any key {KEYS[name.engine][0]} would be "
                f"sent to it; add --allow-address {server.address} if you trust it."
            )


def _is_allowed(name: RemoteModelName) -> bool:
    return name.own or name.address in _recorded() or name.address in key_addresses(*KEYS[name.engine])


def _recorded() -> list[str]:
    return (user_state.read(ADDRESSES_FILE) or "").split()
