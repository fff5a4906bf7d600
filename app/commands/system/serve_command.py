"""``rashomon serve``: the terminal interface in a browser, by default only on this machine."""

from __future__ import annotations

import logging
import shlex
import sys
from typing import Any

from app.store.workspace import Workspace
from app.text.text_escaping import clean
from app.view.served.browser_admission import (
    HEADERS,
    Admission,
    AdmissionRequest,
    RefusedError,
    check_address,
    is_loopback,
)
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
    check_address(host, port)
    if not is_loopback(host):
        print(
            f"WARNING: the connection to {clean(host)}:{port} is not encrypted. Anybody who can read the traffic can take over "
            "the session, read this workspace, start runs and use your API keys.",
            file=sys.stderr,
        )
    command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(workspace.path)]
    command += ["--images", images or "half"]  # a browser's terminal does not support Sixel
    admission = Admission("rashomon serve", host, f"rashomon-{port}")
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
        token = request.query.get("token")
        secret = request.cookies.get(admission.cookie)
        asked = AdmissionRequest(
            request.method, request.path, request.host, request.headers.get("Origin"), token, secret
        )
        try:
            new_secret = admission.admit(asked)
        except RefusedError as refusal:
            raise web.HTTPForbidden(text=str(refusal)) from refusal
        if new_secret is not None:
            redirect = web.HTTPSeeOther("/", headers={**HEADERS, "Cache-Control": "no-store"})
            if new_secret:
                redirect.set_cookie(admission.cookie, new_secret, path="/", httponly=True, samesite="Strict")
            raise redirect
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers.update(HEADERS)
        return response

    return Guarded(command, host=host, port=port, title="rashomon")
