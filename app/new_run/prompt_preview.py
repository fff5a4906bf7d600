"""The exact prompt of one instance, before anything is run."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Self

from app.new_run.run_estimate import requests_of
from app.run_spec import RunSpec
from benchmarks.base import Instance, Media, Request, part_to_json
from benchmarks.errors import ModelError
from mlx_backends.policy import PREFIX
from mlx_backends.registry import IMPORTED, engine_of

MOST_STEPS = 8


def requests(spec: RunSpec, instance: Instance) -> list[Request]:
    """What ``instance`` is asked, step by step: the messages with their media in place, and the decoding.

    In the place of what is answered on the way stands a text of the greatest length, of dots.
    """
    protocol = spec.protocol()
    return list(islice(requests_of(protocol, instance), MOST_STEPS))


def media_of(request: Request) -> list[Media]:
    """The request's media, in order."""
    return [part for message in request.messages for part in message.parts if isinstance(part, Media)]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as the model gets it, its images as the template marks them; else why that is not known."""

    text: str | None
    why: str = ""


class PromptRenderer:
    """A model's chat template, in a process of its own that loads no weights. Waits for its replies: for a thread.

    It is a context manager; :meth:`close` ends the process, from any thread.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def rendered(self, request: Request) -> RenderedPrompt:
        """The prompt of ``request``."""
        if self.model.startswith((PREFIX, IMPORTED)):
            return RenderedPrompt(None, "a policy reads no prompt: it answers from the references")
        if engine_of(self.model):
            return RenderedPrompt(None, "the engine puts the messages into its own template")
        messages = [[message.role, [part_to_json(part) for part in message.parts]] for message in request.messages]
        with self._lock:
            try:
                told = self._ask(json.dumps(messages))
            except (OSError, ValueError, ModelError) as error:
                return RenderedPrompt(
                    None, str(error) if isinstance(error, ModelError) else "its tokenizer could not be asked"
                )
        return RenderedPrompt(told["text"]) if "text" in told else RenderedPrompt(None, told.get("error", ""))

    def _ask(self, line: str) -> dict[str, str]:
        if self._closed:
            raise ModelError("the preview was closed")
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mlx_backends.core.render_prompt", self.model],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
            self._reply()
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, str]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ModelError("the process that loads its tokenizer ended without a word")
        told = json.loads(line)
        return told if isinstance(told, dict) else {}

    def close(self) -> None:
        """End the process."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            with self._lock:
                process.communicate()
