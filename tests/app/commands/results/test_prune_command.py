"""Old runs deleted by a script: which ones, what is kept because something rests on it, and how they come back."""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest

from app.store.run_store import RunStore
from app.store.run_trash import FOLDER, Trash
from app.store.workspace import Workspace
from benchmarks.errors import StoreFullError
from tests.support.command import Rashomon, kill_all
from tests.support.demo import FOUR_BIT, write_table
from tests.support.full_disk import disk
from tests.support.trust import tree

IMAGE, TEXT = "policy:always-image", "policy:always-text"


def ask(rashomon: Rashomon, name: str, model: str | Path = IMAGE, *, days: float = 0) -> None:
    """Make a run that is some days old."""
    options = ("--benchmark", "cmc-bench", "--limit", "1", "--display", "none")
    rashomon.run("--batch", *options, "--model", model, "--name", name)
    with RunStore.open(rashomon.workspace / "runs" / name) as store:
        store.set_meta("created", time.time() - days * 86400)


def names(rashomon: Rashomon) -> list[str]:
    return Workspace(rashomon.workspace).run_names()


def prune(rashomon: Rashomon, *options: str, code: int = 0) -> str:
    return rashomon.run("runs", "--prune", *options, code=code).stdout


@pytest.fixture
def nights(rashomon: Rashomon) -> Rashomon:
    """Three nights of two models, and another run."""
    for days in (3, 2, 1):
        for model in (IMAGE, TEXT):
            ask(rashomon, f"nightly-{days}-{model[14:]}", model, days=days)
    ask(rashomon, "mine", days=400)
    return rashomon


def test_the_newest_of_each_model_are_kept_and_the_others_come_back(nights: Rashomon) -> None:
    def contents() -> dict[str, dict[str, str]]:
        folders = {name: nights.workspace / "runs" / name for name in names(nights)}
        return {name: {p: d for p, d in tree(f).items() if not p.endswith("/lock")} for name, f in folders.items()}

    before = contents()
    preview = prune(nights, "--keep", "1", "--match", "nightly-*", code=2)
    assert sorted(before) == names(nights)
    assert preview in prune(nights, "--keep", "1", "--match", "nightly-*", "--yes")
    kept = ["mine", "nightly-1-image", "nightly-1-text"]
    assert names(nights) == kept
    assert all((f"  {name}: " in preview) == (name not in kept) for name in before)
    nights.run("runs", "--restore")
    assert contents() == before
    nights.run("runs", "--restore", code=2)


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (("--older-than", "2w"), {"mine"}),
        (("--older-than", "36h", "--match", "*-text"), {"nightly-3-text", "nightly-2-text"}),
        (("--older-than", "36h", "--keep", "2", "--match", "nightly*"), {"nightly-3-text", "nightly-3-image"}),
        (("--keep", "5"), set()),
    ],
)
def test_limits_hold_together(nights: Rashomon, options: tuple[str, ...], gone: set[str]) -> None:
    before = set(names(nights))
    prune(nights, *options, "--yes")
    assert before - {*names(nights)} == gone


def test_an_unfinished_run_counts_as_none_of_the_newest(rashomon: Rashomon) -> None:
    ask(rashomon, "finished", days=2)
    ask(rashomon, "broken", days=1)
    with RunStore.open(rashomon.workspace / "runs" / "broken") as store:
        store.repeat((), errors_only=False)
    prune(rashomon, "--keep", "1", "--yes")
    assert names(rashomon) == ["broken", "finished"]
    ask(rashomon, "newer")
    prune(rashomon, "--keep", "1", "--yes")
    assert names(rashomon) == ["newer"]


def test_the_next_prune_removes_for_good_but_nothing_that_another_process_deleted(nights: Rashomon) -> None:
    session = Trash(Workspace(nights.workspace))
    session.delete(nights.workspace / "runs" / "mine")
    prune(nights, "--keep", "2", "--yes")
    assert "gone for good: nightly-3-image, nightly-3-text" in prune(nights, "--keep", "1", "--yes")
    nights.run("runs", "--restore")
    assert names(nights) == [f"nightly-{days}-{source}" for days in (1, 2) for source in ("image", "text")]
    assert session.restore().name == "mine"


