"""A Hub on loopback whose replies are right but for one, which is changed by a seed; and a second host that must get no token."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

REVISION = "a" * 40
TOKEN = "hf_rightrightright"
NAME = "org/it"
_HEADER = b'{"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}}'
FILES = {
    "config.json": json.dumps({"model_type": "qwen2_vl", "architectures": ["X"], "vocab_size": 10}).encode(),
    "model.safetensors": len(_HEADER).to_bytes(8, "little") + _HEADER + bytes(8),
    "tokenizer.json": b"{}",
    "data/rows.json": b"[]",
    "README.md": b"---\nlicense: mit\n---\n",
}
READ_STEPS = ("info", "tree", "file")
PUSH_STEPS = ("create", "info", "validate", "preupload", "batch", "blob", "commit")

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**30, 1.5, "", "x", "../../x", "/tmp/PWNED", "a/../../../x", "C:\\x", "\u202ex", "a\nb",
    "x" * 5000, "0" * 39, "G" * 40, [], {}, [[]], [None], {"a": []}, "http://[", "file:///etc/passwd", "\ud800",
)  # fmt: skip
_BODIES: tuple[bytes, ...] = (
    b"", b"null", b"[3]", b"3", b'"x"', b"{}", b"[]", b"[null]", b"<html>Log in to the hotel's network</html>", b"NaN",
    b"\xff\xfe\x00", b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"a":' * 50_000, b'{"a":1e999}', b"9" * 10_000, b" " * 20_000_000,
    b'{"sha":' + b"x" * 1000,
)  # fmt: skip
_STATUSES = (
    201,
    202,
    204,
    206,
    300,
    304,
    305,
    400,
    401,
    402,
    403,
    404,
    405,
    409,
    410,
    413,
    416,
    418,
    429,
    451,
    500,
    501,
    502,
    503,
    599,
    999,
)
_HEADERS: tuple[tuple[str, str], ...] = (
    ("Content-Encoding", "gzip"), ("Content-Encoding", "br"), ("Content-Encoding", "x"),
    ("Content-Type", "text/html; charset=rot13"),
    ("Link", '<{here}>; rel="next"'), ("Link", '<{there}/api/x>; rel="next"'), ("Link", "<http://[>; rel=next"),
    ("Link", "<;;;,,,>"),
    ("Link", '<file:///etc/passwd>; rel="next"'), ("X-Error-Code", "GatedRepo\x1b[31m"), ("Retry-After", "99999"),
    ("X", "y" * 60_000),
    ("Set-Cookie", "a=b; Domain=.com"), ("Content-Range", "bytes 999-1000/99"), ("ETag", '"../../x"'),
    ("RateLimit", '"api";r=0;t=99999'),
    ("Transfer-Encoding", "chunked"),
    ("Content-Length", "-5"), ("Content-Length", "1e9"), ("Content-Length", "9" * 30), ("\x01", "x"),
)  # fmt: skip
_LOCATIONS = (
    "{there}/x",
    "{here}",
    "file:///etc/passwd",
    "http://",
    "",
    "//",
    "http://[",
    "\x00",
    "ftp://x/y",
    "/",
    "http://u:p@{host}/x",
)


@dataclass
class Reply:
    """A reply: its status, headers and body, and a way of sending it."""

    status: int
    body: bytes
    headers: list[tuple[str, str]] = field(default_factory=list)
    sending: str = ""


class OddHub:
    """A repository :data:`NAME` with :data:`FILES`, which can be pushed to. ``change`` is applied to replies at ``step``."""

    def __init__(self) -> None:
        self.step = ""
        self.change: Callable[[Reply, str, random.Random], None] = lambda reply, here, chance: None
        self.seed = 0
        self.names = FILES
        self.foreign_authorizations: list[str] = []
        self.paths: list[str] = []
        self.released = threading.Event()
        self._servers = [
            ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, foreign=foreign)) for foreign in (False, True)
        ]
        self.url, self.elsewhere = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def mutate(self, seed: int, steps: tuple[str, ...]) -> str:
        """Choose a step and a change by ``seed``; return their names."""
        chance = random.Random(seed)
        self.seed, self.step = seed, chance.choice(steps)
        name = chance.choice(sorted(_CHANGES))
        self.change = _CHANGES[name]
        return f"{self.step} {name}"

    @contextmanager
    def running(self) -> Iterator[OddHub]:
        """Serve until the block ends."""
        for server in self._servers:
            server.daemon_threads, server.block_on_close = True, False
            server.handle_error = lambda *_: None  # type: ignore[method-assign]
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield self
        finally:
            self.released.set()
            for server in self._servers:
                server.shutdown()
                server.server_close()

    def reply(self, method: str, path: str, body: bytes) -> Reply:
        """Return the reply to a request, changed if it is at :attr:`step`."""
        step, reply = self._right(method, path, body)
        if step == self.step:
            self.change(reply, f"{self.url}{path}", random.Random(self.seed))
            reply.headers = [
                (name, value.format(here=f"{self.url}{path}", there=self.elsewhere, host=self.elsewhere[7:]))
                for name, value in reply.headers
            ]
        return reply

    def _right(self, method: str, path: str, body: bytes) -> tuple[str, Reply]:
        place = unquote(urlsplit(path).path)
        if place == "/api/repos/create":
            return "create", _json({"url": f"{self.url}/datasets/{NAME}", "name": NAME})
        if place == "/api/validate-yaml":
            return "validate", _json({"errors": [], "warnings": []})
        if place.endswith("/info/lfs/objects/batch"):
            objects = [
                {**item, "actions": {"upload": {"href": f"{self.url}/blob/{item['oid']}"}}}
                for item in json.loads(body)["objects"]
            ]
            return "batch", _json({"transfer": "basic", "objects": objects})
        if place.startswith("/blob/"):
            return "blob", _json({})
        if "/preupload/" in place:
            modes = [
                {
                    "path": item["path"],
                    "uploadMode": "lfs" if item["path"].endswith(".parquet") else "regular",
                    "shouldIgnore": False,
                }
                for item in json.loads(body)["files"]
            ]
            return "preupload", _json({"files": modes})
        if "/commit/" in place:
            return "commit", _json(
                {"commitUrl": f"{self.url}/datasets/{NAME}/commit/{REVISION}", "commitOid": REVISION, "success": True}
            )
        if "/tree/" in place:
            return "tree", _json([_entry(name, data) for name, data in self.names.items()])
        if "/resolve/" in place:
            data = self.names.get(place.partition(f"/resolve/{REVISION}/")[2])
            return "file", Reply(404, b"") if data is None else Reply(200, data)
        return "info", _json({"id": NAME, "sha": REVISION, "private": True, "tags": ["license:mit"], "siblings": []})


def _json(value: Any) -> Reply:
    return Reply(200, json.dumps(value).encode(), [("Content-Type", "application/json")])


def _entry(name: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": name, "size": len(data)}
    entry["oid"] = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    if name.endswith(".safetensors"):
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return entry


def _nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value, as its container and key."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [node for key in keys for node in ((value, key), *_nodes(value[key]))]


def _restructure(change: Callable[[Any, Any, random.Random], None]) -> Callable[[Reply, str, random.Random], None]:
    def changed(reply: Reply, here: str, chance: random.Random) -> None:
        with suppress(ValueError):
            value = json.loads(reply.body)
            if nodes := _nodes(value):
                change(*chance.choice(nodes), chance)
                reply.body = json.dumps(value).encode()
                return
        reply.body = chance.choice(_BODIES)

    return changed


def _replace(container: Any, key: Any, chance: random.Random) -> None:
    container[key] = copy.deepcopy(chance.choice(_VALUES))


def _remove(container: Any, key: Any, chance: random.Random) -> None:
    del container[key]


def _repeat(container: Any, key: Any, chance: random.Random) -> None:
    if isinstance(container, list):
        container += [copy.deepcopy(container[key])] * chance.choice((1, 50_000))
    else:
        container[str(key).upper()] = container[key]


def _rename(container: Any, key: Any, chance: random.Random) -> None:
    names = [place for place in _nodes(container) if isinstance(place[0][place[1]], str)] or [(container, key)]
    inner, place = chance.choice(names)
    inner[place] = (
        str(inner[place]).upper() if chance.random() < 0.5 else f"{inner[place]}/{chance.choice(('..', 'x', ''))}"
    )


def _status(reply: Reply, here: str, chance: random.Random) -> None:
    reply.status = chance.choice(_STATUSES)


def _header(reply: Reply, here: str, chance: random.Random) -> None:
    reply.headers.append(chance.choice(_HEADERS))


def _redirect(reply: Reply, here: str, chance: random.Random) -> None:
    reply.status = chance.choice((301, 302, 303, 307, 308))
    reply.headers.append(("Location", chance.choice(_LOCATIONS)))


def _body(reply: Reply, here: str, chance: random.Random) -> None:
    reply.body = chance.choice(_BODIES)


def _size(reply: Reply, here: str, chance: random.Random) -> None:
    cut = chance.randrange(len(reply.body) + 1)
    reply.body = chance.choice((reply.body[:cut], reply.body + b"x" * 1000, reply.body * 2, bytes(len(reply.body))))


def _compressed(reply: Reply, here: str, chance: random.Random) -> None:
    reply.body = gzip.compress(chance.choice((reply.body, bytes(100_000_000))), 1)
    reply.headers.append(("Content-Encoding", chance.choice(("gzip", "deflate", "identity"))))


def _sending(*ways: str) -> Callable[[Reply, str, random.Random], None]:
    def changed(reply: Reply, here: str, chance: random.Random) -> None:
        reply.sending = chance.choice(ways)

    return changed


_CHANGES: dict[str, Callable[[Reply, str, random.Random], None]] = {
    "status": _status,
    "header": _header,
    "redirect": _redirect,
    "body": _body,
    "size": _size,
    "compressed": _compressed,
    "value": _restructure(_replace),
    "removed": _restructure(_remove),
    "repeated": _restructure(_repeat),
    "renamed": _restructure(_rename),
    "cut": _sending("cut", "reset", "close", "garbage", "chunks", "endless"),
    "slow": _sending("drip", "stall", "drip head"),
}


def _handler(hub: OddHub, *, foreign: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if foreign:
                if authorization := self.headers["Authorization"]:
                    hub.foreign_authorizations.append(authorization)
                return self._send(Reply(200, b"{}"))
            hub.paths.append(self.path)
            return self._send(hub.reply(self.command, self.path, body))

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def _send(self, reply: Reply) -> None:
            with suppress(OSError):
                self._send_by(reply)

        def _send_by(self, reply: Reply) -> None:
            way = reply.sending
            if way in ("close", "reset", "garbage", "drip head"):
                self.close_connection = True
                if way == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                elif way == "garbage":
                    self.wfile.write(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
                elif way == "drip head":
                    self._drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 100_000)
                return
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            body = reply.body
            if way in ("chunks", "endless"):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"5\r\nab\r\nxyz\r\n" if way == "chunks" else b"")
                for _ in range(4000 if way == "endless" else 0):
                    self.wfile.write(b"10000\r\n" + bytes(65536) + b"\r\n")
                self.close_connection = True
                return
            if not any(name in ("Content-Length", "Transfer-Encoding") for name, _ in reply.headers):
                self.send_header("Content-Length", str(len(body) + (100 if way in ("cut", "stall") else 0)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if way == "drip":
                self._drip(body + b" " * 1000)
                return
            self.wfile.write(body)
            self.close_connection = way == "cut"
            if way == "stall":
                hub.released.wait(120)

        def _drip(self, data: bytes) -> None:
            for byte in data:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if hub.released.wait(0.3):
                    return

    return Handler
