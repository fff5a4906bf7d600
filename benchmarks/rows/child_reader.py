"""Reading of files with libraries that have no limits, in child processes that do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.errors import SourceError
from benchmarks.rows.reader_types import open_source
from benchmarks.untrusted.bounded_process import BoundedProcess, LimitError, Message

MEMORY = 350 * 10**6
"""The child's memory for a small file in bytes; together with its libraries it is less than 500 MB."""

MOST_MEMORY = 1000 * 10**6


class ChildReader:
    """Child processes that run ``module``, one for each file that is read at the same time.

    The child may have ``unpacked`` bytes of memory for each byte of the file, in addition to ``MEMORY`` and not more than
    ``MOST_MEMORY``: a small file that needs more is a decompression bomb. ``seconds`` is the processor time for each message.
    ``remedy`` says what to do with a larger file.
    """

    def __init__(self, module: str, unpacked: int, seconds: float, remedy: str) -> None:
        self._module, self._unpacked, self._seconds, self._remedy = module, unpacked, seconds, remedy
        self._idle: list[BoundedProcess] = []

    def messages(self, file: Path, name: str, **request: Any) -> Iterator[Message]:
        """Yield the child's messages on a file. Raises SourceError, whose message calls the file ``name``.

        The child refuses a file with a message of the key ``error``, which completes the sentence that begins with the name.
        """
        try:
            child = self._idle.pop()
        except IndexError:
            child = BoundedProcess(self._module, self._seconds, renewed=True)
        refusal, memory = "", MEMORY
        try:
            with open_source(file) as stream:
                memory = min(MOST_MEMORY, MEMORY + self._unpacked * os.fstat(stream.fileno()).st_size)
                with closing(child.ask(request, stream, memory)) as messages:
                    for fields, payload in messages:
                        refusal = refusal or fields.get("error", "")
                        if not refusal:
                            yield fields, payload
        except LimitError as error:
            amount = f"{memory / 10**6:,.0f} MB of memory"
            if error.limit == "time":
                amount = f"{self._seconds:.0f} seconds for a few rows"
            refusal = f"needs more than {amount}; {self._remedy}."
        finally:
            self._idle.append(child)
        if refusal:
            raise SourceError(f"{name} {refusal}")
