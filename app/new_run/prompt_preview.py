"""Preview of the exact prompt of an instance."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Self

from app.new_run.run_estimate import longest_requests
from app.run_spec import RunSpec
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Instance, Media, Request, part_to_json
from mlx_backends.baseline_engine import WITHOUT_REQUESTS
from mlx_backends.engine_registry import has_prefix
from mlx_backends.policy_engine import PREFIX

MAX_STEPS = 8


def preview_requests(spec: RunSpec, instance: Instance) -> list[Request]:
    """Return the requests for ``instance``, step by step: messages with their media, and decoding.

    Answers that a later step depends on are replaced by dots.
    """
    return [request for request, _ in islice(longest_requests(spec.to_protocol(), instance), MAX_STEPS)]


def media_of(request: Request) -> list[Media]:
    """Return the request's media, in order."""
    return [part for message in request.messages for part in message.parts if isinstance(part, Media)]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as the model receives it, with the template's image markers; or the reason why it is unknown."""

    text: str | None
    reason: str = ""


class PromptRenderer:
    """A model's chat template in a separate process that loads no weights. Calls block, so use it from a thread.

    A context manager; :meth:`close` ends the process, from any thread.
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

    def render(self, request: Request) -> RenderedPrompt:
        """Return the prompt of ``request``."""
        if self.model.startswith((PREFIX, *WITHOUT_REQUESTS)):
            return RenderedPrompt(None, "a policy reads no prompt; it answers from the references")
        if has_prefix(self.model):
            return RenderedPrompt(None, "the engine applies its own template to the messages")
        messages = [[message.role, [part_to_json(part) for part in message.parts]] for message in request.messages]
        with self._lock:
            try:
                reply = self._send(json.dumps(messages))
            except (OSError, ValueError, ModelError) as error:
                return RenderedPrompt(
                    None, str(error) if isinstance(error, ModelError) else "its tokenizer does not respond"
                )
        return RenderedPrompt(reply["text"]) if "text" in reply else RenderedPrompt(None, reply.get("error", ""))

    def _send(self, line: str) -> dict[str, str]:
        if self._closed:
            raise ModelError("the preview was closed")
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mlx_backends.mlx.render_prompt", self.model],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
            if self._closed:  # meanwhile, when close() found no process to end
                self._process.kill()
                self._process.communicate()
                raise ModelError("the preview was closed")
            self._read_reply()
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read_reply()

    def _read_reply(self) -> dict[str, str]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ModelError("the process that loads its tokenizer ended unexpectedly")
        reply = json.loads(line)
        return reply if isinstance(reply, dict) else {}

    def close(self) -> None:
        """End the process."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            with self._lock:
                process.communicate()
