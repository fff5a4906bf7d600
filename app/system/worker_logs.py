"""Logs of workers: one line per record, without control characters and line breaks.

A worker's standard error is a pipe. The process that started it copies the pipe into the log, which therefore also holds the
last output of a crashed worker and its libraries.
"""

from __future__ import annotations

import io
import logging
import os
import select
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from app.text.text_escaping import clean
from benchmarks.errors import NoAccessError
from benchmarks.untrusted.safe_files import open_write

_LARGEST = 1 << 24
"""The size in bytes at which a log is truncated."""
_LONGEST = 1 << 16
"""The most bytes of a line; longer ones are split."""
_PATIENCE = 10.0
"""Seconds a worker waits for its output to be read."""


class Log:
    """A log file in a run's folder. Raises StoreError if it cannot be opened; a full disk is not an error."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._lock = threading.Lock()
        try:
            self._file = open_write(folder, name, append=True)
        except OSError as error:
            raise NoAccessError(
                f"cannot write {self.path}: {error.strerror}; make the run's folder writable."
            ) from error

    def write(self, writer: str, text: str) -> None:
        """Append a record: one line with the time, the ``writer`` and the text."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {writer}: {clean(text)}\n"
        with self._lock, suppress(OSError, ValueError):  # a full disk, or a pump that outlives the log
            if os.fstat(self._file.fileno()).st_size > _LARGEST:
                self._file.truncate(0)
            self._file.write(line.encode("utf-8", "backslashreplace"))
            self._file.flush()

    def pump(self, writer: str, read: int | None = None) -> Pump:
        """Return a pipe whose lines become records of ``writer``; ``read`` is the reading end of one that exists."""
        return Pump(self, writer, read)

    def close(self) -> None:
        """Close the file; later lines from a pump are lost."""
        with self._lock, suppress(OSError):
            self._file.close()


class Pump:
    """A pipe into a log. ``fileno`` is the writing end for the started process; a context manager around the start.

    Given the reading end ``read`` of a pipe, it has no writing end.
    """

    def __init__(self, log: Log, writer: str, read: int | None = None) -> None:
        self._log, self._writer = log, writer
        self._write: int | None = None
        if read is None:
            read, self._write = os.pipe()
        self._read = read
        self._thread = threading.Thread(target=self._work, daemon=True)

    def fileno(self) -> int:
        assert self._write is not None
        return self._write

    def __enter__(self) -> Pump:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._write is not None:
            os.close(self._write)  # the process has its own copy

    def finish(self) -> None:
        """Wait for the log of a process that has ended, for at most a second, since a child of it may keep the pipe open."""
        self._thread.join(1.0)

    def _work(self) -> None:
        rest = b""
        with os.fdopen(self._read, "rb", buffering=0) as pipe:
            while piece := pipe.read(_LONGEST):
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > _LONGEST:
                    lines.append(rest)
                    rest = b""
                for line in lines:
                    self._record(line)
        self._record(rest)

    def _record(self, line: bytes) -> None:
        # Of a line that overwrites itself, as progress bars do, only the last state counts.
        text = line.decode("utf-8", "backslashreplace").rstrip("\r").rpartition("\r")[2]
        if text.strip():
            self._log.write(self._writer, text)


def write_single_lines() -> None:
    """Make this process write each exception, warning and log record as one line to standard error.

    Tracebacks can quote foreign text, in which a line break must not start a new line of the log.
    """
    sys.stderr = io.TextIOWrapper(_PatientStderr(), "utf-8", "backslashreplace", write_through=True)
    sys.excepthook = lambda kind, error, trace: report_exception(error)
    threading.excepthook = lambda args: report_exception(args.exc_value)
    warnings.showwarning = _show_warning
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_SingleLine("%(name)s: %(message)s"))


class _PatientStderr(io.RawIOBase):
    """Standard error that waits ``_PATIENCE`` seconds for its reader, then drops output until there is room.

    The reader is another process. It may be stopped while this worker holds the device and has requests in flight.
    """

    def __init__(self) -> None:
        self._wait, self._dropped = _PATIENCE, 0
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        with self._lock:
            while rest and select.select([], [2], [], self._wait)[1]:
                self._wait = _PATIENCE
                if self._dropped:
                    lost_count, self._dropped = self._dropped, 0
                    os.write(2, f"\n{lost_count} bytes were dropped because they were not read in time\n".encode())
                    continue
                rest = rest[os.write(2, rest[: select.PIPE_BUF]) :]
            if rest:
                self._wait = 0.0
                self._dropped += len(rest)
        return len(data)


def report_exception(error: BaseException | None) -> None:
    """Write an exception with its traceback to standard error, in one line."""
    with suppress(OSError):  # the reader may be gone
        print(_single("".join(traceback.format_exception(error)).rstrip()), file=sys.stderr, flush=True)


def drop_output() -> None:
    """Discard further output of this process, because writing to a broken pipe is an error once the reader is gone."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(devnull, descriptor)


class _SingleLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _single(super().format(record))


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    with suppress(OSError):
        print(_single(f"{filename}:{lineno}: {category.__name__}: {message}"), file=sys.stderr, flush=True)


def _single(text: str) -> str:
    return clean(text.replace("\n", "\\n"))
