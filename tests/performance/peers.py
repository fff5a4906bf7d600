"""The alternatives to Rashomon for a user of mlx-vlm: a loop around ``mlx_vlm.generate``, and ``mlx_vlm server``."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.vocabulary import Media, Request, Text
from mlx_backends.mlx.vlm_backend import VLMBackend

Place = Callable[[Media], Path]


def loop(backend: VLMBackend, requests: Sequence[Request], media: Place) -> list[str]:
    """The answers of ``mlx_vlm.generate`` to one request after the other."""
    from mlx_vlm import generate
    from PIL import Image

    texts = []
    for request in requests:
        prompt = backend._preprocessor.prompter.prompt(request.messages)
        images = [Image.open(media(image)).convert("RGB") for image in prompt.images]
        most = request.decoding.max_tokens
        result: Any = generate(
            backend._model, backend._processor, prompt.text, images or None, max_tokens=most, temperature=0.0
        )
        assert result.generation_tokens == most
        texts.append(result.text)
    return texts


def plain_prompts(backend: VLMBackend, requests: Sequence[Request], media: Place) -> list[dict[str, Any]]:
    """Return requests as ``plain_loop.py`` takes them."""
    prompts = []
    for request in requests:
        prompt = backend._preprocessor.prompter.prompt(request.messages)
        images = [str(media(image)) for image in prompt.images]
        prompts.append({"text": prompt.text, "images": images, "max_tokens": request.decoding.max_tokens})
    return prompts


class Server:
    """``mlx_vlm server`` for the model in a folder."""

    def __init__(self, url: str) -> None:
        self._url = url

    @classmethod
    @contextmanager
    def serving(cls, model: Path, log: Path) -> Iterator[Server]:
        """A server of its own on this machine, ready; it is gone after the block. Its output goes to ``log``."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "mlx_vlm", "server", "--model", str(model), "--port", str(port)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1"],
                env={**os.environ, "HF_HUB_OFFLINE": "1"},
                stdout=output,
                stderr=output,
            )
            try:
                while not _answers(f"http://127.0.0.1:{port}/health"):
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.2)
                yield cls(f"http://127.0.0.1:{port}/v1/chat/completions")
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(60)

    @staticmethod
    def body(model: Path, request: Request, media: Place) -> bytes:
        """``request`` as an OpenAI-compatible server takes it, its images in base64."""
        messages = []
        for message in request.messages:
            parts: list[dict[str, Any]] = []
            for part in message.parts:
                if isinstance(part, Text):
                    parts.append({"type": "text", "text": part.text})
                else:
                    data = base64.b64encode(media(part).read_bytes()).decode()
                    parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}})
            messages.append({"role": message.role, "content": parts})
        payload = {
            "model": str(model),
            "messages": messages,
            "max_tokens": request.decoding.max_tokens,
            "temperature": 0,
        }
        return json.dumps(payload).encode()

    def ask(self, bodies: Sequence[bytes], clients: int) -> list[dict[str, Any]]:
        """Return the replies to ``clients`` concurrent clients, each of which sends its next request after a reply.

        An error of the server, which some versions make of prompts with and without images side by side, is a reply with "error".
        """
        with ThreadPoolExecutor(clients) as pool:
            return list(pool.map(self._one, bodies))

    def _one(self, body: bytes) -> dict[str, Any]:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as reply:
                response: dict[str, Any] = json.load(reply)
                return response
        except urllib.error.HTTPError as error:
            return {"error": error.read().decode(errors="replace")}


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5)
    except OSError:
        return False
    return True
