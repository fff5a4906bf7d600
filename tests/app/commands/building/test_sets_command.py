"""Question sets: a table that is edited and built again, `rashomon sets`, and the runs of earlier versions."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from app.store.question_sets import SetVersion
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.system.project_paths import ASSETS
from benchmarks.build import Build
from tests.support.command import Rashomon
from tests.support.data.small import picture
from tests.support.demo import write_table

ROWS = [f"{n}.png,How many on page {n % 4}?,{10 + 3 * n},Page {n} counts {10 + 3 * n} of them.\n" for n in range(8)]
HEADER = "image,question,answer,passage\n"


@pytest.fixture
def home(tmp_path: Path) -> Rashomon:
    """A home with eight pictures and a table of them."""
    for n in range(8):
        (tmp_path / f"{n}.png").write_bytes(picture(n))
    return Rashomon(tmp_path)


def build(home: Rashomon, rows: list[str], *options: str, table: str = "rows.csv") -> dict[str, Any]:
    """Write the table, build it, and return the set's part of the result."""
    path = home.home / table
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEADER + "".join(rows), "utf-8")
    result = home.json("build", "cmc-bench", "--from", path, *options)
    recorded: dict[str, Any] = result["set"] | {"path": home.workspace / result["folder"], "digest": result["digest"]}
    return recorded


def edited(rows: list[str]) -> list[str]:
    """Return the rows with one cell changed: the answer of the third, and its passage."""
    return [*rows[:2], rows[2].replace("16", "17"), *rows[3:]]


def run(home: Rashomon, name: str, *options: str) -> Path:
    home.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", "--name", name, *options)
    return home.workspace / "runs" / name


def test_an_edit_is_told_and_the_version_before_stays_with_its_pictures_and_runs(home: Rashomon) -> None:
    first = build(home, ROWS)
    assert (first["name"], first["version"], first["changes"]) == ("rows", 1, None)
    folder = run(home, "before")
    second = build(home, edited(ROWS))
    assert second["version"] == 2
    assert second["changes"]["changed"] == [
        {
            "row": "rows.csv:4",
            "cells": [
                {"column": "answer", "before": "16", "after": "17"},
                {"column": "passage", "before": "Page 2 counts 16 of them.", "after": "Page 2 counts 17 of them."},
            ],
        }
    ]
    assert second["changes"]["added"] == second["changes"]["removed"] == []
    assert 0 < second["changes"]["same_instances"] < second["changes"]["instances"]
    run(home, "after")
    workspace = Workspace(home.workspace)
    with RunStore.read(folder) as store:
        assert workspace.build_of(store).samefile(first["path"])
    home.run("resume", "before")
    assert workspace.runs_by_data() == {first["digest"]: ["before"], second["digest"]: ["after"]}
    for version in (first, second):
        assert Build.open(version["path"]).digest == version["digest"]
        pictures = sorted((version["path"] / "media").iterdir())
        assert len(pictures) == 8
    assert all(path.stat().st_nlink == 2 for path in pictures), "a picture of both versions is stored once"


def test_an_edit_that_is_taken_back_leaves_the_runs_of_the_first_version(home: Rashomon) -> None:
    build(home, ROWS)
    run(home, "before")
    build(home, edited(ROWS))
    build(home, ROWS)
    (listed,) = home.json("sets")
    assert [version["runs"] for version in listed["versions"]] == [["before"], [], ["before"]]
    assert "Its runs (1) stay" in home.run("sets", "remove", "rows", "--yes").stdout


