"""Reports of a batch about its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.engine.batch_runs import BATCH_FILE, read_batch, report_batch


def folders(path: Path, *names: str) -> list[Path]:
    for name in names:
        (path / name).mkdir(exist_ok=True)
    return [path / name for name in names]


def test_the_runs_of_a_batch(tmp_path: Path) -> None:
    batch = folders(tmp_path, "b", "a")
    report_batch(batch)
    assert [read_batch(folder) for folder in batch] == [("b", "a")] * 2
    report_batch(batch[:1])
    assert read_batch(batch[0]) == (), "a run that is resumed alone is in no batch"
    report_batch([tmp_path / "gone", *batch])


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"no json",
        b"[" * 100_000,
        b'{"pid": -1, "runs": ["a"]}',
        b'{"pid": 99999999999999999999, "runs": ["a"]}',
        json.dumps({"pid": 2**22 - 1, "runs": ["a"]}).encode(),
        b'{"pid": 1, "runs": ["another"]}',
        b'{"runs": ["a"]}',
        b'{"pid": 1, "runs": null}',
    ],
)
def test_a_report_that_is_stale_or_no_report_is_ignored(report: bytes, tmp_path: Path) -> None:
    (folder,) = folders(tmp_path, "a")
    (folder / BATCH_FILE).write_bytes(report)
    assert read_batch(folder) == ()
