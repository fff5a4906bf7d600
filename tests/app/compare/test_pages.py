"""Runs over few pages: what the commands say of tables of one page, of pages of one row, and of rows without a page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.new_run.run_estimate import BuildContents, estimate_run
from app.run_spec import BatchSpec
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.tables.scorecard import RIGHT
from tests.support.command import Rashomon
from tests.support.json_output import cells_of

ROWS = 12
SOME, IMAGE = "some", "image"


def built(tmp_path: Path, page: Callable[[int], str], column: str = "document", *options: str) -> Rashomon:
    """Return a command line with two runs over twelve rows, the pages of which are in ``column``."""
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "question", "answer", column, "conflict"])
        for row in range(ROWS):
            Image.new("RGB", (16, 16), (7 * row, 255 - 9 * row, 99)).save(tmp_path / f"{row}.png")
            table.writerow([f"{row}.png", "How many crates were sold?", 103 + 7 * row, page(row), 523 + 11 * row])
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--from", tmp_path / "rows.csv", *options)
    for name, model in ((SOME, "policy:uniform"), (IMAGE, "policy:always-image")):
        rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", model, "--name", name, "--display", "none")
    return rashomon


def interval(rashomon: Rashomon) -> tuple[Any, Any]:
    """Return the ends of the interval of what follows the image under conflict."""
    (table,) = rashomon.json("show", SOME, "--table", "scorecard")["tables"]
    (row,) = (row for row in table["rows"] if row["label"] == "conflict: follows the image")
    (cell,) = row["cells"].values()
    return cell.get("low"), cell.get("high")


@pytest.mark.parametrize("column", ["document", "page", "doc_id", "report"])
def test_one_page_gives_no_interval_and_says_so(tmp_path: Path, column: str) -> None:
    rashomon = built(
        tmp_path, lambda row: "the report", column, *(["--cluster", "report"] if column == "report" else [])
    )
    assert interval(rashomon) == (None, None)
    assert "Too few pages: the numbers rest on one" in rashomon.run("show", SOME).stdout
    compared = rashomon.run("compare", SOME, IMAGE).stdout
    assert "a single page gives no interval" in compared
    assert "Too few pages" in compared


def test_pages_of_several_rows_are_less_evidence_than_rows(tmp_path: Path) -> None:
    widths = []
    for folder, page in (("rows", lambda row: f"d{row}"), ("pages", lambda row: f"d{row % 4}")):
        (tmp_path / folder).mkdir()
        rashomon = built(tmp_path / folder, page)
        low, high = interval(rashomon)
        widths.append(high - low)
        assert ("Too few pages" in rashomon.run("show", SOME).stdout) == (folder == "pages")
        build = Build.open(rashomon.workspace / "benchmarks" / "cmc-bench")
        (spec,) = BatchSpec(benchmark="cmc-bench", model=("policy:uniform",)).runs()
        estimate = estimate_run(Workspace(rashomon.workspace), spec, BuildContents.read(build, "paper"))
        assert estimate.pages == (ROWS if folder == "rows" else 4)
    assert widths[0] < widths[1]


def test_rows_without_a_page_are_pages_of_their_own(tmp_path: Path) -> None:
    """Half of the rows are about one report, the others about a picture each: seven pages."""
    rashomon = built(tmp_path, lambda row: "the report" if row % 2 else "")
    assert "rest on 7 pictures, pages or documents" in rashomon.run("show", SOME).stdout


@pytest.mark.parametrize(("share", "obeys"), [("0", 1.0), ("1", 0.0)])
def test_conflicts_never_or_always(tmp_path: Path, share: str, obeys: float) -> None:
    """A rule that asks for the text: the policy of the image obeys only where sources agree."""
    rashomon = built(tmp_path, lambda row: f"d{row}")
    result = rashomon.json("recommend", SOME, IMAGE, "--trust", "text", "--conflict-share", share)
    shares = {row["label"]: row["cells"]["obedience"]["value"] for row in result["table"]["rows"]}
    assert shares["policy:always-image"] == obeys


def test_a_cluster_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["image", "question", "answer"], ["0.png", "How many?", "3"]])
    Image.new("RGB", (16, 16)).save(tmp_path / "0.png")
    assert (
        "report"
        in Rashomon(tmp_path)
        .run("build", "cmc-bench", "--from", tmp_path / "rows.csv", "--cluster", "report", code=2)
        .stderr
    )


def test_the_right_value_is_the_same_in_the_scorecard_and_in_a_recommendation(tmp_path: Path) -> None:
    rashomon = built(tmp_path, lambda row: f"d{row // 2}")
    (scorecard,) = rashomon.json("show", SOME, IMAGE, "--table", "scorecard")["tables"]
    (right,) = (cells_of(scorecard, i) for i, row in enumerate(scorecard["rows"]) if row["label"] == RIGHT)
    decided = rashomon.json("recommend", SOME, IMAGE, "--trust", "text")["table"]["rows"]
    for row in decided:
        cell, beside = row["cells"]["right_value"], right[row["label"]]
        assert (cell["value"], cell["low"], cell["high"], cell["n"]) == pytest.approx(
            tuple(beside[key] for key in ("value", "low", "high", "n"))
        )


def test_an_exported_accuracy_has_an_error_over_pages(tmp_path: Path) -> None:
    """All twelve answers are right, which is no certainty; on four pages it is less evidence than on twelve."""
    errors = []
    for folder, page in (("rows", lambda row: f"d{row}"), ("pages", lambda row: f"d{row % 4}")):
        (tmp_path / folder).mkdir()
        rashomon = built(tmp_path / folder, page)
        rashomon.run("export", IMAGE, "--format", "lm-eval", "--out", tmp_path / folder / "out")
        (file,) = (tmp_path / folder / "out").rglob("results_*.json")
        aligned = json.loads(file.read_text("utf-8"))["results"]["cmc-bench_aligned"]
        assert aligned["acc,none"] == 1.0
        errors.append(aligned["acc_stderr,none"])
    assert 0 < errors[0] < errors[1]


def test_progress_under_conflict_calls_no_invention_right(tmp_path: Path) -> None:
    rashomon = built(tmp_path, lambda row: f"d{row}")
    model = "--batch", "--benchmark", "cmc-bench", "--model", "policy:always-abstain"
    (done,) = (line for line in rashomon.run(*model, "--display", "plain").stdout.splitlines() if ": done: " in line)
    assert "aligned 0.000 n=12" in done
    assert "both-wrong n=12" in done
