"""A server on loopback with OpenAI's API that sees, or drops, its pictures in ways that a test chooses."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tests.support.trust import agree_to

Eyes = Literal["reads", "misreads", "colours", "constant", "guesses", "numbers", "blind", "says so", "refuses"]
"""Fate of a picture: the model reads its number, misreads most, answers by the picture, always alike or at random
(as one of three values, or as some number);
it gets no picture and answers from the text, or says so; the server refuses it."""

Usage = Literal["all", "details", "text", "mark", "fixed", "zero", "strings", "none"]
"""The content of the reported prompt tokens: text and pictures, text alone, text and a mark for each picture, or nothing."""


@dataclass
class SeeingServer:
    """A server; ``habit`` changes a response's shape. ``later`` replaces its eyes after ``after`` calls."""

    eyes: Eyes = "reads"
    usage: Usage = "all"
    habit: Callable[[dict[str, Any]], Any] = lambda response: response
    later: Eyes | None = None
    after: int = 0
    truncates_at: int | None = None
    picture_tokens: Callable[[int], int] = lambda call: 85
    """The prompt tokens of a picture by the number of the call."""

    model: Callable[[int], str] = lambda call: "m"
    refuses: Callable[[dict[str, Any]], Any] = lambda body: None
    """The error with which it refuses a body; None for none."""

    url: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)

    def respond(self, body: dict[str, Any]) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        self.calls.append(body)
        if (refusal := self.refuses(body)) is not None:
            return 422, refusal
        parts = [part for message in body["messages"] for part in _parts(message["content"])]
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        pictures = [
            base64.b64decode(part["image_url"]["url"].partition(",")[2]) for part in parts if part["type"] != "text"
        ]
        eyes = self.later if self.later is not None and len(self.calls) > self.after else self.eyes
        if eyes == "refuses" and pictures:
            return 400, {"error": {"message": "this model reads no pictures", "type": "invalid_request_error"}}
        sees = eyes not in ("blind", "says so")
        answer = _answer(eyes, text, pictures)
        tokens = self.picture_tokens(len(self.calls)) * sees
        counted = {"all": tokens, "strings": tokens, "mark": 1}.get(self.usage, 0)
        prompt = len(text) // 4 + counted * len(pictures)
        prompt = min(prompt, (self.truncates_at or prompt + 3) - 3)
        prompt, completion = {"fixed": (400, 5), "zero": (0, 0)}.get(self.usage, (prompt, 3))
        usage: Any = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        if self.usage == "strings":
            usage = {name: str(value) for name, value in usage.items()}
        if self.usage == "details":
            usage["prompt_tokens_details"] = {"image_tokens": tokens * len(pictures)}
        message = {"role": "assistant", "content": answer}
        response = {
            "id": "x",
            "model": self.model(len(self.calls)),
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            **({} if self.usage == "none" else {"usage": usage}),
        }
        return 200, self.habit(response)


@contextmanager
def seeing(server: SeeingServer) -> Iterator[SeeingServer]:
    """Serve until the block ends; the user has agreed to the address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None: ...

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                status, response = server.respond(body)
            data = (response if isinstance(response, str) else json.dumps(response)).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    agree_to(server.url)
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _answer(eyes: Eyes, text: str, pictures: list[bytes]) -> str:
    first = pictures[0] if pictures else b""
    match eyes:
        case "reads":
            return read_number(first) or f"It shows {hashlib.sha256(first).hexdigest()[:6]}."
        case "misreads":
            number = str(read_number(first) or "1234")
            return number if hashlib.sha256(first).digest()[0] < 80 else f"{number[:3]}{(int(number[3]) + 1) % 10}"
        case "colours":
            return f"#{hashlib.sha256(first).hexdigest()[:6]}"
        case "guesses":
            return random.choice(["1234", "2023", "42"])
        case "numbers":
            return str(random.randint(1000, 9999))
        case "says so":
            return "I do not see any image attached. Please upload the image."
        case "blind":
            return str((re.findall(r"\b\d{2,3}\b", text) or ["It is 42."])[-1])
    return "yes"


def read_number(png: bytes) -> str:
    """Read large black digits on white, as a model that sees would; empty where there are none."""
    if not png:
        return ""
    ink = np.asarray(Image.open(io.BytesIO(png)).convert("L")) < 128
    columns = ink.any(axis=0).astype(int)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], columns, [0]])))
    glyphs = [_trimmed(ink[:, start:end]) for start, end in edges.reshape(-1, 2)]
    digits = [next((digit for digit, shape in _digits() if np.array_equal(shape, glyph)), "") for glyph in glyphs]
    return "".join(digits) if len(digits) == 4 and all(digits) else ""


@cache
def _digits() -> list[tuple[str, Any]]:
    shapes = []
    for digit in "0123456789":
        for shift in range(4):  # rounded positions change the antialiasing
            picture = Image.new("L", (448, 224), 255)
            font = ImageFont.load_default(130)
            ImageDraw.Draw(picture).text((224 + shift / 4, 112), digit, fill=0, anchor="mm", font=font)
            shapes.append((digit, _trimmed(np.asarray(picture) < 128)))
    return shapes


def _trimmed(ink: Any) -> Any:
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if len(rows) else ink[:0]
