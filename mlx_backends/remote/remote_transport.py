"""HTTP client for the providers' libraries that no server can stall for ever, flood, or redirect."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import httpx2

from benchmarks.fetch import deadlines
from benchmarks.fetch.proxied_transport import RoutedTransport
from mlx_backends.remote.remote_names_and_media import address_of

MAX_REPLY_BYTES = 16 * 1024 * 1024
"""Most bytes a server may send in one call, headers included."""

_NEEDED = (
    b"host",
    b"connection",
    b"accept",
    b"accept-encoding",
    b"authorization",
    b"content-length",
    b"content-type",
    b"user-agent",
)


def deadline(seconds: float) -> AbstractContextManager[None]:
    """Limit everything this thread sends and receives within the block to ``seconds``, and to :data:`MAX_REPLY_BYTES`."""
    return deadlines.deadline(seconds, MAX_REPLY_BYTES)


def http_client(base_url: str, *, bare: bool = False) -> Any:
    """Return an HTTP client for the server of ``base_url``, through the proxy of its address.

    It calls no other address, whatever the provider's library makes of the URL, follows no redirection, and refuses compressed
    responses. ``bare`` sends only the headers that a request needs, whatever headers the environment gives a provider's library
    for its own servers.
    """
    return httpx2.Client(
        transport=_Transport(base_url, bare),
        follow_redirects=False,
        trust_env=False,
        headers={"accept-encoding": "identity"},
    )


def failure_reason(error: BaseException) -> str | None:
    """Return the reason of a transport failure, where ``error`` or its cause is the HTTP client's; else None."""
    for cause in (error, error.__cause__, error.__context__):
        if isinstance(cause, httpx2.TimeoutException):
            return "no whole reply in time"
        if isinstance(cause, httpx2.TransportError):
            return f"the connection failed: {cause}"
    return None


def is_unreached(error: BaseException) -> bool:
    """Return whether there was no connection at all: no server listens there, or there is no such host."""
    return any(isinstance(cause, httpx2.ConnectError) for cause in (error, error.__cause__, error.__context__))


class _Transport(httpx2.BaseTransport):
    def __init__(self, base_url: str, bare: bool) -> None:
        self._bare = bare
        self._address = address_of(base_url)
        self._routed = RoutedTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if address_of(f"{url.scheme}://{url.netloc.decode('ascii')}") != self._address:
            raise httpx2.UnsupportedProtocol("the request is for another address than the allowed one", request=request)
        headers = [(name, value) for name, value in request.headers.raw if not self._bare or name.lower() in _NEEDED]
        response = self._routed.handle_request(
            httpx2.Request(request.method, url, headers=headers, stream=request.stream, extensions=request.extensions)
        )
        try:
            body = b"".join(response.iter_raw())
        finally:
            response.close()
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise httpx2.NetworkError(
                "the response is compressed, although no compression was requested", request=request
            )
        response_headers = {name.lower(): value for name, value in response.headers.raw}
        # All three APIs use UTF-8; a character set that a server names could be any of Python's codecs.
        response_headers[b"content-type"] = response_headers.get(b"content-type", b"").partition(b";")[0]
        return httpx2.Response(
            response.status_code, headers=list(response_headers.items()), content=body, request=request
        )

    def close(self) -> None:
        self._routed.close()
