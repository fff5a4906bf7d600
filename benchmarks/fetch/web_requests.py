"""HTTP requests to servers that may reply anything: bounded in time and size, with a token that stays with its host."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from benchmarks.errors import SpecError
from benchmarks.fetch.deadlines import deadline
from benchmarks.fetch.proxied_transport import RoutedTransport
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

MAX_REPLY_BYTES = 16 * 2**20
"""The maximum size of a reply in JSON."""

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524})
"""Statuses that may be others a moment later."""

_ATTEMPTS = 3
_MOST_REDIRECTIONS = 5
REDIRECTIONS = frozenset({301, 302, 303, 307, 308})


class OddReplyError(Exception):
    """A reply that no server of this kind sends; the message completes "it ..."."""


def client(silence: float) -> httpx2.Client:
    """Return an HTTP client that follows no redirection by itself and fails after ``silence`` seconds without a byte."""
    return httpx2.Client(
        transport=RoutedTransport(),
        timeout=httpx2.Timeout(silence, connect=min(silence, 15.0)),
        follow_redirects=False,
        trust_env=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "rashomon"},
    )


@contextmanager
def response_to(
    session: httpx2.Client,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
    seconds: float = 30.0,
    elsewhere: bool = False,
) -> Iterator[httpx2.Response]:
    """Yield the response to a request, whose body is not read yet, and close it.

    Its head, and those of redirections before it, must come within ``seconds``. ``token`` is sent only to the host of ``url``.
    Redirections to other hosts are followed only if ``elsewhere``, none from an encrypted address to an unencrypted one. Raises
    OddReplyError for other redirections and for compressed responses, and httpx2.TransportError.
    """
    start, place = httpx2.URL(url), httpx2.URL(url)
    with deadline(seconds):
        for _ in range(_MOST_REDIRECTIONS + 1):
            bearer = {"Authorization": f"Bearer {token}"} if token and same_host(place, start) else {}
            request = session.build_request(method, place, headers={**(headers or {}), **bearer})
            response = session.send(request, stream=True)
            if response.status_code not in REDIRECTIONS:
                break
            response.close()
            place = redirection(place, response.headers.get("Location"))
            if not (elsewhere or same_host(place, start)):
                raise OddReplyError("it redirects to another host")
        else:
            raise OddReplyError("it redirects again and again")
    try:
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            raise OddReplyError("it is compressed, although no compression was requested")
        yield response
    finally:
        response.close()


def get_json(session: httpx2.Client, url: str, token: str | None, end: float) -> tuple[httpx2.Response, Any]:
    """Return the response to a GET and its JSON, which is None unless the status is 200.

    A failed connection and a status of :data:`TRANSIENT` are tried again. Everything must come before ``end``, a time of the
    monotonic clock. Raises OddReplyError for a body that is not JSON, too long or nested too deeply, and httpx2.TransportError.
    """
    pause = 0.5
    for attempt in range(1, _ATTEMPTS + 1):
        is_last = attempt == _ATTEMPTS
        seconds = max(0.1, end - time.monotonic())
        try:
            with deadline(seconds), response_to(session, "GET", url, token=token, seconds=seconds) as response:
                if response.status_code == 200:
                    return response, parse_reply(_body(response))
                if is_last or response.status_code not in TRANSIENT:
                    return response, None
        except httpx2.TransportError:
            if is_last or time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause *= 2
    raise AssertionError


def transport_problem(error: BaseException) -> str:
    """Return what is wrong with the connection to a server, from a TransportError, as words that follow its name."""
    if isinstance(error, httpx2.ProxyError):
        return "cannot be reached through the proxy"
    if isinstance(error, httpx2.ReadTimeout | httpx2.ReadError | httpx2.RemoteProtocolError | httpx2.CloseError):
        return "was reached, but stopped before its reply was complete"
    if isinstance(error, httpx2.WriteTimeout | httpx2.WriteError):
        return "was reached, but stopped receiving"
    return "cannot be reached"


def parse_reply(body: bytes) -> Any:
    """Return the value of a reply in JSON. Raises OddReplyError."""
    try:
        return parse_json(body, MAX_REPLY_BYTES)
    except OutsideJSONError as error:
        raise OddReplyError(f"it is {error}") from error


def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    for piece in response.iter_raw():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            raise OddReplyError(f"it is longer than {MAX_REPLY_BYTES // 2**20} MiB")
    return bytes(body)


def web_address(url: str, source: str) -> httpx2.URL:
    """Return ``url`` as the address of a server. Raises SpecError, which calls it ``source``."""
    try:
        address = httpx2.URL(url)
        if address.scheme in ("http", "https") and address.host and not address.userinfo:
            return address
    except (httpx2.InvalidURL, ValueError):
        pass
    raise SpecError(
        f"{source} is not the address of a server; write one like https://hub.example, without credentials."
    )


def same_host(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Return whether two addresses are of the same server, with the same encryption."""
    return _origin(one) == _origin(other)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def linked_page(response: httpx2.Response) -> str | None:
    """Return the address of the next page that a response links to, which is of the same host. Raises OddReplyError."""
    try:
        link = response.links.get("next", {}).get("url")
        place = response.url.join(link) if link else None
    except (httpx2.InvalidURL, ValueError) as error:
        raise OddReplyError("its next page has an invalid address") from error
    if place is not None and not same_host(place, response.url):
        raise OddReplyError("its next page is on another host")
    return str(place) if place is not None else None


def redirection(place: httpx2.URL, location: str | None) -> httpx2.URL:
    """Return the address to which ``place`` redirects. Raises OddReplyError if it is none, or not encrypted as ``place`` is."""
    try:
        target = place.join(location or "")
    except (httpx2.InvalidURL, ValueError) as error:
        raise OddReplyError("it redirects to no address") from error
    if not location or target.scheme not in ("http", "https") or not target.host:
        raise OddReplyError("it redirects to no address of the web")
    if place.scheme == "https" and target.scheme != "https":
        raise OddReplyError("it redirects to an unencrypted address")
    return target.copy_with(userinfo=b"")
