"""``rashomon serve``: the interface in a browser, on this machine alone unless asked."""

from __future__ import annotations

import ipaddress
import logging
import shlex
import socket
import sys
from typing import Any
from urllib.parse import urlsplit

from app.report.text import clean
from app.store.workspace import Workspace
from benchmarks.errors import SpecError

_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def serve(workspace: Workspace, *, host: str, port: int, images: str | None) -> int:
    """Serve the interface at ``http://host:port`` until Ctrl-C; each tab of a browser has one of its own; the exit code.

    Raises SpecError where the address cannot be used.
    """
    _free(host, port)
    if not _loopback(host):
        print(
            f"WARNING: whoever reaches {clean(host)}:{port} can read this workspace, start runs and use your keys: there is no "
            "password and no encryption.",
            file=sys.stderr,
        )
    command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(workspace.path)]
    command += ["--images", images or "half"]  # a browser's terminal shows no Sixels
    server = _server(shlex.join(command), host, port)
    where = f"[{host}]" if ":" in host else host
    print(f"http://{where}:{port}  (Ctrl-C ends it; runs go on)", flush=True)
    server.serve()
    return 0


def _server(command: str, host: str, port: int) -> Any:
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
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

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
