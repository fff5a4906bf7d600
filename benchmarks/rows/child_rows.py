"""Reading of files with libraries that have no limits, in child processes that do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.errors import SourceError
from benchmarks.rows.base import open_source
from benchmarks.untrusted.bounded_process import BoundedProcess, LimitError, Message


class ChildReader:
    """Child processes that run ``module``, one for each file that is read at the same time.

    ``memory`` is in bytes, ``seconds`` the processor time for each message. ``remedy`` says what to do with a larger file.
    """

    def __init__(self, module: str, memory: int, seconds: float, remedy: str) -> None:
        self._module, self._memory, self._seconds, self._remedy = module, memory, seconds, remedy
        self._idle: list[BoundedProcess] = []

    def messages(self, file: Path, name: str, **request: Any) -> Iterator[Message]:
        """Yield the child's messages on a file. Raises SourceError, whose message calls the file ``name``.

        The child refuses a file with a message of the key ``error``, which completes the sentence that begins with the name.
        """
        try:
            child = self._idle.pop()
        except IndexError:
            child = BoundedProcess(self._module, self._seconds, self._memory, renewed=True)
        refusal = ""
        try:
            with open_source(file) as stream, closing(child.ask(request, stream)) as messages:
                for fields, payload in messages:
                    refusal = refusal or fields.get("error", "")
                    if not refusal:
                        yield fields, payload
        except LimitError as error:
            memory = f"{self._memory / 10**9:.0f} GB of memory"
            amount = memory if error.limit == "memory" else f"{self._seconds:.0f} seconds for a few rows"
            refusal = f"needs more than {amount}; {self._remedy}."
        finally:
            self._idle.append(child)
        if refusal:
            raise SourceError(f"{name} {refusal}")
