"""Addresses: the servers (scheme, host and port) that questions, images and keys may be sent to from this machine.

A provider's own address needs no agreement. The user agrees to any other one once, or names it in the variable of its key; the
agreement is stored in a private file of the user's, so that a received spec or run cannot bring it along.

An agreement is for a route: an address, or ``ADDRESS,proxy=PROXY`` if a proxy leads there. A version that knows no proxies takes
the latter for another address, and asks again.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.errors import AddressError, SpecError
from benchmarks.fetch.proxies import proxy_name, proxy_of
from benchmarks.untrusted import private_state
from mlx_backends.remote.api_keys import key_addresses
from mlx_backends.remote.remote_names_and_media import KEYS, RemoteModelName, address_of, check_url, is_remote, parse

ADDRESSES_FILE = "agreed-addresses"

_PROXY = ",proxy="

CLUSTER = "ray://"
"""The scheme of a cluster's address, which is recorded as it is."""


def parse_address(text: str) -> str:
    """Return the route in a user's input, an address, a whole URL, or either with a proxy. Raise SpecError for anything else."""
    if text.startswith(CLUSTER):
        return text.strip()
    url, through, proxy = text.strip().partition(_PROXY)
    address = address_of(check_url(url, "an address to allow"))
    return f"{address}{through}{proxy_name(proxy, 'the proxy of an address to allow') if through else ''}"


def route_text(route: str) -> str:
    """Return a route as it is displayed."""
    return route.replace(_PROXY, " through the proxy ")


def allow(addresses: Iterable[str]) -> None:
    """Record routes as allowed. Raise StoreError where they cannot be stored."""
    wanted = list(dict.fromkeys(addresses))
    if not wanted:
        return
    with private_state.lock():
        recorded = _recorded()
        if missing := [address for address in wanted if address not in recorded]:
            private_state.write(ADDRESSES_FILE, "".join(f"{address}\n" for address in [*recorded, *missing]))


def new_addresses(models: Iterable[str]) -> list[str]:
    """Return the routes to the remote ones of ``models`` that are not allowed yet. Raise SpecError."""
    names = [parse(model) for model in models if is_remote(model)]
    servers = [server for name in names for server in name.servers]
    return list(dict.fromkeys(route for server in servers if (route := _unallowed_route(server))))


def all_allowed(models: Iterable[str]) -> bool:
    """Return whether requests may be sent to all remote ones of ``models``; False for incomplete names or invalid proxies."""
    try:
        return not new_addresses(models)
    except SpecError:
        return False


def is_recorded(address: str) -> bool:
    """Return whether the user has allowed an address."""
    return address in _recorded()


def check_allowed(name: RemoteModelName) -> None:
    """Raise AddressError unless the routes to a remote model are allowed, SpecError for an invalid proxy."""
    for server in name.servers:
        if route := _unallowed_route(server):
            raise AddressError(
                f"{route_text(route)} is new on this machine, and questions, images and any key {KEYS[name.engine][0]} would be "
                f"sent to it; add --allow-address {route} if you trust {'both' if _PROXY in route else 'it'}."
            )


def _unallowed_route(name: RemoteModelName) -> str | None:
    """Return the route to a server if the user has not allowed it. The address of a key is allowed without a proxy."""
    proxy = proxy_of(name.base_url)
    route = f"{name.address}{_PROXY}{proxy.name}" if proxy else name.address
    allowed = name.own or route in _recorded() or route in key_addresses(*KEYS[name.engine])
    return None if allowed else route


def _recorded() -> list[str]:
    return (private_state.read(ADDRESSES_FILE) or "").split()
