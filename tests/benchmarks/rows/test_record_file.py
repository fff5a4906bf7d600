"""Records in a temporary file: read back as they were added, in any order and while others are added."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import SourceError
from benchmarks.rows.record_file import RecordFile

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()), lambda inner: st.lists(inner, max_size=3)
)


@pytest.mark.slow
@given(st.lists(values), st.lists(st.binary(), min_size=1))
def test_records_and_bytes_are_read_back(records: list[Any], blobs: list[bytes]) -> None:
    file = RecordFile()
    places = []
    for number, record in enumerate(records):
        places.append(file.add_bytes(blobs[number % len(blobs)]))
        assert file.append(record) == number
        assert file[number] == record
    assert [file[number] for number in reversed(range(len(file)))] == records[::-1]
    assert [file.read_bytes(*place) for place in places] == [blobs[n % len(blobs)] for n in range(len(records))]


def test_more_than_the_buffer_is_written() -> None:
    file = RecordFile()
    texts = [str(number) * 1000 for number in range(1000)]
    for text in texts:
        file.append(text)
    assert [file[number] for number in range(len(file))] == texts


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = RecordFile()
    file.append("x")
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SourceError, match="TMPDIR"):
        file[0]
