"""Proxies: the one that carries what is sent to a URL, by the environment or the system's settings.

Every client is given the answer of :func:`proxy_of`, and what is displayed about proxies comes from it too.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from benchmarks.errors import SpecError

CARRIED = ("http", "https")
"""The schemes of the URLs that a proxy can carry."""

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_HOST = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|[0-9a-f:.]*:[0-9a-f:.]*")
_LOCAL_NAMES = ("localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback")
_SHORTEST_USER = 4
"""Characters from which on a proxy's user name is treated as a secret; a shorter one is part of ordinary words."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: its ``name`` is its address without credentials, its ``url`` has them, ``source`` is what names it."""

    name: str
    url: str = field(repr=False)
    source: str


def proxy_of(url: str) -> Proxy | None:
    """Return the proxy that carries what is sent to ``url``; None if it is sent directly, as to this machine always.

    No name is looked up. Raises SpecError for an invalid proxy, without quoting it.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if is_loopback(host) or _is_excepted(host, parts.port or _PORTS.get(parts.scheme)):
        return None
    return proxy_for_scheme(parts.scheme)


def proxy_for_scheme(scheme: str) -> Proxy | None:
    """Return the proxy for URLs with ``scheme``, where nothing excepts their host. Raises SpecError."""
    proxies = getproxies()
    key = scheme if proxies.get(scheme) else "all"
    if not proxies.get(key):
        return None
    variable = f"{key}_proxy"
    names = (name for name in (variable, *os.environ) if name.lower() == variable and os.environ.get(name))
    source = next(names, "the system's settings")
    name = proxy_name(proxies[key], source)
    if name.startswith("socks") and find_spec("socksio") is None:
        raise SpecError(f"{source} names a SOCKS proxy, which needs a library; `pip install socksio`.")
    return Proxy(name, _with_scheme(proxies[key]), source)


def check_proxies() -> None:
    """Raise SpecError if the proxy for any scheme is invalid."""
    for scheme in CARRIED:
        proxy_for_scheme(scheme)


def proxy_name(url: str, what: str) -> str:
    """Return the address of a proxy without credentials, such as ``http://host:8080``. Raises SpecError, naming ``what``."""
    with suppress(ValueError):
        parts = urlsplit(_with_scheme(url))
        host, port = parts.hostname or "", parts.port
        plain = url.isprintable() and parts.path in ("", "/") and not parts.query and not parts.fragment and port != 0
        if plain and parts.scheme in _PORTS and _HOST.fullmatch(host):
            return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port or _PORTS[parts.scheme]}"
    raise SpecError(f"{what} is not a valid proxy URL; give one like http://proxy.example:8080, or none.")


def proxy_secrets() -> set[str]:
    """Return the credentials in the URLs of all proxies, apart and as they are sent."""
    secrets = set()
    for name, url in getproxies().items():
        credentials, at, _ = url.rpartition("@")
        if at and name != "no":
            user, _, password = map(unquote, credentials.rpartition("://")[2].partition(":"))
            secrets |= {password, f"{user}:{password}", user if len(user) >= _SHORTEST_USER else ""}
    return secrets - {""}


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its spelling: an address such as 127.1 or ::1, or a form of localhost."""
    host = host.lower().rstrip(".")
    if host in _LOCAL_NAMES or host.endswith(".localhost"):
        return True
    address = _ip(host)
    address = getattr(address, "ipv4_mapped", None) or address
    return address is not None and (address.is_loopback or address.is_unspecified)


def _is_excepted(host: str, port: int | None) -> bool:
    """Return whether NO_PROXY or the system's settings except a host; entries can be networks such as 10.0.0.0/8."""
    address = _ip(host)
    for entry in map(str.strip, getproxies().get("no", "").lower().split(",")):
        if entry == "*" or (entry.startswith("*.") and host.endswith(entry[1:])):
            return True
        with suppress(ValueError):
            if address is not None and address in ip_network(entry.translate({91: None, 93: None}), strict=False):
                return True
    return bool(proxy_bypass(f"{host}:{port}"))


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    """Return a host's address if it is one, in any spelling that a connection takes, such as 127.1 or 0x7f000001."""
    with suppress(OSError, ValueError):
        return ip_address(socket.inet_aton(host))
    with suppress(ValueError):
        return ip_address(host)
    return None


def _with_scheme(url: str) -> str:
    return url.strip() if "://" in url else f"http://{url.strip()}"