def test_a_listing_reads_each_run_once(home: Rashomon, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("rows.csv", "other.csv"):
        build(home, ROWS, table=table)
    run(home, "mine")
    reads, read = [], RunStore.read

    def count(folder: Path) -> RunStore:
        reads.append(folder)
        return read(folder)

    monkeypatch.setattr(RunStore, "read", count)
    home.run("sets")
    assert len(reads) == 1


@pytest.mark.slow
def test_a_model_is_asked_again_about_pictures_that_only_an_earlier_version_has(home: Rashomon) -> None:
    shutil.copytree(ASSETS / "demo" / "held_out", home.home / "held_out")
    lines = (ASSETS / "demo" / "rows.csv").read_text("utf-8").splitlines(keepends=True)
    table = home.home / "charts.csv"
    table.write_text("".join(lines[:7]), "utf-8")
    home.run("build", "cmc-bench", "--from", table)
    model = ("--benchmark", "cmc-bench", "--model", ASSETS / "demo" / "model-4bit", "--conditions", "image-only")
    home.run("--batch", *model, "--name", "before")
    table.write_text("".join([lines[0], *lines[7:13]]), "utf-8")
    home.run("build", "cmc-bench", "--from", table)
    pictures = [{path.name for path in (home.workspace / "sets/charts" / n / "media").iterdir()} for n in "12"]
    assert pictures[0].isdisjoint(pictures[1])
    home.run("resume", "before", "--repeat")
    with RunStore.read(home.workspace / "runs" / "before") as store:
        (progress,) = store.progress()
    assert (progress.done, progress.errors) == (progress.total, 0)


def test_an_answered_half_of_an_earlier_version_resumes(home: Rashomon) -> None:
    build(home, ROWS)
    folder = run(home, "half", "--conditions", "aligned")
    with RunStore.open(folder) as store:
        done = sum(progress.done for progress in store.progress())
    build(home, edited(ROWS))
    home.run("resume", "half", "--repeat")
    with RunStore.open(folder) as store:
        assert sum(progress.done for progress in store.progress()) == done


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (ROWS[::-1], ([], [], [])),
        (ROWS[1:], ([], ["rows.csv:2"], [])),
        ([*ROWS[:7], ROWS[7].replace("7.png", "0.png")], ([], [], [("rows.csv:9", ["image"])])),
        ([ROWS[0].replace("How many", "What count is"), *ROWS[1:]], ([], [], [("rows.csv:2", ["question"])])),
        (["0.png,How many in all?,99,\n", *ROWS], (["rows.csv:2"], [], [])),
        (
            ["0.png,How many in all?,99,\n", *edited(ROWS)[:6], ROWS[7]],
            (["rows.csv:2"], ["rows.csv:8"], [("rows.csv:5", ["answer", "passage"])]),
        ),
    ],
)
def test_rows_are_compared_by_content(
    home: Rashomon, rows: list[str], expected: tuple[list[str], list[str], list[tuple[str, list[str]]]]
) -> None:
    build(home, ROWS)
    changes = build(home, rows)["changes"] or {"added": [], "removed": [], "changed": []}
    changed = [(row["row"], sorted(cell["column"] for cell in row["cells"])) for row in changes["changed"]]
    assert (changes["added"], changes["removed"], changed) == expected


def test_a_row_that_the_table_still_has_is_left_out_and_not_removed(home: Rashomon) -> None:
    build(home, ROWS)
    unusable = [row.replace("6.png", "none.png").replace("How many", "") if row == ROWS[6] else row for row in ROWS]
    changes = build(home, ["0.png,How many in all?,99,\n", *unusable[:2], *unusable[3:]])["changes"]
    assert (changes["added"], changes["removed"], changes["left_out"]) == (
        ["rows.csv:2"],
        ["rows.csv:4"],
        ["rows.csv:8"],
    )
    stdout = home.run("build", "cmc-bench", "--from", home.home / "rows.csv", "--name", "rows").stdout
    assert "left out: rows.csv:8" in stdout
    changes = build(home, unusable[:6])["changes"]
    assert (changes["removed"], changes["left_out"]) == (["rows.csv:2", "rows.csv:9"], [])


def test_the_same_table_is_no_new_version_and_repairs_changed_pictures(home: Rashomon) -> None:
    first = build(home, ROWS)
    build(home, edited(ROWS))
    damaged = sorted((first["path"] / "media").iterdir())[0]
    damaged.unlink()
    damaged.write_bytes(picture(99))
    listed = home.json("sets")[0]["versions"]
    assert "1 changed or lost picture" in listed[0]["problem"]
    assert listed[1]["problem"] is None
    again = build(home, edited(ROWS))
    assert (again["version"], again["changes"]) == (2, None)
    assert "as before" in home.run("build", "cmc-bench", "--from", home.home / "rows.csv").stdout
    back = build(home, ROWS)
    assert (back["version"], back["digest"]) == (3, first["digest"])
    assert all(v["problem"] is None for v in home.json("sets")[0]["versions"])


