"""Shared helpers for the tests of remote engines."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.vocabulary import Decoding, Form, Generation, Media, Message, Part, Request, Text
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend
from mlx_backends.options import RemoteOptions
from tests.support.fault_server import FaultServer

KEYS = {
    "OPENAI_API_KEY": "sk-proj-Qm7xVw2LkTz9RpYb4NcJ8sHdF6gUeA1oXi3BvCy5MtKn0Z",
    "AZURE_OPENAI_API_KEY": "0f9c1e7b5d3a4862b7e6d1c0a9f83524",
    "ANTHROPIC_API_KEY": "sk-ant-api03-hT5rWq8ZpLx2Vn6KcYd9Bs4MgJf7Uo1EiAb3Xv0CyNtQm",
    "GEMINI_API_KEY": "AIzaSyD4fGh7JkLpQwErTyUiOpAsDfGhJkLzXcV",
    "RASHOMON_ENDPOINT_KEY": "endpoint+secret/7Yx=Kw3Zr9Qb5Lt2",
}


def nowhere(media: Media) -> Path:
    raise AssertionError("this request shows no media")


def ask(number: int, *parts: Part, form: Form | None = None, **decoding: Any) -> Request:
    """A request of one user turn."""
    content = parts or (Text(f"question number {number}?"),)
    return Request(f"r{number}", 0, (Message("user", content),), Decoding(**{"max_tokens": 64, **decoding}), form)


def endpoint(server: FaultServer, media: Any = nowhere, **options: Any) -> Backend:
    """A backend for the server as an endpoint of one's own."""
    return load_backend(f"endpoint:some-model@{server.url}", media, remote=RemoteOptions(**options))


def run(backend: Backend, requests: Iterable[Request], seconds: float = 30) -> list[Generation]:
    """Feed and drain a backend as the engine does."""
    waiting, under_way = list(requests)[::-1], 0
    done: list[Generation] = []
    until = time.monotonic() + seconds
    while waiting or under_way:
        assert time.monotonic() < until, f"{under_way} requests never ended"
        while waiting and under_way < backend.capacity:
            backend.submit(waiting.pop())
            under_way += 1
        finished = backend.step()
        under_way -= len(finished)
        done += finished
    return done


def wait_for_threads() -> None:
    """Wait until no thread of a closed backend is left."""
    until = time.monotonic() + 30
    while alive := [thread for thread in threading.enumerate() if thread.name == "rashomon-remote"]:
        assert time.monotonic() < until, alive
        time.sleep(0.01)


def generate_one(backend: Backend, request: Request) -> Generation:
    """The one generation of a request."""
    (generation,) = run(backend, [request])
    return generation
