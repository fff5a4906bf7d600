"""The test data of a workspace: its builds, and every version of its question sets but those of the rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command import Rashomon
from tests.support.planted_leaks import drawn_chart

HEADER = "image,question,answer\n"


def row(number: int) -> str:
    return f"{number}.png,How many are there in {number}?,{100 + number}\n"


@pytest.fixture
def home(tmp_path: Path) -> Rashomon:
    """A workspace of which a set ``test`` has two versions, and the newest set ``tuning`` an example of the first."""
    for number in range(12):
        drawn_chart(number).save(tmp_path / f"{number}.png")
    home = Rashomon(tmp_path)
    build(home, "test", range(4))
    build(home, "test", range(1, 5))
    build(home, "tuning", [0, *range(5, 10)])
    return home


def build(home: Rashomon, name: str, rows: list[int] | range) -> None:
    table = home.home / name / "rows.csv"
    table.parent.mkdir(exist_ok=True)
    for number in rows:
        shutil.copy(home.home / f"{number}.png", table.parent)
    table.write_text(HEADER + "".join(map(row, rows)))
    home.run("build", "cmc-bench", "--from", table, "--name", name)


def arguments(home: Rashomon, name: str = "tuning") -> tuple[str | Path, ...]:
    return "training", "cmc-bench", "--data", name, "--out", home.home / "out"


def test_earlier_versions_of_other_sets_are_test_data(home: Rashomon) -> None:
    refused = home.run(*arguments(home), code=2).stderr
    assert "training rows are test data" in refused
    assert "rows.csv:2" in refused
    assert "rows.csv:2 has rows.csv:2 of test@1" in refused
    listed = json.loads(home.run(*arguments(home), "--json", code=2).stdout)["result"]
    assert listed["folder"] is None
    assert listed["leaks"]["image"] == sum(row["means"] == "image" for row in listed["leaked_rows"])
    assert {(row["source"], row["test"]) for row in listed["leaked_rows"]} >= {("rows.csv:2", "rows.csv:2 of test@1")}
    home.run("sets", "remove", "test", "--yes")
    assert home.json(*arguments(home))["leaks"] == {}


def test_other_versions_of_the_rows_own_set_are_not(home: Rashomon) -> None:
    build(home, "tuning", range(5, 11))
    written = home.json(*arguments(home))
    assert written["leaks"] == {}
    assert len(written["test_builds"]) == 2


def test_a_version_or_set_that_is_gone_is_named(home: Rashomon) -> None:
    sets = home.workspace / "sets"
    shutil.rmtree(sets / "test" / "1")
    (sets / "damaged").mkdir()
    (line, other) = home.json(*arguments(home))["warnings"]
    assert "the set damaged" in line
    assert "sets/test/1" in other
    shutil.rmtree(sets / "test")
    shutil.rmtree(sets / "damaged")
    (home.workspace / "benchmarks" / "elsewhere").symlink_to(home.home / "moved")
    shutil.rmtree(home.home / "out")
    (line,) = home.json(*arguments(home))["warnings"]
    assert "benchmarks/elsewhere" in line


def test_a_set_can_be_named_as_test_data(home: Rashomon) -> None:
    home.run("sets", "remove", "test", "--yes")
    named = home.run(*arguments(home), "--test", "tuning@1", code=2)
    assert "training rows are test data" in named.stderr
    assert "there is no set 'gone'" in home.run(*arguments(home), "--test", "gone@1", code=2).stderr
