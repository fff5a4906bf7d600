"""``rashomon serve``: the interface in the browser of whoever has the link, on this machine alone unless asked."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import secrets
import shlex
import socket
import sys
from typing import Any
from urllib.parse import urlsplit

from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.errors import SpecError

_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def serve(workspace: Workspace, *, host: str, port: int, images: str | None) -> int:
    """Serve the interface at ``http://host:port`` until Ctrl-C; each tab of a browser has one of its own; the exit code.

    The link that is printed holds a token that opens one session, in one browser: other users of this machine can reach the
    port, but without that session they are refused. Raises SpecError where the address cannot be used.
    """
    _free(host, port)
    if not _loopback(host):
        print(
            f"WARNING: the connection to {clean(host)}:{port} is not encrypted. Whoever reads it on its way can take over the "
            "session, and with it read this workspace, start runs and use your keys.",
            file=sys.stderr,
        )
    command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(workspace.path)]
    command += ["--images", images or "half"]  # a browser's terminal shows no Sixels
    admission = Admission(f"rashomon-{port}")
    server = _server(shlex.join(command), host, port, admission)
    where = f"[{host}]" if ":" in host else host
    print(f"http://{where}:{port}/?token={admission.token}", flush=True)
    print("The link opens one session, in one browser. Ctrl-C ends it; runs go on.", flush=True)
    server.serve()
    return 0


class Admission:
    """A token that is exchanged once for a session, whose secret a browser keeps as a cookie."""

    def __init__(self, cookie: str) -> None:
        self.cookie = cookie
        self.token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._used = False

    def exchange(self, token: str) -> str | None:
        """Return the session's secret for the token, the first time; else None."""
        if self._used or not _equal(token, self.token):
            return None
        self._used = True
        return self._session

    def admits(self, secret: str | None) -> bool:
        """Return whether a cookie holds the session's secret."""
        return self._used and secret is not None and _equal(secret, self._session)


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())


def _server(command: str, host: str, port: int, admission: Admission) -> Any:
    from aiohttp import web
    from textual_serve.server import Server

    class Guarded(Server):  # type: ignore[misc, unused-ignore]
        """Textual's server, for pages of its own alone, which load nothing from elsewhere."""

        def initialize_logging(self) -> None:
            logging.basicConfig(level=logging.WARNING, format="%(message)s")

        async def on_startup(self, app: web.Application) -> None:
            pass

        async def _make_app(self) -> web.Application:
            made = await super()._make_app()
            made.middlewares.append(guard)
            return made

        async def handle_index(self, request: web.Request) -> Any:
            self.public_url = f"{request.scheme}://{request.host}"
            return await super().handle_index(request)

    @web.middleware
    async def guard(request: web.Request, handler: Any) -> Any:
        if not allowed(request.host, request.headers.get("Origin"), host):
            raise web.HTTPForbidden(text="this page is not served to others")
        token = request.query.get("token") if request.path == "/" else None
        if not admission.admits(request.cookies.get(admission.cookie)):
            secret = admission.exchange(token) if token is not None and request.method == "GET" else None
            if secret is None:
                raise web.HTTPForbidden(
                    text="this page is served to one session: open the link that `rashomon serve` printed, which opens one "
                    "once; start it again for another."
                )
            opened = _without_token(web.HTTPSeeOther("/"))
            opened.set_cookie(admission.cookie, secret, path="/", httponly=True, samesite="Strict")
            raise opened
        if token is not None:
            raise _without_token(web.HTTPSeeOther("/"))
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

    def _without_token(answer: Any) -> Any:
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Cache-Control"] = "no-store"
        return answer

    return Guarded(command, host=host, port=port, title="rashomon")


def allowed(asked: str, origin: str | None, host: str) -> bool:
    """Whether a request is one of our own pages: no other site's page can open the interface through a user's browser.

    ``asked`` is its Host header: an address, ``localhost`` or the name that is served, as any other name could be made to lead
    here. ``origin`` is its Origin header, which must be the same place where there is one.
    """
    try:
        name = urlsplit(f"//{asked}").hostname or ""
        place = urlsplit(origin).netloc if origin is not None else asked
    except ValueError:
        return False
    return place == asked and (name in ("localhost", host.lower()) or _address(name) is not None)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _free(host: str, port: int) -> None:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or "there is no such address"
        raise SpecError(f"cannot serve at {host}:{port}: {told}; name another --port or --host.") from error
