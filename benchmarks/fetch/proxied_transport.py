"""HTTP transport that sends each request, redirected ones too, through the proxy of its own URL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpcore2
import httpx2

from benchmarks.fetch.deadlines import connection_pool
from benchmarks.fetch.proxies import proxy_of


class RoutedTransport(httpx2.BaseTransport):
    """Pools of connections by proxy, made when they are first needed, which keep to :func:`benchmarks.fetch.deadlines.deadline`.

    Requests raise httpx2.TransportError, and SpecError for an invalid proxy.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[tuple[str | None, bool], httpcore2.ConnectionPool] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        with _translated(request):
            response = self._pool(url).handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx2.Response(
            response.status, headers=response.headers, stream=_Body(response, request), extensions=response.extensions
        )

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def _pool(self, url: httpx2.URL) -> httpcore2.ConnectionPool:
        proxy = proxy_of(str(url))
        key = proxy.url if proxy else None, url.scheme == "https"
        with self._lock:
            if key not in self._pools:
                encrypted = key[1] or (proxy is not None and proxy.url.startswith("https:"))
                self._pools[key] = connection_pool(proxy, httpx2.create_ssl_context() if encrypted else None)
            return self._pools[key]


class _Body(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response, request: httpx2.Request) -> None:
        self._response, self._request = response, request

    def __iter__(self) -> Iterator[bytes]:
        with _translated(self._request):
            yield from self._response.iter_stream()

    def close(self) -> None:
        with _translated(self._request):
            self._response.close()


@contextmanager
def _translated(request: httpx2.Request) -> Iterator[None]:
    """Translate the errors of the pool to those of the same name of the client."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx2, type(error).__name__, httpx2.NetworkError)(str(error), request=request) from error