def test_a_prune_without_anything_to_delete_empties_the_trash(nights: Rashomon) -> None:
    prune(nights, "--keep", "1", "--match", "nightly-*", "--yes")
    trash = nights.workspace / "runs" / FOLDER
    assert "nightly-3-image" in prune(nights, "--keep", "1", "--match", "nightly-*", code=2)
    assert trash.exists()
    text = prune(nights, "--keep", "1", "--match", "nightly-*", "--yes")
    assert re.search(r"^[\d.,]+ .B freed: 4 runs ", text, re.MULTILINE)
    assert not trash.exists()
    nights.run("runs", "--restore", code=2)
    assert "freed" not in prune(nights, "--keep", "1", "--match", "nightly-*", "--yes")


@pytest.mark.parametrize("earlier", [True, False], ids=["a trash to empty", "no trash"])
def test_pruning_frees_a_full_disk(tmp_path: Path, earlier: bool) -> None:
    with disk(tmp_path / "disk", "24m") as place:
        small = Rashomon(place)
        small.run("build", "cmc-bench", "--from", write_table(place, 6))
        for days in (4, 3, 2, 1):
            ask(small, f"n-{days}", days=days)
        if earlier:
            prune(small, "--keep", "3", "--match", "n-*", "--yes")  # n-4 goes to the trash
        with open(place / "filler", "wb", buffering=0) as filler, suppress(OSError):
            while filler.write(b"x" * 4096):
                pass
        assert os.statvfs(place).f_bavail == 0
        text = prune(small, "--keep", "1", "--match", "n-*", "--yes")
        assert ("1 run deleted before" in text) == earlier
        assert re.search("[23] runs deleted for good.*cannot be undone", text)
        assert names(small) == ["n-1"]
        assert os.statvfs(place).f_bavail > 0
        assert not (small.workspace / "runs" / FOLDER).exists()


