"""HTTP transport that sends each request, redirected ones too, through the proxy of its own URL."""

from __future__ import annotations

import threading
from functools import cache

import httpx2

from benchmarks.proxies import CARRIED, proxy_for_scheme, proxy_of


class RoutedTransport(httpx2.BaseTransport):
    """Transports by proxy, made when they are first needed. Requests raise SpecError for an invalid proxy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ssl = httpx2.create_ssl_context()
        self._transports: dict[str | None, httpx2.HTTPTransport] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        proxy = proxy_of(str(request.url))
        url = proxy.url if proxy else None
        with self._lock:
            transport = self._transports.get(url)
            if transport is None:
                transport = self._transports[url] = httpx2.HTTPTransport(verify=self._ssl, proxy=url)
        return transport.handle_request(request)

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()


def route_hub_library() -> None:
    """Have the library of the Hugging Face Hub send its requests through :class:`RoutedTransport`.

    Its client of Xet storage reads proxies by itself, so it is used only where there are none. Raises SpecError for an invalid
    proxy.
    """
    from huggingface_hub import constants

    if any(map(proxy_for_scheme, CARRIED)):
        constants.HF_HUB_DISABLE_XET = True
    _set_hub_client()


@cache
def _set_hub_client() -> None:
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import hf_request_event_hook

    def client() -> httpx2.Client:
        return httpx2.Client(
            transport=RoutedTransport(),
            event_hooks={"request": [hf_request_event_hook]},
            follow_redirects=True,
            timeout=None,
        )

    set_client_factory(client)
