"""Decoding of media in a child process with limits: the parent's side. ``decoder_process`` is the child's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

from benchmarks.errors import DecoderError, MediaError
from benchmarks.untrusted.bounded_process import SECONDS, BoundedProcess, ChildError, LimitError, Message

TOO_MUCH_MEMORY = "needs more than 400 MB of memory to be read; make it smaller or simpler"
TOO_MUCH_TIME = f"takes more than {SECONDS:.0f} seconds to be read; make it smaller or simpler"


def run_decoder(task: str, name: str, data: bytes, **request: Any) -> Iterator[Message]:
    """Yield the child's messages for a task on a medium, which errors call ``name``. Raises MediaError, DecoderError."""
    refusal = ""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            for fields, payload in _decoder().ask({"task": task, **request}, file):
                refusal = refusal or fields.get("error", "")
                if not refusal:
                    yield fields, payload
        except LimitError as error:
            raise MediaError(name, TOO_MUCH_TIME if error.limit == "time" else TOO_MUCH_MEMORY) from error
        except ChildError as error:
            raise DecoderError(name, str(error)) from error
    if refusal:
        raise MediaError(name, refusal)


def start_decoder() -> None:
    """Start the child process for images, without waiting for it."""
    _decoder().start({"task": "image"})


@cache
def _decoder() -> BoundedProcess:
    return BoundedProcess("benchmarks.media.decoder_process")
