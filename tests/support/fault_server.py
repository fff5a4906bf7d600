"""A server on loopback with the APIs of OpenAI, Azure, Anthropic and Gemini, faults on demand, and counters."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from mlx_backends.remote.endpoint_examination import QUESTION
from tests.support.trust import agree_to, forget

HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"

FAULTS = (
    "429",
    "429 retry-after=0.05",
    "500",
    "529",
    "timeout",
    "reset",
    "close",
    "html",
    "html 502",
    "half",
    "empty",
    "no-text",
)
"""Faults that pass; the others that a ``fault`` function may give are in :meth:`_Handler._fault`."""

PICTURE = 64
"""The prompt tokens of a picture."""

Speaks = Literal["openai", "anthropic", "gemini"]


def faults(seed: int, share: float, kinds: Sequence[str] = FAULTS) -> Callable[[int], str | None]:
    """A fault for about ``share`` of the requests, by their number; the same for one seed."""

    def fault(number: int) -> str | None:
        drawn = hashlib.sha256(f"{seed}:{number}".encode()).digest()
        if int.from_bytes(drawn[:4]) >= share * 2**32:
            return None
        return kinds[int.from_bytes(drawn[4:8]) % len(kinds)]

    return fault


@dataclass(frozen=True)
class Received:
    """A request as it came in; ``at`` is on the monotonic clock, ``under_way`` counts it and those not yet ended.

    ``number`` is 0 for one that examines the server.
    """

    number: int
    at: float
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    prompt: str
    under_way: int
    fault: str | None
    pictures: int = 0


class FaultServer:
    """``with FaultServer(reply, fault) as server``: one base URL, ``server.url``, for every API.

    ``reply(prompt, times)`` is what the model says to the text of a conversation, the ``times``-th time that it is
    answered. ``agreed``: the user has agreed to its address.

    ``fault(number)`` is what befalls the request of that number, from 1 on, or None. ``latency`` is how many
    seconds a reply takes, ``hang`` how many a "timeout" does. Tokens are counted as they are sent in whole replies,
    :data:`PICTURE` for each picture.

    What a run sends only to examine the server has no number, no fault and no latency; ``examined`` counts it.
    """

    def __init__(
        self,
        reply: Callable[[str, int], str] = lambda prompt, times: "yes",
        fault: Callable[[int], str | None] = lambda number: None,
        *,
        latency: float = 0.0,
        hang: float = 3.0,
        agreed: bool = True,
    ) -> None:
        self.agreed = agreed
        self.reply = reply
        self.fault = fault
        self.latency = latency
        self.hang = hang
        self.received: list[Received] = []
        self.examined = 0
        self.replies: list[str] = []
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.under_way = 0
        self._answered: Counter[str] = Counter()
        self._pictured: set[str] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.faulty = self

    @property
    def url(self) -> str:
        """The base URL, as a user of an OpenAI-compatible server gives it."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def requests(self) -> int:
        """The number of requests received."""
        return len(self.received)

    def __enter__(self) -> FaultServer:
        if self.agreed:
            agree_to(self.url)
        else:
            forget(self.url)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Received:
        """Note a request that came in."""
        with self._lock:
            self.under_way += 1
            prompt, pictures = _prompt(body), _pictures(body)
            examines = QUESTION in prompt or (not pictures and prompt in self._pictured)
            number = 0 if examines else len(self.received) + 1
            fault = None if examines else self.fault(number)
            taken = Received(
                number, time.monotonic(), path, headers, body, prompt, self.under_way, fault, pictures=pictures
            )
            if examines:
                self.examined += 1
            else:
                self.received.append(taken)
                self._pictured.update([prompt] * bool(pictures))
            return taken

    def over(self) -> None:
        """Note that a request has ended."""
        with self._lock:
            self.under_way -= 1

    def answer(self, taken: Received) -> str:
        """Return the model's next reply to a request."""
        prompt = taken.prompt
        if not taken.number:
            return "yes"
        with self._lock:
            self._answered[prompt] += 1
            reply = self.reply(prompt, self._answered[prompt])
            self.replies.append(reply)
            return reply

    def used(self, taken: Received, text: str) -> tuple[int, int]:
        """Count and give the tokens of a whole reply."""
        tokens = max(1, len(taken.prompt) // 4) + PICTURE * taken.pictures, len(text.split())
        with self._lock:
            self.prompt_tokens += tokens[0]
            self.completion_tokens += tokens[1]
        return tokens

    def wait(self, seconds: float) -> None:
        """Sleep, unless the server is closed."""
        self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    faulty: FaultServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away, as they do when a call takes too long."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        faulty = self.server.faulty
        taken = faulty.take(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        try:
            if taken.fault is None or not self._fault(taken, taken.fault):
                faulty.wait(faulty.latency if taken.number else 0)
                self._json(200, self._completion(taken, faulty.answer(taken)))
        finally:
            faulty.over()

    def _fault(self, taken: Received, fault: str) -> bool:
        """Apply a fault; return False if the request is to be answered nevertheless."""
        kind, _, detail = fault.partition(" ")
        faulty = self.server.faulty
        match kind:
            case "timeout":
                faulty.wait(faulty.hang)
                self.close_connection = True
            case "reset":
                # With nothing to linger for, closing a socket resets the connection.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
            case "close":
                self.close_connection = True
            case "html":
                self._bytes(int(detail or 200), HTML.encode(), "text/html")
            case "half":
                data = json.dumps(self._shape(taken, faulty.reply(taken.prompt, 1), (1, 1))).encode()
                self._bytes(200, data[: len(data) // 2])
            case "empty" | "no-text":
                self._json(200, self._completion(taken, None if kind == "empty" else ""))
            case "content-filter":
                self._json(200, self._completion(taken, "I must not", "content_filter"))
            case "length":
                self._json(200, self._completion(taken, faulty.answer(taken), "length"))
            case "no-usage":
                response = self._shape(taken, faulty.answer(taken), (0, 0))
                self._json(200, {key: value for key, value in response.items() if "usage" not in key})
            case "raw":
                self._bytes(200, detail.encode("utf-8", "surrogatepass"))
            case "drip":
                self.send_response(200)
                self.send_header("content-length", "1000")
                self.end_headers()
                self._drip(b" " * 1000)
            case "drip-headers":
                self._drip(b"HTTP/1.1 200 OK\r\nx-slow: " + b"a" * 1000)
            case "flood":
                self.send_response(200)
                self.send_header("content-length", str(10**9))
                self.end_headers()
                with suppress(OSError):
                    for _ in range(1000):
                        self.wfile.write(b"x" * 10**6)
                self.close_connection = True
            case "gzip":
                self._bytes(200, b"\x1f\x8b" + b"0" * 100, headers={"content-encoding": "gzip"})
            case "redirect":
                self._bytes(307, b"", headers={"location": detail})
            case "echo":
                refusal = f"key {self._key()} is wrong"
                self._json(int(detail or 401), {"error": {"message": refusal, "type": "authentication_error"}})
            case "echo-answer":
                self._json(200, self._completion(taken, f"your key is {self._key()}"))
            case "refuses":
                names = [name for name in detail.split(",") if name in _names(taken.body)]
                if not names:
                    return False
                message = f"Unsupported parameter: '{names[0]}' is not supported with this model."
                self._json(400, {"error": {"message": message, "param": names[0], "code": "unsupported_parameter"}})
            case _:
                name, _, value = detail.partition("=")
                codes = {"insufficient_quota": 429, "content_filter": 400}
                code = {"code": kind} if kind in codes else {}
                error = {"message": f"told to fail with {kind}", "type": "api_error", **code}
                self._json(codes.get(kind) or int(kind), {"error": error}, {name: value} if name else {})
        return True

    def _key(self) -> str:
        names = ("authorization", "api-key", "x-api-key", "x-goog-api-key")
        return next((self.headers[name] for name in names if self.headers[name]), "")

    def _drip(self, data: bytes) -> None:
        with suppress(OSError):
            for byte in data:
                self.wfile.write(bytes([byte]))
                self.server.faulty.wait(0.02)
        self.close_connection = True

    def _speaks(self) -> Speaks:
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            return "anthropic"
        return "gemini" if path.endswith(":generateContent") else "openai"

    def _completion(self, taken: Received, text: str | None, reason: str = "stop") -> dict[str, Any]:
        return self._shape(taken, text, self.server.faulty.used(taken, text or ""), reason)

    def _shape(
        self, taken: Received, text: str | None, tokens: tuple[int, int], reason: str = "stop"
    ) -> dict[str, Any]:
        """A reply as the API asked gives it; without any content where ``text`` is None."""
        match self._speaks():
            case "openai":
                choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
                return {
                    "id": f"c-{taken.number}",
                    "object": "chat.completion",
                    "created": 1,
                    "model": taken.body.get("model"),
                    "choices": [] if text is None else [choice],
                    "usage": {
                        "prompt_tokens": tokens[0],
                        "completion_tokens": tokens[1],
                        "total_tokens": sum(tokens),
                    },
                }
            case "anthropic":
                reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
                return {
                    "id": f"m-{taken.number}",
                    "type": "message",
                    "role": "assistant",
                    "model": taken.body.get("model"),
                    "content": [] if text is None else [{"type": "text", "text": text}],
                    "stop_reason": reasons[reason],
                    "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
                }
            case "gemini":
                reasons = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
                content = {"role": "model", "parts": [{"text": text}]}
                return {
                    "candidates": [] if text is None else [{"content": content, "finishReason": reasons[reason]}],
                    "usageMetadata": {"promptTokenCount": tokens[0], "candidatesTokenCount": tokens[1]},
                }

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self._bytes(status, json.dumps(value).encode(), headers=headers)

    def _bytes(
        self, status: int, data: bytes, kind: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _names(body: dict[str, Any]) -> set[str]:
    """The parameters of a request, Gemini's without their folder."""
    config = body.get("generationConfig")
    return {*body, *(config if isinstance(config, dict) else ())}


def _prompt(body: dict[str, Any]) -> str:
    """Every text of a conversation, a line each, whichever API it is for."""
    turns = body.get("messages") or body.get("contents") or []
    system = body.get("system") or body.get("systemInstruction") or []
    return "\n".join([*_texts(system), *(text for turn in turns for text in _texts(turn))])


def _texts(turn: Any) -> list[str]:
    if isinstance(turn, str):
        return [turn]
    if isinstance(turn, list):
        return [text for item in turn for text in _texts(item)]
    for key in ("content", "parts", "text"):
        if isinstance(turn, dict) and key in turn:
            return _texts(turn[key])
    return []


def _pictures(body: dict[str, Any]) -> int:
    """The number of pictures in a conversation, whichever API it is for."""
    turns = json.dumps(body.get("messages") or body.get("contents") or [])
    return sum(turns.count(f'"{key}": {{') for key in ("image_url", "source", "inlineData", "inline_data"))
