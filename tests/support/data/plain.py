"""Small rows of plain data sets, in the form that each of them declares."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.answers import Answers
from benchmarks.plain.plain_data_set import CONFLICT, PlainDataSet
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate, Table
from judges.judge_registry import get_judge
from tests.support.data.small import picture, write_lines, write_picture
from tests.support.fake_hub import Repo
from tests.support.labelled import labelled


def data_set_of(name: str) -> PlainDataSet:
    """The plain data set called ``name``."""
    data_set = get_benchmark(name)
    assert isinstance(data_set, PlainDataSet)
    return data_set


def rows_of(name: str, count: int) -> list[dict[str, Any]]:
    """Rows of a data set, with its own columns and every conflict type; of one with clean rows, every other one is clean."""
    data_set = data_set_of(name)
    has_clean = "clean" in data_set.conditions
    rows = []
    for number in range(count):
        right, wrong = f"{100 + number}", f"{300 + number}"
        kind = data_set.types[number // (1 + has_clean) % len(data_set.types)]
        values = {
            "question": f"What is the value of crop {number}?",
            "no_question": f"Which value has crop {number}?",
            "image": f"images/{number}.png",
            "image_answer": right,
            "text": f"Crop {number} is {wrong}.",
            "text_answer": wrong,
            "type": None if has_clean and number % 2 else kind,
            "group": f"pair {number // 2}",
        }
        columns = {**data_set.columns, **data_set.optional_columns}
        rows.append({keys[0]: values[role] for role, keys in columns.items() if role in values})
    return rows


def write_rows_of(name: str, folder: Path, count: int) -> Path:
    """Write rows of a data set as JSON lines beside their images; return the file."""
    for number in range(count):
        write_picture(folder / "images" / f"{number}.png", number)
    write_lines(folder / "rows.jsonl", rows_of(name, count))
    return folder / "rows.jsonl"


def hub_repo(name: str, count: int = 8) -> Repo:
    """The repository of a data set on the Hub, with a file that nobody needs."""
    file = f"{data_set_of(name).hub_files[0]}00000-of-00001.parquet"
    return Repo("dataset", {file: as_parquet(name, rows_of(name, count)), "README.md": b"not needed"})


def as_parquet(name: str, rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The rows as the Hub has them: parquet with the images' bytes."""
    column = data_set_of(name).columns["image"][0]
    table = [{**row, column: {"bytes": picture(number), "path": f"{number}.png"}} for number, row in enumerate(rows)]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(table), file)
    return file.getvalue()


def answers_of(name: str, labels: Sequence[str], condition: str = CONFLICT) -> Answers:
    """Answers under a condition that the data set's judge gave these labels, or left "undecided" or "unparsed"."""
    data_set = data_set_of(name)
    judge, strata = get_judge(data_set.judges[0]).id, {"type": data_set.types[0]}
    return Answers.of(
        [
            labelled({judge: label}, id=f"{n}/{condition}", group=f"{n}", condition=condition, strata=strata)
            for n, label in enumerate(labels)
        ],
        data_set,
    )


def main_table(name: str, labels: Sequence[str]) -> tuple[Table, dict[str, tuple[float | None, int]]]:
    """The main table of answers under conflict with these labels, and the value and number of answers of each of its columns."""
    data_set = data_set_of(name)
    judge = get_judge(data_set.judges[0]).id
    main, *_ = data_set.tables({"m": answers_of(name, labels)}, judge, resamples=20, seed=0)
    cells = dict(zip(main.columns, main.rows[0][1], strict=True))
    return main, {column: (cell.value, cell.n) for column, cell in cells.items() if isinstance(cell, Estimate)}