def test_a_picture_that_was_replaced_in_the_table_is_a_change(home: Rashomon) -> None:
    build(home, ROWS)
    (home.home / "5.png").write_bytes(picture(55))
    assert [
        (row["row"], [cell["column"] for cell in row["cells"]]) for row in build(home, ROWS)["changes"]["changed"]
    ] == [("rows.csv:7", ["image"])]


def test_a_change_deep_in_a_long_cell_is_shown_where_it_is_and_found_values_are_no_cells(home: Rashomon) -> None:
    long = "The page is about many other things that nobody asked for. " * 3
    rows = [ROWS[0].replace("Page 0", long + "Page 0"), *ROWS[1:]]
    build(home, rows)
    rows = [rows[0].replace("of them", "of those"), *ROWS[1:3], ROWS[3].replace("19,Page", "20,Page"), *ROWS[4:]]
    (home.home / "rows.csv").write_text(HEADER + "".join(rows), "utf-8")
    stdout = home.run("build", "cmc-bench", "--from", home.home / "rows.csv").stdout
    assert "changed: rows.csv:2: passage '…" in stdout
    assert "counts 10 of them.' -> '…" in stdout
    assert "counts 10 of those.'" in stdout
    assert "changed: rows.csv:5: answer '19' -> '20'\n" in stdout, "what its passage states was not edited"


def test_data_names_a_set_or_a_version(home: Rashomon) -> None:
    first, second = build(home, ROWS), build(home, edited(ROWS))
    build(home, ROWS[:4], table="other.csv")
    digests = {"rows@1": first["digest"], "rows": second["digest"], "ROWS@2": second["digest"]}
    for number, (data, digest) in enumerate(digests.items()):
        with RunStore.read(run(home, f"run{number}", "--data", data)) as store:
            assert store.meta("identity")["data digest"] == digest
    varied = home.json("vary", "rows@1", "--factor", "blur=0,2", "--limit", "2")
    assert varied["folder"] == "benchmarks/rows-1-varied", "no set has a build that is no version"
    batch = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", "--data")
    for wrong in ("rows@9", "rows@x", "rowz", "rows@"):
        assert "rows" in home.run(*batch, wrong, code=2).stderr


def test_two_tables_do_not_share_a_name_by_accident(home: Rashomon) -> None:
    build(home, ROWS[:4])
    (home.home / "moved").mkdir()
    for n in range(8):
        shutil.copy(home.home / f"{n}.png", home.home / "moved")
    table = home.home / "moved" / "Rows.csv"
    table.write_text(HEADER + "".join(ROWS[4:]), "utf-8")
    stderr = home.run("build", "cmc-bench", "--from", table, code=2).stderr
    assert "--name" in stderr
    assert str(home.home / "rows.csv") in stderr
    assert build(home, ROWS[4:], "--name", "new", table="moved/Rows.csv")["name"] == "new"
    assert build(home, ROWS[2:], table="moved/Rows.csv")["version"] == 2, "a moved table has rows in common"
    assert [known.name for known in Workspace(home.workspace).question_sets()] == ["new", "rows"]


def test_another_table_that_shares_a_few_rows_does_not_take_a_set_over(home: Rashomon) -> None:
    build(home, ROWS)
    strange = [ROWS[0], *(row.replace("How many", "What number") for row in ROWS[1:])]
    other = home.home / "other"
    other.mkdir()
    for n in range(8):
        shutil.copyfile(home.home / f"{n}.png", other / f"{n}.png")
    (other / "rows.csv").write_text(HEADER + "".join(strange), "utf-8")
    command = ("build", "cmc-bench", "--from", other / "rows.csv")
    home.run(*command, code=2)
    home.run(*command, "--replace", code=2)
    assert [len(known["versions"]) for known in home.json("sets")] == [1]
    home.run(*command, "--name", "strange")
    (home.home / "rows.csv").rename(home.home / "old.csv")
    assert home.json(*command)["set"]["moved_from"] == "rows.csv"


