"""``rashomon serve``: the terminal interface in a browser, by default only on this machine."""

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
from benchmarks.extras import require_extra

_FOCUS = """
<script>
  new MutationObserver((_, observer) => {
    const keys = document.querySelector(".xterm-helper-textarea");
    if (keys) { keys.focus(); observer.disconnect(); }
  }).observe(document.body, {childList: true, subtree: true});
</script>
</body>"""
"""The end of the page: without it, keys reach the terminal only after a click into it."""

_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def serve(workspace: Workspace, *, host: str, port: int, images: str | None) -> int:
    """Serve the interface at ``http://host:port`` until Ctrl-C; return the exit code. Each browser tab has its own interface.

    The printed link holds a token that opens one session in one browser: other users of this machine can reach the port, but
    are refused without that session. Raises SpecError if the address cannot be used.
    """
    _check_address(host, port)
    if not _loopback(host):
        print(
            f"WARNING: the connection to {clean(host)}:{port} is not encrypted. Anybody who can read the traffic can take over "
            "the session, read this workspace, start runs and use your API keys.",
            file=sys.stderr,
        )
    command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(workspace.path)]
    command += ["--images", images or "half"]  # a browser's terminal does not support Sixel
    admission = Admission(f"rashomon-{port}")
    require_extra("serve", "browsers")
    server = _server(shlex.join(command), host, port, admission)
    address = f"[{host}]" if ":" in host else host
    print(f"http://{address}:{port}/?token={admission.token}", flush=True)
    print("The link opens one session in one browser. Ctrl-C ends the server; runs continue.", flush=True)
    sys.unraisablehook = _ignore_asyncio
    server.serve()
    return 0


def _ignore_asyncio(event: sys.UnraisableHookArgs) -> None:
    """Ignore what asyncio says of loops and pipes that Ctrl-C left unfinished; print other errors of finalisers."""
    if not str(getattr(event.object, "__module__", "")).startswith("asyncio."):
        sys.__unraisablehook__(event)


class Admission:
    """A token that can be exchanged once for a session, whose secret the browser keeps as a cookie."""

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


def _equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), secret.encode())


def _server(command: str, host: str, port: int, admission: Admission) -> Any:
    from aiohttp import web
    from textual_serve.server import Server

    class Guarded(Server):  # type: ignore[misc, unused-ignore]
        """Textual's server, restricted to its own pages, which load nothing from other hosts."""

        def initialize_logging(self) -> None:
            logging.basicConfig(level=logging.WARNING, format="%(message)s")

        async def on_startup(self, app: web.Application) -> None:
            pass

        async def _make_app(self) -> web.Application:
            application = await super()._make_app()
            application.middlewares.append(guard)
            return application

        async def handle_index(self, request: web.Request) -> Any:
            self.public_url = f"{request.scheme}://{request.host}"
            response: Any = await super().handle_index(request)
            response.text = response.text.replace("</body>", _FOCUS)
            return response

    @web.middleware
    async def guard(request: web.Request, handler: Any) -> Any:
        if not is_allowed(request.host, request.headers.get("Origin"), host):
            raise web.HTTPForbidden(text="this page is served only under its own address")
        token = request.query.get("token") if request.path == "/" else None
        if not admission.admits(request.cookies.get(admission.cookie)):
            secret = admission.exchange(token) if token is not None and request.method == "GET" else None
            if secret is None:
                raise web.HTTPForbidden(
                    text="this page is served to one session. Open the link that `rashomon serve` printed; it works once. "
                    "Run `rashomon serve` again for a new link."
                )
            redirect = _without_token(web.HTTPSeeOther("/"))
            redirect.set_cookie(admission.cookie, secret, path="/", httponly=True, samesite="Strict")
            raise redirect
        if token is not None:
            raise _without_token(web.HTTPSeeOther("/"))
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

    def _without_token(response: Any) -> Any:
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"
        return response

    return Guarded(command, host=host, port=port, title="rashomon")


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


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _check_address(host: str, port: int) -> None:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "there is no such address"
        raise SpecError(f"cannot serve at {host}:{port}: {reason}; choose another --port or --host.") from error
