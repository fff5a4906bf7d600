"""Temporary file of JSON records, for rows that are too many to be held in memory."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import weakref
from array import array
from typing import Any

from benchmarks.errors import TemporaryFolderError

_BUFFER = 1 << 20
"""The number of bytes that are collected before they are written."""

_ENCODER, _DECODER = json.JSONEncoder(separators=(",", ":")), json.JSONDecoder()
"""Made once: :mod:`json` makes an encoder for each call, and detects the encoding of bytes."""


class RecordFile:
    """JSON records and bytes in a temporary file, which is removed with this object. Memory holds 12 bytes a record.

    Records may be read from several threads. Every method raises TemporaryFolderError if the temporary folder cannot be
    written.
    """

    def __init__(self) -> None:
        self._offsets, self._sizes = array("Q"), array("I")
        self._end = 0
        self._buffer = bytearray()
        self._lock = threading.Lock()
        try:
            with tempfile.TemporaryFile() as file:
                self._descriptor = os.dup(file.fileno())
        except OSError as error:
            raise _no_room(error) from error
        weakref.finalize(self, os.close, self._descriptor)

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, record: Any) -> int:
        """Add a record, a JSON value, and return its number."""
        offset, size = self.add_bytes(_ENCODER.encode(record).encode())
        self._offsets.append(offset)
        self._sizes.append(size)
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> Any:
        """Return a record by its number."""
        return _DECODER.decode(self.read_bytes(self._offsets[number], self._sizes[number]).decode())

    def add_bytes(self, data: bytes) -> tuple[int, int]:
        """Add bytes that belong to no record, and return their offset and their number."""
        with self._lock:
            offset = self._end
            self._buffer += data
            self._end += len(data)
            if len(self._buffer) >= _BUFFER:
                self._flush()
        return offset, len(data)

    def read_bytes(self, offset: int, size: int) -> bytes:
        """Return bytes that :meth:`add_bytes` added."""
        with self._lock:
            if offset + size > self._end - len(self._buffer):
                self._flush()
        return os.pread(self._descriptor, size, offset)

    def _flush(self) -> None:
        try:
            while self._buffer:
                written = os.pwrite(self._descriptor, self._buffer, self._end - len(self._buffer))
                del self._buffer[:written]
        except OSError as error:
            raise _no_room(error) from error


def _no_room(error: OSError) -> TemporaryFolderError:
    return TemporaryFolderError(
        f"cannot write a temporary file ({error.strerror}); nothing was written. Free some space, or name a folder in the "
        "variable TMPDIR."
    )
