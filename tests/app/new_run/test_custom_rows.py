"""Cells of a user's own rows: those of any row, in any order, from one reading of the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.new_run import custom_rows
from app.new_run.custom_rows import RowCells
from benchmarks.rows.files import RawRow, read_rows


def test_cells_of_many_rows_take_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("image,question,answer\na.png,Why?,\x1b[31m4\nb.png,,5\nc.png,How?,6\n", "utf-8")
    taken: list[str] = []

    def counted(*arguments: Any) -> Iterator[Any]:
        for row in read_rows(*arguments):
            assert isinstance(row, RawRow)
            taken.append(row.where)
            yield row

    monkeypatch.setattr(custom_rows, "read_rows", counted)
    cells = RowCells(table)
    assert cells.of("rows.csv:3") == [("image", "b.png"), ("answer", "5")]
    assert cells.of("rows.csv:2") == [("image", "a.png"), ("question", "Why?"), ("answer", "\x1b[31m4")]
    assert taken == ["rows.csv:2", "rows.csv:3"], "no further than the last row that was asked for, and each once"
    assert cells.of("rows.csv:9") == []
    assert cells.of("rows.csv:4")[-1] == ("answer", "6")
    assert len(taken) == 3


def test_cells_of_an_unreadable_table_are_none(tmp_path: Path) -> None:
    assert RowCells(tmp_path / "gone.csv").of("gone.csv:2") == []
