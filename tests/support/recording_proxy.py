"""A proxy on loopback that records what it is asked to carry, and carries nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Carried:
    """A request as the proxy received it; ``target`` is a whole URL, or HOST:PORT of a tunnel."""

    method: str
    target: str
    headers: dict[str, str]


class RecordingProxy:
    """``with RecordingProxy() as proxy``: a hostile one, whose refusals repeat the credentials that it was sent."""

    def __init__(self) -> None:
        self.carried: list[Carried] = []
        carried = self.carried

        class Handler(_Handler):
            recorded = carried

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.address}"

    def __enter__(self) -> RecordingProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Ignore clients that have disconnected."""


class _Handler(BaseHTTPRequestHandler):
    recorded: list[Carried]

    def log_message(self, *_: object) -> None:
        pass

    def _refuse(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.recorded.append(Carried(self.command, self.path, headers))
        self.rfile.read(int(headers.get("content-length", 0)))
        credentials = headers.get("proxy-authorization", "no credentials")
        self.send_response(407, f"not with {credentials}")
        self.send_header("content-length", str(len(credentials)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(credentials.encode())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)