def test_most_rows_of_a_copied_table_make_it_the_next_version_and_the_move_is_said(home: Rashomon) -> None:
    build(home, ROWS)
    for n in range(8):
        (home.home / "copy").mkdir(exist_ok=True)
        shutil.copyfile(home.home / f"{n}.png", home.home / "copy" / f"{n}.png")
    recorded = build(home, edited(ROWS), table="copy/rows.csv")
    assert (recorded["version"], recorded["moved_from"]) == (2, "rows.csv")
    assert build(home, ROWS, table="copy/rows.csv")["moved_from"] is None


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "\x1b[31m", "x" * 81, ".removed", "-x", "a@1"])
def test_a_name_that_is_none_is_refused(home: Rashomon, name: str) -> None:
    (home.home / "rows.csv").write_text(HEADER + "".join(ROWS), "utf-8")
    stderr = home.run("build", "cmc-bench", "--from", home.home / "rows.csv", f"--name={name}", code=2).stderr
    assert "\x1b" not in stderr
    assert not (home.workspace / "sets").exists()


def test_a_hostile_file_name_becomes_a_plain_set_name(home: Rashomon) -> None:
    recorded = build(home, ROWS, table="..\x1b[31m[b]q.csv")
    assert recorded["name"].isprintable()
    assert "\x1b" not in home.run("sets").stdout


def test_a_build_of_other_sources_is_not_replaced_unasked_but_one_of_this_table_becomes_version_1(
    home: Rashomon,
) -> None:
    (home.home / "rows.csv").write_text(HEADER + "".join(ROWS), "utf-8")
    default = home.workspace / "benchmarks" / "cmc-bench"
    home.run("build", "cmc-bench", "--from", home.home / "rows.csv", "--out", default)  # as earlier releases did
    run(home, "old")
    second = build(home, edited(ROWS))
    assert second["version"] == 2
    home.run("resume", "old")
    (listed,) = home.json("sets")
    assert [version["runs"] for version in listed["versions"]] == [["old"], []]

    default.unlink()
    shutil.copytree(second["path"], default)
    manifest = json.loads((default / "manifest.json").read_text())
    manifest["sources"] = {"chartqa": {}}
    (default / "manifest.json").write_text(json.dumps(manifest))
    assert "--replace" in home.run("build", "cmc-bench", "--from", home.home / "rows.csv", code=2).stderr
    assert not default.is_symlink()
    assert build(home, ROWS[1:], "--replace")["version"] == 3
    assert default.is_symlink()


def test_a_published_source_replaces_the_link_and_no_version(home: Rashomon) -> None:
    first = build(home, ROWS)
    home.run("build", "cmc-bench", "--source", f"rows={home.home / 'rows.csv'}", "--seed", "3")
    assert not (home.workspace / "benchmarks" / "cmc-bench").is_symlink()
    assert Build.open(first["path"]).digest == first["digest"]
    run(home, "of-set", "--data", "rows")


def test_a_set_is_removed_and_restored(home: Rashomon) -> None:
    home.run("sets", "restore", "rows", code=2)
    build(home, ROWS)
    other = build(home, ROWS[:4], table="other.csv")
    build(home, edited(ROWS))
    for wrong in ("..", ".", "other/../rows", ".removed"):
        home.run("sets", "remove", wrong, "--yes", code=2)
    default = home.workspace / "benchmarks" / "cmc-bench"
    assert "--yes" in home.run("sets", "remove", "rows", code=2).stderr
    assert "sets restore rows" in home.run("sets", "remove", "rows", "--yes").stdout
    assert default.samefile(other["path"]), "the newest build that is left"
    assert [known["name"] for known in home.json("sets")] == ["other"]
    home.run("sets", "remove", "other", "--yes")
    assert "no question sets" in home.run("sets").stdout
    home.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", code=2)
    home.run("sets", "restore", "rowz", code=2)
    home.run("sets", "restore", "rows")
    assert Workspace(home.workspace).question_set("rows").numbers == "versions 1 to 2"
    home.run("sets", "restore", "rows", code=2)
    run(home, "again")


