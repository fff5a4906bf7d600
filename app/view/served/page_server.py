"""The page's server: on the loopback address, for the browser that opens the link first."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.system.process_signals import handle_stop_signals
from app.text.text_escaping import clean
from app.view.contents.page_contents import Contents
from app.view.served.browser_admission import HEADERS, Admission, AdmissionRequest, RefusedError, address_error
from app.view.served.page_routes import routes
from app.view.served.page_watcher import Watcher
from benchmarks.errors import RashomonError, SpecError
from benchmarks.plugins.find_plugins import plugin_fault

HOST = "127.0.0.1"
COMMAND = "rashomon view"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_LARGEST_BODY = 64 << 10
_METHODS = ("GET", "HEAD", "POST")


def listen(port: int) -> socket.socket:
    """Return a socket at the port of this machine; 0 stands for a free one. Raises SpecError if the port is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise address_error(HOST, port, error, "--port") from error
    return listener


def serve_page(contents: Contents, listener: socket.socket, announce: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C. ``announce`` is called with the link once the server answers."""
    port = listener.getsockname()[1]
    admission = Admission(COMMAND, HOST, f"rashomon-view-{port}")
    for name in ("uvicorn", "uvicorn.error", "asyncio"):  # which would print what a client does
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    server: _Server
    watcher = Watcher(contents, lambda: server.should_exit)
    application = Router(routes=routes(contents, watcher), redirect_slashes=False)
    config = uvicorn.Config(
        _Guard(application, admission),
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        h11_max_incomplete_event_size=_LARGEST_BODY,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config, lambda: announce(f"http://{HOST}:{port}/?token={admission.token}"))
    asyncio.run(server.serve(sockets=[listener]))


class _Server(uvicorn.Server):
    """A server that ends quietly at a signal."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server instead of the process."""

        def end(*_: object) -> None:
            self.should_exit = True

        before = handle_stop_signals(end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and announce it."""
        await super().startup(sockets)
        self._announce()


class _Guard:
    """The checks of every request, the headers of every response, and errors as short texts."""

    def __init__(self, application: ASGIApp, admission: Admission) -> None:
        self._application, self._admission = application, admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        response: Response
        try:
            refusal = self._check(scope)
            if refusal is None:
                await self._application(scope, receive, send_with_headers)
                return
            response = refusal
        except SpecError as error:
            response = PlainTextResponse(clean(str(error)), 400)
        except RashomonError as error:
            response = PlainTextResponse(clean(str(error)), 500)
        except OSError as error:
            response = PlainTextResponse(clean(error.strerror or "the file cannot be read"), 500)
        except Exception as error:
            print(clean("".join(traceback.format_exception(error)), newlines=True), end="", file=sys.stderr)
            fault = plugin_fault(error) or f"a bug in Rashomon ({type(error).__name__}); report it"
            response = PlainTextResponse(clean(str(fault)), 500)
        if not has_begun:
            response.headers["Cache-Control"] = "no-store"
            await response(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> Response | None:
        """Return the response to a request that the page does not get to see."""
        headers, method = Headers(scope=scope), scope["method"]
        secret = cookie_parser(headers.get("cookie", "")).get(self._admission.cookie)
        host, origin = headers.get("host", ""), headers.get("origin")
        token = QueryParams(scope["query_string"]).get("token")
        try:
            new_secret = self._admission.admit(AdmissionRequest(method, scope["path"], host, origin, token, secret))
        except RefusedError as refusal:
            return PlainTextResponse(str(refusal), 403)
        if new_secret is not None:
            redirect = Response(status_code=303, headers={"Location": "/"})
            if new_secret:
                redirect.set_cookie(self._admission.cookie, new_secret, path="/", httponly=True, samesite="strict")
            return redirect
        if method not in _METHODS:
            return PlainTextResponse("the page is only read", 405)
        if method == "POST":
            return _check_post(headers)
        return None


def _check_post(headers: Headers) -> Response | None:
    """Return the response to a POST request that no page of ours sends."""
    if headers.get("origin") is None:  # its value was checked
        return PlainTextResponse("a change must come from the page", 403)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return PlainTextResponse("a change must be JSON", 400)
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit() or int(length[:9]) > _LARGEST_BODY:
        return PlainTextResponse("a change must be short", 400)
    return None
