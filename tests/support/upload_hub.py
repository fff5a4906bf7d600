"""A server on loopback to which data sets are uploaded as to the Hugging Face Hub, with refusals on demand."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

TOKEN = "hf_right"


class UploadHub:
    """The data sets that were uploaded, and every request.

    ``private`` holds the visibility of each data set by its name. ``refuse`` maps the end of a path to the status with which
    requests to it are refused; ``garbage`` are ends of paths that are answered with no JSON. ``large`` has files uploaded by
    their sha256, as the Hub has large ones. A new data set is public if ``always_public``.
    """

    def __init__(self) -> None:
        self.private: dict[str, bool] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.tokens: set[str | None] = set()
        self.refuse: dict[str, int] = {}
        self.garbage: set[str] = set()
        self.large = False
        self.always_public = False
        hub = self

        class Handler(_Handler):
            server_of = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[UploadHub]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_of: UploadHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"] or 0)))

    def do_PUT(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"] or 0)))

    def _answer(self, body: bytes) -> None:
        hub, path = self.server_of, urlsplit(self.path).path
        hub.asked.append((self.command, path))
        if not path.startswith("/blob/"):
            hub.tokens.add(self.headers["Authorization"])
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self._send(401, {"error": "Invalid credentials"})
        for end, status in hub.refuse.items():
            if path.endswith(end):
                return self._send(status, {"error": "no"})
        if any(path.endswith(end) for end in hub.garbage):
            return self._send(200, None)
        return self._send(*self._result(path, body))

    def _result(self, path: str, body: bytes) -> tuple[int, Any]:
        hub = self.server_of
        if path.startswith("/blob/"):
            hub.blobs[path.removeprefix("/blob/")] = body
            return 200, {}
        if path == "/api/repos/create":
            facts = json.loads(body)
            name = f"{facts['organization']}/{facts['name']}"
            if name in hub.private:
                return 409, {"error": "exists", "url": f"{hub.url}/datasets/{name}"}
            hub.private[name] = not hub.always_public and facts.get("visibility", "public") == "private"
            hub.files[name] = {}
            return 200, {"url": f"{hub.url}/datasets/{name}", "name": name}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if path.endswith("/info/lfs/objects/batch"):
            wanted = json.loads(body)["objects"]
            actions = [{**item, "actions": {"upload": {"href": f"{hub.url}/blob/{item['oid']}"}}} for item in wanted]
            return 200, {"transfer": "basic", "objects": actions}
        _, _, _, owner, repo, *rest = [*path.split("/"), "", ""]
        name = f"{owner}/{repo}"
        if name not in hub.private:
            return 404, {"error": "no repository"}
        match rest[0]:
            case "preupload":
                mode = "lfs" if hub.large else "regular"
                modes = [
                    {"path": file["path"], "uploadMode": mode if file["path"].endswith(".parquet") else "regular"}
                    for file in json.loads(body)["files"]
                ]
                return 200, {"files": [{**facts, "shouldIgnore": False} for facts in modes]}
            case "commit":
                for line in map(json.loads, body.splitlines()):
                    value = line["value"]
                    if line["key"] == "file":
                        hub.files[name][value["path"]] = base64.b64decode(value["content"])
                    elif line["key"] == "lfsFile":
                        data = hub.blobs[value["oid"]]
                        assert hashlib.sha256(data).hexdigest() == value["oid"]
                        hub.files[name][value["path"]] = data
                return 200, {"commitUrl": f"{hub.url}/datasets/{name}/commit/{'a' * 40}", "commitOid": "a" * 40}
            case _:
                return 200, {"id": name, "sha": "a" * 40, "private": hub.private[name], "tags": [], "siblings": []}

    def _send(self, status: int, value: Any) -> None:
        body = b"<html>" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)
