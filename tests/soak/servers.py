"""Loopback servers of the soak: a model behind an API that counts its calls, and a Hub with a small model."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.fake_hub import FakeHub, Repo
from tests.support.seeing_server import SeeingServer

CONCURRENCY = 4
"""The calls at a time of a played run."""
QUESTION = "Query: "
"""The text that the benchmark's questions have and the check of seeing has not."""
_LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")


class ModelServer:
    """A server with OpenAI's API that answers by the request alone, and fails in a share of calls before it answers."""

    def __init__(self, seed: int) -> None:
        self.failing = 0.0
        """The share of calls that fail."""
        self.seconds = 0.02
        self.calls: Counter[str] = Counter()
        """Calls with questions by the name of the model, also those that fail."""
        self.requests: dict[str, Counter[str]] = {}
        """Answered ones by the digest of the request."""
        self.headers: Counter[str] = Counter()
        self._eyes = SeeingServer()
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.url = ""

    def respond(self, body: dict[str, Any]) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        text = json.dumps({key: value for key, value in body.items() if key != "model"}, sort_keys=True)
        is_question = QUESTION in text or all(label in text for label in _LABELS)
        with self._lock:
            fails = self._chance.random() < self.failing
            status = self._chance.choice([429, 500, 503, 0])
            self.calls[body["model"]] += is_question
        time.sleep(self.seconds)
        if fails:
            return status, {"error": {"message": "busy"}}
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self._lock:
            self._eyes.calls.clear()
            status, response = self._eyes.respond(body)
            if is_question:
                self.requests.setdefault(body["model"], Counter())[digest] += 1
        if all(label in text for label in _LABELS):
            response["choices"][0]["message"]["content"] = _LABELS[int(digest, 16) % len(_LABELS)]
        return status, response


@contextmanager
def serving(server: ModelServer) -> Iterator[ModelServer]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            with suppress(OSError):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.headers[self.headers.get("authorization", "")] += 1
                status, response = server.respond(body)
                if not status:
                    self.close_connection = True
                    self.connection.shutdown(2)
                    return
                data = json.dumps(response).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                if status == 429:
                    self.send_header("retry-after", "0.05")
                self.end_headers()
                self.wfile.write(data)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Ignore clients that were killed."""

    http = Server(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def hub_with_model(model: Path) -> FakeHub:
    """Return a Hub that holds the demo model as soak/tiny-N, for a small N."""
    hub = FakeHub()
    files = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    for number in range(3):
        hub.repos[f"soak/tiny-{number}"] = Repo("model", {**files, "README.md": b"---\nlicense: mit\n---\n"}, "mit")
    return hub
