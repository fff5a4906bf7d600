"""Unbounded sources: long lines, many columns, pipes and devices, characters without an encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.build import BuildWriter
from benchmarks.contra4.construction.filter_tables import filter_tables
from benchmarks.errors import SourceError
from benchmarks.rows.csv_rows import LARGEST_CELL, read_columns, read_csv_rows
from benchmarks.rows.files import RawRow, SkippedRow, image_loader, read_rows
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.reader_types import LARGEST_LINE, NOT_UNICODE, RowProblem
from benchmarks.rows.text_lines import LONG_LINE
from judges.human_labels_and_samples import read_labels_csv
from tests.support.command import Rashomon


def test_wide_header_is_read_quickly(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    names = [f"column{number}" for number in range(100_000)]
    file.write_text(",".join(names) + "\n" + ",".join("x" for _ in names) + "\n")
    began = time.process_time()
    assert read_columns(file) == names
    ((number, row),) = read_csv_rows(file)
    assert number == 2
    assert isinstance(row, dict)
    assert len(row) == 100_000
    assert time.process_time() - began < 5


def test_overlong_line_is_skipped_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": 1}\n{"a": "' + "x" * LARGEST_LINE + '"}\n{"a": 3}\n')
    first, long, last = read_rows(file, tmp_path, "source")
    assert isinstance(first, RawRow)
    assert isinstance(last, RawRow)
    assert isinstance(long, SkippedRow)
    assert (long.row, long.reason) == ("rows.jsonl:2", LONG_LINE)
    assert last.where == "rows.jsonl:3"


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv"])
def test_a_line_of_400_megabytes_takes_little_memory(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    with file.open("wb") as sparse:
        sparse.write(b"[1, " if name != "rows.csv" else b'image,question\n"')
        sparse.truncate(400 << 20)
    script = (
        "import resource, sys\nfrom pathlib import Path\nfrom benchmarks.rows.files import read_rows\n"
        "from benchmarks.errors import SourceError\nimport benchmarks.rows.csv_rows\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nfile = Path(sys.argv[1])\n"
        "try: list(read_rows(file, file.parent, 'x'))\nexcept SourceError: pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True)
    assert int(done.stdout) * (1 if sys.platform == "darwin" else 1024) < 250 * 10**6


def test_unclosed_quote_leaves_out_its_row_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('image,question\n0.png,"' + "one line of many\n" * 300_000)
    began = time.process_time()
    rows = [row for _, row in read_csv_rows(file)]
    assert time.process_time() - began < 5
    assert [isinstance(row, RowProblem) for row in rows] == [True] + [False] * 299_999


def test_overlong_cell_and_line_are_left_out_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    cells = ["x" * (LARGEST_CELL + 1), '"' + "x" * (LARGEST_CELL + 1) + '"', "x" * LARGEST_LINE]
    file.write_text("image,question\n" + "".join(f"0.png,{cell}\n" for cell in cells) + "1.png,last\n")
    *problems, (number, last) = read_csv_rows(file)
    assert [number for number, row in problems if isinstance(row, RowProblem)] == [2, 3, 4]
    assert (number, last) == (5, {"image": "1.png", "question": "last"})


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv", "rows.parquet"])
def test_pipes_and_devices_are_no_sources(tmp_path: Path, name: str) -> None:
    pipe, device = tmp_path / name, tmp_path / f"device-{name}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for file in (pipe, device):
        with pytest.raises(SourceError, match="regular file"):
            list(read_rows(file, tmp_path, "source"))
        with pytest.raises(SourceError):
            read_labels_csv(file, ["yes"], {"a": "a"})
        with pytest.raises(SourceError):
            filter_tables([], [file])
    with pytest.raises(SourceError):
        list(read_json_lines(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "published"])
def test_answers_are_imported_from_regular_files_alone(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", Path("/dev/zero")):
        arguments = ("import", file, "--benchmark", "clash", "--model", "m", "--format", kind)
        stderr = Rashomon(tmp_path).process(*arguments, code=2).stderr
        assert "Traceback" not in stderr


def test_row_with_a_lone_surrogate_is_skipped_alone(tmp_path: Path) -> None:
    invalid = [{"question": "How many \ud800 apples?"}, {"question": "How many pears?"}, {"image": "\ud800.png"}]
    for name, text in (("rows.jsonl", "\n".join(map(json.dumps, invalid))), ("rows.json", json.dumps(invalid))):
        (tmp_path / name).write_text(text)
        first, row, last = read_rows(tmp_path / name, tmp_path, "source")
        assert isinstance(row, RawRow)
        assert [row.reason for row in (first, last) if isinstance(row, SkippedRow)] == [NOT_UNICODE] * 2


def test_lone_surrogate_in_a_build_round_trips(tmp_path: Path) -> None:
    with BuildWriter(tmp_path / "build") as writer:
        writer.add_row({"question": "How many \ud800 apples? \\"})
        build = writer.finish({"benchmark": "cmc-bench"})
    assert list(build.rows()) == [{"question": "How many \ud800 apples? \\"}]


def test_impossible_path_is_a_missing_image(tmp_path: Path) -> None:
    for anywhere in (False, True):
        with pytest.raises(RowProblem, match="missing"):
            image_loader(RawRow("rows:1", {"image": "\ud800.png"}, (tmp_path,), anywhere), "image")
