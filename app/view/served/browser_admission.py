"""Admission of a browser: the one-time link, the session's cookie, and the checks of Host and Origin."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from benchmarks.errors import SpecError

HEADERS: Mapping[str, str] = MappingProxyType({"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"})
"""The headers of every response, besides the content security policy of a page."""


class RefusedError(Exception):
    """A request that is refused; the message is for the user."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """The parts of a request that decide on its admission; None for a header, cookie or parameter that is absent."""

    method: str
    path: str
    host: str
    origin: str | None
    token: str | None
    secret: str | None


class Admission:
    """A token that can be exchanged once for a session, whose secret the browser keeps as a cookie.

    ``command`` is the command that printed the link, ``host`` the name of the server.
    """

    def __init__(self, command: str, host: str, cookie: str) -> None:
        self.cookie = cookie
        self.token = secrets.token_urlsafe(32)
        self._command, self._host = command, host
        self._session = secrets.token_urlsafe(32)
        self._used = False

    def admit(self, request: AdmissionRequest) -> str | None:
        """Return None to answer a request, or else the secret to set as the cookie while the token is taken off the address.

        The secret is empty if the browser has it already. Raises RefusedError.
        """
        if not is_allowed(request.host, request.origin, self._host):
            raise RefusedError("this page is served only under its own address")
        token = request.token if request.path == "/" else None
        if self.admits(request.secret):
            return None if token is None else ""
        secret = self.exchange(token) if token is not None and request.method == "GET" else None
        if secret is None:
            raise RefusedError(
                f"this page is for one session: open the link of `{self._command}`, which works once, or run it again; "
                "then this address works too."
            )
        return secret

    def exchange(self, token: str) -> str | None:
        """Return the session's secret for the token, the first time; else None."""
        if self._used or not _equal(token, self.token):
            return None
        self._used = True
        return self._session

    def admits(self, secret: str | None) -> bool:
        """Return whether a cookie holds the session's secret."""
        return self._used and secret is not None and _equal(secret, self._session)


def _equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), secret.encode())


def is_allowed(requested: str, origin: str | None, host: str) -> bool:
    """Return whether a request comes from one of our own pages, and not from another site in the user's browser.

    ``requested`` is its Host header. It must be an IP address, ``localhost`` or the served name, because any other name could
    be made to resolve to this machine. ``origin`` is its Origin header, which must match if it is present.
    """
    try:
        name = urlsplit(f"//{requested}").hostname or ""
        source = urlsplit(origin).netloc if origin is not None else requested
    except ValueError:
        return False
    return source == requested and (name in ("localhost", host.lower()) or _address(name) is not None)


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine alone."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def check_address(host: str, port: int) -> None:
    """Raise SpecError if nothing can be served at an address."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        raise address_error(host, port, error, "--port or --host") from error


def address_error(host: str, port: int, error: Exception, options: str) -> SpecError:
    """Return the error for an address that cannot be used, which advises other ``options``."""
    reason = getattr(error, "strerror", None) or "there is no such address"
    return SpecError(f"cannot serve at {host}:{port}: {reason}; choose another {options}.")


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
