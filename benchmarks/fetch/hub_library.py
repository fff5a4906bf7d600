"""Requests of the Hub's own library, which uploads: their replies are checked, and its token stays with the Hub."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx2

from benchmarks.fetch import hub_replies as replies
from benchmarks.fetch.deadlines import deadline
from benchmarks.fetch.hub_repository import endpoint
from benchmarks.fetch.proxied_transport import RoutedTransport
from benchmarks.fetch.proxies import check_proxies
from benchmarks.fetch.web_requests import (
    MAX_REPLY_BYTES,
    REDIRECTIONS,
    TRANSIENT,
    OddReplyError,
    parse_reply,
    redirection,
    same_host,
    transport_problem,
)

_SECONDS, _BYTES_PER_SECOND = 30.0, 64 * 1024
"""The seconds in which a reply must come, besides those for the bytes that are sent."""

_PATIENCE = 20.0
"""The seconds in which the library may try a failed request again."""

_MOST_REQUESTS = 10_000
_CREATE = "POST /api/repos/create"
_KEPT = frozenset({"content-type", "location", "etag", "x-error-code"})
"""Headers of replies that the library reads; others could have it wait for hours."""

_REPLIES: tuple[tuple[str, type[Any]], ...] = (
    (_CREATE, replies.Created),
    (r"POST /api/validate-yaml", replies.Checked),
    (r"POST /api/\w+/[^/]+/[^/]+/preupload/.*", replies.Preupload),
    (r"POST /api/\w+/[^/]+/[^/]+/commit/.*", replies.Commit),
    (r"POST /.*\.git/info/lfs/objects/batch", replies.LargeFiles),
)


class UnreachableError(Exception):
    """A server that does not reply; the message follows its name. The library must not try again."""


def guard_library() -> None:
    """Have the Hub's library send its requests through :class:`_Guard`, without its storage client Xet.

    Xet's client has connections of its own, which read proxies by themselves. Raises SpecError for an invalid proxy.
    """
    from huggingface_hub import constants, set_client_factory
    from huggingface_hub.utils._http import hf_request_event_hook

    check_proxies()
    constants.HF_HUB_DISABLE_XET = True

    def client() -> httpx2.Client:
        return httpx2.Client(
            transport=_Guard(endpoint()),
            event_hooks={"request": [hf_request_event_hook]},
            follow_redirects=True,
            trust_env=False,
            timeout=None,
        )

    set_client_factory(client)


class _Guard(httpx2.BaseTransport):
    """The transport of one upload. Requests raise OddReplyError, UnreachableError, and SpecError for an invalid proxy."""

    def __init__(self, hub: str) -> None:
        self._hub = httpx2.URL(hub)
        self._routed = RoutedTransport()
        self._requests = 0
        self._failing_since: float | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._requests += 1
        if self._requests > _MOST_REQUESTS:
            raise OddReplyError(f"it demands more than {_MOST_REQUESTS:,} requests")
        is_hub = same_host(request.url, self._hub)
        if not is_hub:
            request.headers.pop("Authorization", None)
            if self._hub.scheme == "https" and request.url.scheme != "https":
                raise OddReplyError("it sends the files to an unencrypted address")
        request.headers["Accept-Encoding"] = "identity"
        status, headers, body = self._exchange(request)
        self._check_patience(failed=status in TRANSIENT)
        if status in REDIRECTIONS and not same_host(redirection(request.url, headers.get("Location")), request.url):
            raise OddReplyError("it redirects to another host")
        asked = f"{request.method} {request.url.path}"
        if status == 409 and asked == _CREATE:  # it exists
            body = json.dumps({"url": replies.reply(replies.Created, parse_reply(body)).url}).encode()
        elif status >= 400:
            body = b"{}"  # the library waits, loops and fails by what is in it
        elif is_hub and 200 <= status < 300:
            _check(asked, body)
        kept = [(name, value) for name, value in headers.multi_items() if name.lower() in _KEPT]
        return httpx2.Response(status, headers=kept, content=body, request=request)

    def close(self) -> None:
        self._routed.close()

    def _exchange(self, request: httpx2.Request) -> tuple[int, httpx2.Headers, bytes]:
        length = request.headers.get("Content-Length", "")
        seconds = _SECONDS + (int(length) / _BYTES_PER_SECOND if length.isdecimal() else 0.0)
        try:
            with deadline(seconds, MAX_REPLY_BYTES):
                response = self._routed.handle_request(request)
                try:
                    return response.status_code, response.headers, b"".join(response.iter_raw())
                finally:
                    response.close()
        except httpx2.TransportError as error:
            raise UnreachableError(transport_problem(error)) from error

    def _check_patience(self, *, failed: bool) -> None:
        now = time.monotonic()
        if not failed:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since > _PATIENCE:
            raise UnreachableError("is busy")


def _check(request: str, body: bytes) -> None:
    """Raise OddReplyError if ``body`` is not the Hub's reply to ``request``. Other replies are not acted on."""
    kind = next((kind for pattern, kind in _REPLIES if re.fullmatch(pattern, request)), None)
    if kind is not None:
        replies.reply(kind, parse_reply(body))