def test_a_damaged_set_hides_no_other_and_no_run(home: Rashomon) -> None:
    build(home, ROWS)
    build(home, ROWS[:4], table="other.csv")
    run(home, "mine")
    file = home.workspace / "sets" / "rows" / "set.json"
    stored = json.loads(file.read_text())
    for content in ("", "[]", "{}", '{"versions": 3}', json.dumps(stored | {"versions": []})):
        file.write_text(content)
        assert [known.get("problem") is None for known in home.json("sets")] == [
            True,
            False,
        ]
        assert "cannot be read" in home.run("sets").stdout
        home.run("show", "mine")
        assert "--name" in home.run("build", "cmc-bench", "--from", home.home / "rows.csv", code=2).stderr
    file.write_text(json.dumps(stored))
    (file.parent / "pages.json").unlink()
    assert "pages.json" in home.run("build", "cmc-bench", "--from", home.home / "rows.csv", code=2).stderr
    assert "pages.json" in home.run("sets").stdout
    (home.home / "victim").write_text("mine")
    file.write_text(json.dumps(stored | {"benchmark": "../../victim"}))
    home.run("sets", "remove", "rows", "--yes", code=2)
    assert (home.home / "victim").read_text() == "mine"
    stored["versions"][0]["number"] = "../../../../etc"
    file.write_text(json.dumps(stored))
    home.run("sets")
    assert home.run("show", "mine").stdout


def test_the_number_orders_versions_whatever_the_clock_said(home: Rashomon, monkeypatch: pytest.MonkeyPatch) -> None:
    build(home, ROWS)
    file = home.workspace / "sets" / "rows" / "set.json"
    stored = json.loads(file.read_text())
    stored["versions"][0]["made"] = "2099-01-01T00:00:00+00:00"
    file.write_text(json.dumps(stored))
    build(home, edited(ROWS))
    latest: SetVersion = Workspace(home.workspace).question_set("rows").latest
    assert latest.number == 2
    assert latest.build.samefile(home.workspace / "benchmarks" / "cmc-bench")


def test_a_set_that_is_being_built_is_not_built_twice(home: Rashomon) -> None:
    build(home, ROWS)
    from app.store.question_set_writer import building

    with building(home.workspace, "rows"):
        assert "another process" in home.run("build", "cmc-bench", "--from", home.home / "rows.csv", code=4).stderr
        home.run("sets", "remove", "rows", "--yes", code=4)
    assert build(home, edited(ROWS))["version"] == 2


@pytest.mark.slow
def test_a_killed_build_leaves_the_set_as_it_was_or_complete(home: Rashomon) -> None:
    build(home, ROWS)
    numbers, random_ = random.Random(1), random.Random(2)
    for attempt in range(20):
        rows = [row.replace(",10,", f",{100 + attempt},") for row in ROWS]
        (home.home / "rows.csv").write_text(HEADER + "".join(rows), "utf-8")
        process = home.start("build", "cmc-bench", "--from", home.home / "rows.csv")
        time.sleep(numbers.uniform(0.1, 1.5))
        process.send_signal(random_.choice([signal.SIGKILL, signal.SIGTERM]))
        process.communicate()
        question_set = Workspace(home.workspace).question_set("rows")
        for version in question_set.versions:
            assert Build.open(version.build).digest == version.digest
        Build.open(home.workspace / "benchmarks" / "cmc-bench")
    last = build(home, ROWS[::-1])
    assert last["path"].samefile(home.workspace / "benchmarks" / "cmc-bench")
    assert {path.name for path in (home.workspace / "sets" / "rows").iterdir()} == {
        *("set.json", "pages.json", "lock"),
        *(str(version.number) for version in Workspace(home.workspace).question_set("rows").versions),
    }


def test_a_build_says_first_what_became_of_the_set(tmp_path: Path) -> None:
    rashomon, build = Rashomon(tmp_path), ("build", "cmc-bench", "--from")
    lines = [rashomon.run(*build, write_table(tmp_path, 6)).stdout.splitlines() for _ in range(2)]
    assert [text[0] for text in lines] == ["version 1 of the set charts", "version 1 of the set charts, as before"]
    assert [text[1].startswith("built ") for text in lines] == [True, False]
    edited = rashomon.run(*build, write_table(tmp_path, 6, edit={"answer": "41"})).stdout
    assert edited.startswith("version 2 of the set charts: 1 row changed; ")
    assert edited.splitlines()[1].startswith("  changed: charts.csv:")
