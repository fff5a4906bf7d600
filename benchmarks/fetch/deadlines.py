"""Connections whose every read and write keeps to the deadline and the bytes of the call that they are for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

from benchmarks.fetch.proxies import Proxy

_CHUNK = 16 * 1024


class _Call(threading.local):
    """The call that this thread is making: its deadline, and the bytes it may still receive."""

    deadline: float | None = None
    most: int | None = None
    left: int = 0


_call = _Call()


@contextmanager
def deadline(seconds: float, most_bytes: int | None = None) -> Iterator[None]:
    """Limit everything this thread sends and receives within the block to ``seconds`` from now, and to ``most_bytes``.

    An earlier deadline of an outer block holds too. The lookup of the server's name is the system's, and takes as long as that
    takes.
    """
    outer = _call.deadline, _call.most, _call.left
    end = time.monotonic() + seconds
    _call.deadline = end if outer[0] is None else min(end, outer[0])
    if most_bytes is not None:
        _call.most = _call.left = most_bytes
    try:
        yield
    finally:
        _call.deadline, _call.most, _call.left = outer


def connection_pool(proxy: Proxy | None, ssl_context: Any) -> httpcore2.ConnectionPool:
    """Return a pool of such connections, through ``proxy``; ``ssl_context`` is None if all requests are unencrypted."""
    options: dict[str, Any] = {
        "ssl_context": ssl_context,
        "max_connections": None,
        "keepalive_expiry": 30.0,
        "network_backend": _Backend(),
    }
    if proxy is None:
        return httpcore2.ConnectionPool(**options)
    parsed = httpx2.Proxy(proxy.url)
    pool = httpcore2.SOCKSProxy if proxy.name.startswith("socks") else httpcore2.HTTPProxy
    return pool(str(parsed.url), proxy_auth=parsed.raw_auth, **options)


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
    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._inner.read(max_bytes, _remaining(timeout))
        if _call.most is not None:
            _call.left -= len(data)
            if _call.left < 0:
                raise httpcore2.ReadError(f"the reply is longer than {_call.most // 2**20} MiB")
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
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(str(error)) from None


def _remaining(timeout: float | None) -> float | None:
    if _call.deadline is None:
        return timeout
    seconds_left = _call.deadline - time.monotonic()
    if seconds_left <= 0:
        raise httpcore2.ReadTimeout("the time for this call is over")
    return seconds_left if timeout is None else min(timeout, seconds_left)