def test_without_room_for_the_trash_only_a_confirmed_prune_deletes(
    nights: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("app.store.run_trash.make_folder", full)
    workspace = Workspace(nights.workspace)
    with pytest.raises(StoreFullError):
        Trash(workspace).delete(workspace.runs_folder / "mine")
    assert "mine" in names(nights)
    text = prune(nights, "--keep", "1", "--match", "nightly-*", "--yes")
    assert re.search("4 runs deleted for good, [\\d.,]+ .B freed.*cannot be undone", text)
    assert names(nights) == ["mine", "nightly-1-image", "nightly-1-text"]
    assert [entry.name for entry in workspace.runs_folder.iterdir() if entry.name.startswith(".")] == []


def test_a_run_in_progress_is_kept(rashomon: Rashomon) -> None:
    command = ("--batch", "--benchmark", "cmc-bench", "--model", IMAGE, "--name", "busy", "--display", "json")
    process = rashomon.held().start(*command)
    try:
        assert process.stdout is not None
        while '"done": 8' not in (line := process.stdout.readline()):
            assert line, "it ended"
        prune(rashomon, "--keep", "0", "--yes")
        assert names(rashomon) == ["busy"]
    finally:
        kill_all(process)
    prune(rashomon, "--keep", "0", "--yes")
    assert names(rashomon) == []


def test_what_people_made_is_kept_unless_asked_for(rashomon: Rashomon) -> None:
    ask(rashomon, "labelled")
    ask(rashomon, "plain", TEXT)
    with RunStore.read(rashomon.workspace / "runs" / "labelled") as store:
        sample = store.ids()[0]
    rashomon.run("override", "labelled", sample, "TEXT", "--as", "ann", "--reason", "seen")
    assert "labelled: it has 1 label of people" in prune(rashomon, "--keep", "0", "--yes")
    assert names(rashomon) == ["labelled"]
    assert "although it has 1 label of people" in prune(rashomon, "--keep", "0", "--include-used", "--yes")
    assert names(rashomon) == []


@pytest.mark.slow
def test_answers_that_another_run_reuses_are_kept_until_that_goes_too(rashomon: Rashomon) -> None:
    for days, name in ((2, "lender"), (1, "borrower")):
        ask(rashomon, name, FOUR_BIT, days=days)
    assert "lender: borrower reuses" in prune(rashomon, "--keep", "1", "--yes")
    assert names(rashomon) == ["borrower", "lender"]
    prune(rashomon, "--keep", "0", "--yes")
    assert names(rashomon) == []


def test_a_baseline_keeps_the_run_that_it_was_made_of(rashomon: Rashomon) -> None:
    ask(rashomon, "source", days=1)
    rashomon.run("baselines", "source", "--rule", "agree")
    ask(rashomon, "newer")
    assert "source: the baseline source-agree may be made of it" in prune(rashomon, "--keep", "1", "--yes")
    assert "source" in names(rashomon)
    ask(rashomon, "newest")
    going, _, kept = prune(rashomon, "--keep", "1", "--yes").partition("kept, because")
    assert "source: " in kept
    assert "newer: " in going, "the baseline is older"


def test_a_taken_name_keeps_only_its_own_run_in_the_trash(nights: Rashomon) -> None:
    before = names(nights)
    prune(nights, "--keep", "1", "--match", "nightly-*", "--yes")
    taken = nights.workspace / "runs" / "nightly-2-image"
    taken.mkdir()
    assert taken.name in nights.run("runs", "--restore", code=2).stderr
    assert names(nights) == [name for name in before if name != taken.name]
    taken.rmdir()
    nights.run("runs", "--restore")
    assert names(nights) == before


def test_the_only_run_of_its_name_is_marked_unless_a_pattern_names_it(nights: Rashomon) -> None:
    def marked(*options: str) -> list[str]:
        lines = prune(nights, "--keep", "0", *options, code=2).splitlines()
        return [line.split(":")[0].strip() for line in lines if "the only run" in line]

    assert marked() == ["mine"]
    assert marked("--match", "mine") == []


def test_a_sets_history_keeps_its_newest_runs(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--from", write_table(tmp_path, 8))
    for _ in range(2):
        rashomon.run("try", TEXT, "--against", IMAGE, "--trust", "text", "--fresh", code=6)  # not shown
    history = rashomon.run("history", "--json").stdout
    assert len(names(rashomon)) == 3
    printed = prune(rashomon, "--keep", "0", "--yes")
    assert "the incumbent in the history of charts" in printed
    assert "the newest run of its model in the history of charts" in printed
    assert len(names(rashomon)) == 2
    assert rashomon.run("history", "--json").stdout == history


@pytest.mark.parametrize(
    "options",
    [
        ("--prune",),
        ("--prune", "--match", "*"),
        ("--prune", "--keep", "-1"),
        ("--prune", "--older-than", "30"),
        ("--prune", "--older-than", "1e9d"),
        ("--prune", "--keep", "1", "--json"),
        ("--restore",),
        ("--restore", "--yes"),
        ("--keep", "1"),
    ],
)
def test_a_wrong_command_deletes_nothing(rashomon: Rashomon, options: tuple[str, ...]) -> None:
    ask(rashomon, "only", days=9)
    assert rashomon.run("runs", *options, code=2).stderr.count("\n") == 1
    assert names(rashomon) == ["only"]


def test_a_hostile_name_is_shown_and_deleted_as_one(rashomon: Rashomon) -> None:
    ask(rashomon, "only")
    name = "x\x1b]0;title\x07[red]"
    (rashomon.workspace / "runs" / "only").rename(rashomon.workspace / "runs" / name)
    (rashomon.workspace / "runs" / "linked").symlink_to(rashomon.home, target_is_directory=True)
    printed = prune(rashomon, "--keep", "0", "--yes")
    assert "\x1b" not in printed
    assert r"x\x1b]0;title\x07[red]" in printed
    assert names(rashomon) == []
    assert (rashomon.workspace / "runs" / FOLDER).is_dir()
