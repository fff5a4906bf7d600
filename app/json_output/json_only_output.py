"""Standard output of commands that print JSON: nothing else reaches it, whatever plugins, libraries and processes print."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_own: TextIO | None = None
"""The stream for JSON; None while that is standard output."""


def print_own(text: str, *, end: str = "\n", flush: bool = False) -> None:
    """Print JSON to the command's standard output."""
    print(text, end=end, flush=flush, file=_own or sys.stdout)


@contextmanager
def only_json() -> Iterator[None]:
    """Let only :func:`print_own` write to standard output within the block.

    Everything else that is printed, also by other languages and child processes, goes to standard error.
    """
    global _own
    _own = _moved(sys.stdout)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout, _own = _own, None


def discard_output() -> None:
    """Lose all that is printed to standard output from now on, since its reader is gone."""
    global _own
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - stays open for the rest of the process
    _own = _own and sys.stdout


def _moved(stream: TextIO) -> TextIO:
    """Return a stream to where descriptor 1 leads, which leads to standard error from now on; ``stream`` if it is another."""
    with suppress(io.UnsupportedOperation):
        if stream.fileno() == 1:
            stream.flush()
            own = os.fdopen(os.dup(1), "w", encoding=stream.encoding, errors=stream.errors)
            os.dup2(2, 1)
            return own
    return stream
