"""HTTP client for the providers' libraries that no server can stall for ever, flood, or redirect."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

from benchmarks.proxies import proxy_of
from mlx_backends.remote.model_names import address_of

MAX_REPLY_BYTES = 16 * 1024 * 1024
"""Most bytes a server may send in one call, headers included."""

_CHUNK = 16 * 1024
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


class _Call(threading.local):
    """The call that this thread is making: its deadline, and the bytes it may still receive."""

    deadline: float | None = None
    left: int = MAX_REPLY_BYTES


_call = _Call()


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Limit everything this thread sends and receives within the block to ``seconds`` from now.

    The lookup of the server's name is the system's, and takes as long as that takes.
    """
    _call.deadline, _call.left = time.monotonic() + seconds, MAX_REPLY_BYTES
    try:
        yield
    finally:
        _call.deadline = None


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
    """httpx2's transport over a pool with our network backend, which httpx2's own cannot be given."""

    def __init__(self, base_url: str, bare: bool) -> None:
        self._bare = bare
        self._address = address_of(base_url)
        proxy = proxy_of(base_url)
        options: dict[str, Any] = {
            "ssl_context": httpx2.create_ssl_context() if base_url.startswith("https:") else None,
            "max_connections": None,
            "keepalive_expiry": 30.0,
            "network_backend": _Backend(),
        }
        self._pool: httpcore2.ConnectionPool
        if proxy is None:
            self._pool = httpcore2.ConnectionPool(**options)
        else:
            parsed = httpx2.Proxy(proxy.url)
            pool = httpcore2.SOCKSProxy if proxy.name.startswith("socks") else httpcore2.HTTPProxy
            self._pool = pool(str(parsed.url), proxy_auth=parsed.raw_auth, **options)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if address_of(f"{url.scheme}://{url.netloc.decode('ascii')}") != self._address:
            raise httpx2.UnsupportedProtocol("the request is for another address than the allowed one", request=request)
        headers = [(name, value) for name, value in request.headers.raw if not self._bare or name.lower() in _NEEDED]
        try:
            response = self._pool.handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=headers,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
            body = response.read()
            response.close()
        except httpcore2.TimeoutException as error:
            raise httpx2.ReadTimeout(str(error), request=request) from None
        except httpcore2.ConnectError as error:
            raise httpx2.ConnectError(str(error), request=request) from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as error:
            raise httpx2.NetworkError(str(error), request=request) from None
        response_headers = {name.lower(): value for name, value in response.headers}
        if response_headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            raise httpx2.NetworkError(
                "the response is compressed, although no compression was requested", request=request
            )
        # All three APIs use UTF-8; a character set that a server names could be any of Python's codecs.
        response_headers[b"content-type"] = response_headers.get(b"content-type", b"").partition(b";")[0]
        return httpx2.Response(response.status, headers=list(response_headers.items()), content=body, request=request)

    def close(self) -> None:
        self._pool.close()


class _Backend(httpcore2.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first address of ``host`` that answers; each gets its share of the remaining time."""
        addresses = _addresses(host, port)
        for number, address in enumerate(addresses):
            seconds_left = _remaining(timeout)
            share = None if seconds_left is None else seconds_left / (len(addresses) - number)
            try:
                return _Stream(self._inner.connect_tcp(address, port, share, local_address, socket_options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(addresses) - 1:
                    raise
        raise httpcore2.ConnectError(f"{host} has no address")


class _Stream(httpcore2.NetworkStream):
    """A connection whose every read and write keeps to the deadline of the call it is for."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._inner.read(max_bytes, _remaining(timeout))
        _call.left -= len(data)
        if _call.left < 0:
            raise httpcore2.ReadError(f"the reply is longer than {MAX_REPLY_BYTES // 2**20} MiB")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _CHUNK):
            self._inner.write(buffer[start : start + _CHUNK], _remaining(timeout))

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _remaining(timeout)))

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _addresses(host: str, port: int) -> list[str]:
    """Return the numeric addresses of a host."""
    numbers = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(socket.getnameinfo(address, numbers)[0] for *_, address in entries))
    except OSError as error:
        raise httpcore2.ConnectError(str(error)) from None


def _remaining(timeout: float | None) -> float | None:
    if _call.deadline is None:
        return timeout
    seconds_left = _call.deadline - time.monotonic()
    if seconds_left <= 0:
        raise httpcore2.ReadTimeout("the time for this call is over")
    return seconds_left if timeout is None else min(timeout, seconds_left)
