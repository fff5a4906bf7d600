"""Rows of valid and hostile Parquet files: they are read as written, in bounded memory and time."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks.errors import SourceError
from benchmarks.rows import child_reader, parquet_rows
from benchmarks.rows.child_reader import ChildReader
from benchmarks.rows.files import RawRow, SkippedRow, read_rows
from benchmarks.untrusted.bounded_process import SECONDS

MB = 1 << 20


def _one_page(folder: Path, value: pa.Array, **options: object) -> Path:
    parquet.write_table(pa.table({"question": value}), folder / "rows.parquet", **options)
    return folder / "rows.parquet"


def test_values_are_read_as_written(tmp_path: Path) -> None:
    fields = {
        "question": "How many äpples?",
        "image": {"bytes": b"\x89PNG\0\xff", "path": "a.png"},
        "options": ["3", "4"],
        "pictures": [b"a", None, b""],
        "answer": 3,
        "share": 0.25,
        "sure": True,
        "bytes": "no bytes",
        "none": None,
        "day": datetime.date(2026, 1, 2),
    }
    parquet.write_table(pa.Table.from_pylist([fields] * 20), tmp_path / "rows.parquet", row_group_size=7)
    parsed = list(read_rows(tmp_path / "rows.parquet", tmp_path, "source"))
    assert [row.where for row in parsed if isinstance(row, RawRow)] == [f"rows.parquet:{n}" for n in range(1, 21)]
    assert all(row.fields == {**fields, "day": "2026-01-02"} for row in parsed if isinstance(row, RawRow))


def test_numbers_of_32_bits_are_read_as_written(tmp_path: Path) -> None:
    numbers = [48.2, 0.1, 1e7, -3.4028235e38, 0.0, 16777216.0]
    kind = pa.float32()
    columns = {"answer": pa.array(numbers, kind), "answers": pa.array([[n, None] for n in numbers], pa.list_(kind))}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    rows = [row for row in read_rows(tmp_path / "rows.parquet", tmp_path, "source") if isinstance(row, RawRow)]
    assert [row.fields for row in rows] == [{"answer": n, "answers": [n, None]} for n in numbers]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"answer": ["43"], "Answer": ["44"]}), tmp_path / "rows.parquet")
    with pytest.raises(SourceError, match="two columns called 'answer'"):
        list(read_rows(tmp_path / "rows.parquet", tmp_path, "source"))


def test_files_are_read_concurrently_and_lazily(tmp_path: Path) -> None:
    for name in ("a", "b"):
        parquet.write_table(pa.table({"question": [f"{name}{n}" for n in range(100)]}), tmp_path / f"{name}.parquet")
    first, second = (read_rows(tmp_path / f"{name}.parquet", tmp_path, "source") for name in ("a", "b"))
    for number, (left, right) in enumerate(zip(first, second, strict=False)):
        assert isinstance(left, RawRow)
        assert isinstance(right, RawRow)
        assert (left.fields["question"], right.fields["question"]) == (f"a{number}", f"b{number}")
        if number == 50:
            break
    first.close()  # type: ignore[attr-defined]
    assert len(list(read_rows(tmp_path / "a.parquet", tmp_path, "source"))) == 100


_BOMBS: dict[str, Callable[[Path], Path]] = {
    "a dictionary page": lambda folder: _one_page(folder, pa.array([bytes(60 * MB)] * 3), compression="zstd"),
    "a page": lambda folder: _one_page(
        folder, pa.array([bytes(60 * MB)]), compression="gzip", use_dictionary=False
    ),
    "a long list": lambda folder: _one_page(
        folder, pa.array([np.zeros(20 * MB, np.int8)], pa.list_(pa.int8())), compression="zstd"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", _BOMBS)
def test_small_file_takes_bounded_memory(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _BOMBS[kind](tmp_path)
    assert file.stat().st_size < MB
    monkeypatch.setattr(child_reader, "MEMORY", 40 * 10**6)
    reader = ChildReader("benchmarks.rows.parquet_rows", parquet_rows.UNPACKED, SECONDS, "save it again")
    monkeypatch.setattr(parquet_rows, "_reader", reader)
    with pytest.raises(SourceError, match="memory"):
        list(read_rows(file, tmp_path, "source"))


def test_rows_without_data_are_bounded(tmp_path: Path) -> None:
    file = _one_page(tmp_path, pa.nulls(parquet_rows.MOST_ROWS + 1))
    with pytest.raises(SourceError, match="rows"):
        list(read_rows(file, tmp_path, "source"))


def test_oversized_row_is_skipped_alone(tmp_path: Path) -> None:
    file = _one_page(tmp_path, pa.array([b"a", bytes(parquet_rows.LARGEST_ROW + 1), b"c"]), compression="zstd")
    first, large, last = read_rows(file, tmp_path, "source")
    assert isinstance(large, SkippedRow)
    assert large.reason == parquet_rows.LONG_ROW
    assert [row.fields["question"] for row in (first, last) if isinstance(row, RawRow)] == [b"a", b"c"]


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    file = _one_page(tmp_path, pa.array([f"How many apples in {n}?" for n in range(50)]), compression="zstd")
    data, chance, refused = file.read_bytes(), random.Random(0), 0
    for _ in range(100):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(changed))
            changed[at : at + 4] = chance.choice((b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0", chance.randbytes(4)))
        file.write_bytes(changed)
        try:
            list(read_rows(file, tmp_path, "source"))
        except SourceError:
            refused += 1
    assert refused > 10
