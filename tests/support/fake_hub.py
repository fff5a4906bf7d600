"""A server on loopback that stands in for the Hugging Face Hub and other hosts, with faults on demand."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

REVISION = "a" * 40
_LARGE = 1000
"""Bytes from which on a file is kept as the Hub keeps large ones: by its sha256, on another address."""


@dataclass
class Repo:
    """A repository. ``shut`` is 401, 403 or "gated": the files are refused so; with "private" all of it is."""

    kind: Literal["model", "dataset"]
    files: dict[str, bytes]
    licence: str = "apache-2.0"
    shut: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of files in the listing, where a hostile one differs from the path."""


@dataclass(frozen=True)
class HubRequest:
    """A request that came in."""

    method: str
    path: str
    range: str | None
    authorization: str | None
    host: str


class FakeHub:
    """``repos`` by id, ``files`` of other hosts by "HOST/PATH".

    ``faults`` are used up one a GET, by the end of the path: "404", "500", "429", "cut N" closes after N bytes, "wait N"
    sends N bytes and no more until :attr:`released` (each raises :attr:`stalled`), "flip" changes a byte, "html" is a
    portal's page, "whole" knows no ranges, "elsewhere" answers with another range. The last one stays if it ends in "!".
    """

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.files: dict[str, bytes] = {}
        self.faults: defaultdict[str, list[str]] = defaultdict(list)
        self.asked: list[HubRequest] = []
        self.released = threading.Event()
        self.stalled = threading.Semaphore(0)
        self.lock = threading.Lock()
        hub = self

        class Handler(_Handler):
            server_of = hub

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def variables(self) -> dict[str, str]:
        """The environment that redirects all downloads to this server."""
        return {
            "HF_ENDPOINT": self.url,
            "RASHOMON_MIRROR": f"{self.url}/mirror",
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "*",
        }

    @property
    def constants(self) -> dict[str, Any]:
        """The constants that the Hub's library derives from :attr:`variables` on import."""
        return {
            "ENDPOINT": self.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": f"{self.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
            "HF_HUB_OFFLINE": False,
        }

    def gets(self, end: str) -> list[HubRequest]:
        """The GETs of the file whose path ends so."""
        return [request for request in self.asked if request.method == "GET" and request.path.endswith(end)]

    @contextmanager
    def running(self) -> Iterator[FakeHub]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.released.set()
            self._server.shutdown()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Ignore clients that have disconnected, as some tests do on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server_of: FakeHub
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub, path = self.server_of, unquote(urlsplit(self.path).path)
        request = HubRequest(
            self.command, path, self.headers["Range"], self.headers["Authorization"], self.headers["Host"]
        )
        with hub.lock:
            hub.asked.append(request)
        if path.startswith("/api/"):
            return self._api(path.split("/"))
        if path.startswith("/mirror/"):
            return self._file(path, hub.files.get(path.removeprefix("/mirror/")))
        if path.startswith("/cdn/"):
            _, _, name, file = path.split("/", 3)
            return self._file(path, hub.repos[name.replace("--", "/")].files[file])
        return self._resolve(path)

    def _api(self, parts: list[str]) -> None:
        kind, name = parts[2].removesuffix("s"), "/".join(parts[3:5])
        repo = self.server_of.repos.get(name)
        if repo is None or repo.kind != kind or repo.shut == "private":
            is_login_missing = repo is None and not self.headers["Authorization"]
            return self._send(401 if is_login_missing else 404, b"{}", {"X-Error-Code": "RepoNotFound"})
        if parts[5:6] == ["tree"]:
            return self._send(200, json.dumps([_entry(repo, *file) for file in repo.files.items()]).encode())
        info = {
            "id": name,
            "sha": REVISION,
            "tags": [f"license:{repo.licence}"],
            "siblings": [],
            "gated": repo.shut == "gated",
        }
        stall = self._fault("/".join(parts)).startswith("wait")
        return self._send(200, json.dumps(info).encode(), limit=0 if stall else None, stall=stall)

    def _resolve(self, path: str) -> None:
        where = path.removeprefix("/datasets").removeprefix("/")
        name, _, rest = where.partition("/resolve/")
        file = rest.partition("/")[2]
        repo = self.server_of.repos.get(name)
        if repo is None:
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        if repo.shut and self.headers["Authorization"] != "Bearer right":
            code = {"gated": "GatedRepo"}.get(repo.shut, "")
            return self._send(403 if repo.shut in ("gated", "403") else 401, b"", {"X-Error-Code": code})
        if file not in repo.files:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": REVISION})
        data = repo.files[file]
        marks = {"X-Repo-Commit": REVISION, "ETag": f'"{_oid(data)}"'}
        if len(data) < _LARGE:
            return self._file(path, data, marks)
        large = {"X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{hashlib.sha256(data).hexdigest()}"'}
        # Another host, as the real one: a token must not go there.
        place = self.server_of.url.replace("127.0.0.1", "localhost")
        return self._send(302, b"", {**marks, **large, "Location": f"{place}/cdn/{name.replace('/', '--')}/{file}"})

    def _file(self, path: str, data: bytes | None, headers: Mapping[str, str] | None = None) -> None:
        fault = self._fault(path)
        if data is None or fault == "404":
            return self._send(404, b"not here")
        if fault in ("401", "403", "429", "500", "503"):
            return self._send(int(fault), b"", {"Retry-After": "0.01"})
        if fault == "html":
            return self._send(200, b"<html>Log in to the hotel's network</html>")
        if fault == "flip":
            data = bytes([data[0], data[1], data[2], data[3] ^ 1]) + data[4:]
        begin = 0
        if self.headers["Range"] and fault != "whole":
            begin = int(self.headers["Range"].removeprefix("bytes=").partition("-")[0])
            if begin >= len(data):
                return self._send(416, b"")
        marks = dict(headers or {})
        if begin:
            begin += fault == "elsewhere"
            marks["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        limit = int(fault.partition(" ")[2]) if fault.startswith(("cut", "wait")) else None
        return self._send(206 if begin else 200, data[begin:], marks, limit, stall=fault.startswith("wait"))

    def _fault(self, path: str) -> str:
        hub = self.server_of
        if self.command != "GET":
            return ""
        with hub.lock:
            for end, waiting in hub.faults.items():
                if path.endswith(end) and waiting:
                    return waiting[0][:-1] if waiting[0].endswith("!") else waiting.pop(0)
        return ""

    def _send(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        limit: int | None = None,
        stall: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            self.wfile.write(body[:limit])
            self.wfile.flush()
            if limit is not None:
                if stall:
                    self.server_of.stalled.release()
                    self.server_of.released.wait(60)
                    self.wfile.write(body[limit:])
                else:
                    self.close_connection = True
                    self.connection.shutdown(2)
        except OSError:
            self.close_connection = True


def _oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _entry(repo: Repo, name: str, data: bytes) -> dict[str, Any]:
    entry = {"type": "file", "path": repo.names.get(name, name), "size": len(data), "oid": _oid(data)}
    if len(data) >= _LARGE:
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return entry
