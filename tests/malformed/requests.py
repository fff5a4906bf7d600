"""Malformed requests to the page of `rashomon view`, as bytes on a socket."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.malformed.case import SEED
from tests.support.viewed import Viewer

Raw = Callable[[Viewer], bytes | list[bytes]]
"""A function that returns the bytes to send, or the bytes of several connections that are open at the same time."""

CLOSED = 0
"""The status of a connection that the server ends, or leaves, without an answer."""

_SECONDS = 3.0


def send(viewer: Viewer, raw: bytes, *, wait: float = _SECONDS, half: bool = False) -> tuple[int, bytes]:
    """Return the status of the first answer, and all that the server sends; ``half`` closes our side behind the request."""
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=wait) as connection:
        answer = b""
        with suppress(OSError):  # the server has closed the connection, or waits for more
            connection.sendall(raw)
            if half:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                answer += piece
                if _is_whole(answer):
                    break
    words = answer.split(None, 2)
    return (int(words[1]) if len(words) > 1 and words[1].isdigit() else CLOSED), answer


def _is_whole(answer: bytes) -> bool:
    """Return whether the first answer is complete."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None)
    return bool(end) and length is not None and len(body) >= int(length.split(b":")[1])


def _request(
    viewer: Viewer,
    target: str | bytes = "/api/head",
    method: str = "GET",
    body: bytes = b"",
    **headers: str | bytes | None,
) -> bytes:
    """Return a request of the page's own browser with other ``headers``: ``_`` for ``-``, None to leave one out."""
    values: dict[str, str | bytes | None] = {
        "Host": f"127.0.0.1:{viewer.port}",
        "Cookie": viewer.cookie,
        "Connection": "close",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    target = target.encode() if isinstance(target, str) else target
    lines = [method.encode() + b" " + target + b" HTTP/1.1"]
    lines += [
        name.encode() + b": " + (value if isinstance(value, bytes) else value.encode("latin-1"))
        for name, value in values.items()
        if value is not None
    ]
    return b"\r\n".join([*lines, b"", body])


def _post(viewer: Viewer, path: str, body: bytes, **headers: str | bytes | None) -> bytes:
    values = {
        "Origin": viewer.origin,
        "Content_Type": "application/json",
        "Content_Length": str(len(body)),
    }
    merged: dict[str, Any] = {**values, **headers}
    return _request(viewer, f"/api/{path}", "POST", body, **merged)


def _to(target: str | bytes, method: str = "GET", **headers: Any) -> Raw:
    return lambda viewer: _request(viewer, target, method, **headers)


def _json(path: str, value: Any) -> Raw:
    return lambda viewer: _post(viewer, path, value if isinstance(value, bytes) else json.dumps(value).encode())


def _bytes(data: bytes) -> Raw:
    return lambda viewer: data


def _inside(change: Callable[[bytes], bytes]) -> Raw:
    return lambda viewer: change(_request(viewer))


_BEGIN = {"run": 0, "name": "Ann"}

REQUESTS: dict[str, tuple[set[int], Raw]] = {
    "method of letters": ({405}, _to("/", "BREW")),
    "method CONNECT": ({405}, _to("127.0.0.1:22", "CONNECT")),
    "method of 100,000 letters": ({400, 405}, _to("/", "A" * 100_000)),
    "method with a blank": ({400}, _to("/", "GET /etc/passwd HTTP/1.1 GET")),
    "method lower case": ({200, 405}, _to("/api/head", "get")),
    "random bytes": ({400, CLOSED}, _bytes(random.Random(SEED).randbytes(5_000))),
    "TLS": ({400, CLOSED}, _bytes(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))),
    "HTTP/2 preface": ({403}, _bytes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    "HTTP/0.9": ({400, CLOSED}, _bytes(b"GET /\r\n\r\n")),
    "HTTP/9.9": ({200, 400}, _inside(lambda data: data.replace(b"HTTP/1.1", b"HTTP/9.9"))),
    "line feeds alone": ({200, 400, CLOSED}, _inside(lambda data: data.replace(b"\r\n", b"\n"))),
    "carriage returns alone": ({400, CLOSED}, _inside(lambda data: data.replace(b"\r\n", b"\r"))),
    "NUL in the target": ({400}, _to(b"/api/\0head")),
    "NUL in a header": ({400}, _to("/api/head", X_Y=b"a\0b")),
    "header without a colon": ({400}, _inside(lambda data: data.replace(b"Connection:", b"Connection"))),
    "header with a blank before the colon": (
        {400},
        _inside(lambda data: data.replace(b"Connection:", b"Connection :")),
    ),
    "folded header": ({200, 400}, _to("/api/head", X_Y=b"a\r\n b")),
    "header of 1 MB": ({400, 431, CLOSED}, _to("/api/head", X_Y="a" * (1 << 20))),
    "20,000 headers": ({400, 431, CLOSED}, _to("/api/head", **{f"X_{n}": "a" for n in range(20_000)})),
    "cookie of 60 kB": ({400, 403}, _to("/api/head", Cookie="a=" + "b;" * 30_000)),
    "cookie of bytes": ({403}, _to("/api/head", Cookie=bytes(range(128, 256)))),
    "target of 100,000 letters": ({400, 404}, _to("/" + "a" * 100_000)),
    "target absolute": ({400, 403, 404}, _to("http://evil.example/api/head")),
    "target star": ({404, 405}, _to("*", "OPTIONS")),
    "target of two slashes": ({404}, _to("//evil.example/%2e%2e")),
    "host of another": ({403}, _to("/api/head", Host="evil.example")),
    "host rebound": ({403}, _to("/api/head", Host="127.0.0.1.evil.example")),
    "host with a user": ({403}, _to("/api/head", Host="127.0.0.1@evil.example")),
    "host missing": ({400, 403}, _to("/api/head", Host=None)),
    "host empty": ({403}, _to("/api/head", Host="")),
    "host twice": ({400}, _inside(lambda data: data.replace(b"Cookie", b"Host: evil.example\r\nCookie"))),
    "host of brackets": ({403}, _to("/api/head", Host="[::1")),
    "host of bytes": ({400, 403}, _to("/api/head", Host=b"127.0.0.1\xff")),
    "origin null": ({403}, _to("/api/head", Origin="null")),
    "origin of another port": ({403}, _to("/api/head", Origin="http://127.0.0.1:1")),
    "origin of brackets": ({403}, _to("/api/head", Origin="http://[")),
    "origin twice": ({403}, lambda v: _request(v, Origin=f"{v.origin}, http://evil.example")),
    "path of dots": ({404}, _to("/../../../etc/passwd")),
    "path of encoded dots": ({404}, _to("/%2e%2e/%2e%2e/etc/passwd")),
    "path encoded twice": ({404}, _to("/media/%252e%252e%252fetc%252fpasswd")),
    "path of backslashes": ({404}, _to("/media/..\\..\\etc\\passwd")),
    "path with NUL": ({404}, _to("/media/%00.png")),
    "path of bad encodings": ({404}, _to("/media/%ff%fe%zz%")),
    "path of wide dots": ({404}, _to("/media/%ef%bc%8e%ef%bc%8e%2f")),
    "number of 5,000 digits": ({400}, _to("/api/instance?number=" + "9" * 5_000)),
    "number negative": ({400}, _to("/api/instance?number=-1")),
    "number of wide digits": ({400}, _to("/api/instance?number=%EF%BC%91")),
    "numbers of 20,000": ({400}, _to("/api/rows?numbers=" + ",".join(["0"] * 20_000))),
    "search of 50,000 letters": ({400}, _to("/api/search?words=" + "a" * 50_000)),
    "search of marks": ({200}, _to("/api/search?words=%1b%5b2J%00(%5b*%2b%3f")),
    "query of 8,000 keys": ({200, 400}, _to("/api/head?" + "&".join(f"k{n}" for n in range(8_000)))),
    "answer beyond its end": ({200, 400}, _to("/api/answer?number=0&run=0&from=999999999")),
    "run that is not there": ({400, 404}, _to("/api/answer?number=0&run=99&from=0")),
    "range of bytes": ({200, 206, 404, 416}, _to("/media/x.png", Range="bytes=0-0," * 5_000)),
    "websocket": ({200}, _to("/api/head", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Key="x" * 24)),
    "upgrade to HTTP/2": ({200}, _to("/api/head", Upgrade="h2c", HTTP2_Settings="AAMAAABkAAQAAP__")),
    "expect 100": ({100, 400}, lambda v: _post(v, "labelling/begin", b"", Expect="100-continue", Content_Length="9")),
    "length twice": ({400}, lambda v: _post(v, "labelling/begin", b"{}", Content_length="50")),
    "length negative": ({400}, lambda v: _post(v, "labelling/begin", b"{}", Content_Length="-5")),
    "length of words": ({400}, lambda v: _post(v, "labelling/begin", b"{}", Content_Length="ten")),
    "length huge": ({400}, lambda v: _post(v, "labelling/begin", b"{}", Content_Length="9" * 30)),
    "length of wide digits": ({400}, lambda v: _post(v, "labelling/begin", b"{}", Content_Length=b"\xb2")),
    "length larger than the body": ({400, CLOSED}, lambda v: _post(v, "labelling/begin", b"{}", Content_Length="500")),
    "length and chunks": (
        {400},
        lambda v: _post(v, "labelling/begin", b"0\r\n\r\nGET /api/head HTTP/1.1\r\n\r\n", Transfer_Encoding="chunked"),
    ),
    "chunks alone": (
        {400},
        lambda v: _post(
            v, "labelling/begin", b"2\r\n{}\r\n0\r\n\r\n", Transfer_Encoding="chunked", Content_Length=None
        ),
    ),
    "chunk of negative size": (
        {400},
        lambda v: _post(v, "labelling/begin", b"-1\r\n{}\r\n", Transfer_Encoding="chunked", Content_Length=None),
    ),
    "coding of two kinds": (
        {400, 501},
        lambda v: _post(v, "labelling/begin", b"{}", Transfer_Encoding="gzip, chunked", Content_Length=None),
    ),
    "body a form": (
        {400},
        lambda v: _post(v, "labelling/begin", b"run=0&name=Ann", Content_Type="application/x-www-form-urlencoded"),
    ),
    "body nested": ({400}, _json("labelling/begin", b"[" * 30_000)),
    "body a list": ({400}, _json("labelling/begin", [_BEGIN])),
    "body of odd types": ({400}, _json("labelling/begin", {"run": "0", "name": ["Ann"]})),
    "body true as a number": ({400}, _json("labelling/begin", {"run": True, "name": "Ann"})),
    "body infinite": ({400}, _json("override", b'{"run": 1e999, "number": NaN, "name": "Ann"}')),
    "body of 5,000 digits": ({400}, _json("override", b'{"run": ' + b"9" * 5_000 + b', "name": "Ann"}')),
    "body run 2**70": ({400, 404, 409}, _json("labelling/begin", {"run": 2**70, "name": "Ann"})),
    "body name of escapes": ({200, 400}, _json("labelling/begin", {"run": 0, "name": "\x1b[2J\u202e[bold]" * 200})),
    "body half surrogate": ({200, 400}, _json("labelling/begin", b'{"run": 0, "name": "\\ud800"}')),
    "body UTF-16": ({400}, _json("labelling/begin", json.dumps(_BEGIN).encode("utf-16")[:-1])),
    "body of NUL": ({400}, _json("labelling/begin", bytes(60_000))),
    "item that is not there": (
        {400, 409},
        _json("labelling/give", {**_BEGIN, "item": "../../x", "label": "[bold]"}),
    ),
    "two requests in one": ({200}, lambda v: _request(v, Connection="keep-alive") * 200),
    "300 connections": ({200}, lambda v: [_request(v)] * 300),
    "200 slow senders": ({CLOSED}, lambda v: [_request(v)[:20]] * 200),
    "half-closed": ({200, CLOSED}, lambda v: _request(v)),
}
