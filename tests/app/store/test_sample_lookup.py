"""An instance id is accepted as any list prints it, and an unknown one gets suggestions."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.run_store import RunStore
from app.store.sample_lookup import find_sample_id
from app.store.workspace import Workspace
from app.text.text_escaping import clean, spreadsheet_cell
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Instance, Text
from tests.app.store.test_run_store import META
from tests.support.command import Rashomon
from tests.support.runs import instances, make_run, says

ODD = (
    "a b/aligned",
    "-dash",
    "=1+1",
    "tab\there",
    "\x1b[31mred",
    "\u202eright",
    "it's",
    "日本/二",
    "plain-1",
    "plain-12",
)


def store_of(folder: Path, ids: Sequence[str]) -> RunStore:
    instances = [Instance(name, name, "plain", "?", (Text("?"),), {}, {}) for name in ids]
    RunStore.create(folder, META, instances).close()
    return RunStore.read(folder)


def test_an_id_is_found_as_it_is_as_it_is_printed_and_by_its_beginning(tmp_path: Path) -> None:
    with store_of(tmp_path, ODD) as store:
        for name in ODD:
            for typed in (name, clean(name), f" {name} ", spreadsheet_cell(name)):
                assert find_sample_id(store, typed) == name
        assert find_sample_id(store, "a b") == "a b/aligned"
        assert find_sample_id(store, r"\x1b[3") == "\x1b[31mred"
        assert find_sample_id(store, "plain-1") == "plain-1", "a whole id is no beginning"
        with pytest.raises(SpecError, match=r"'plain' matches 2 instances of .*, such as plain-1, plain-12; "):
            find_sample_id(store, "plain")


@pytest.mark.parametrize("typed", ["", "\udcff\udcfe", "plian-12", "x" * 10_000, "\0", "%"])
def test_what_is_no_id_is_told_of_the_nearest(typed: str, tmp_path: Path) -> None:
    with store_of(tmp_path, ODD) as store, pytest.raises(SpecError, match="has no instance") as caught:
        find_sample_id(store, typed)
    near = str(caught.value).partition("closest: ")[2].partition("; `")[0]
    assert near.startswith("plain-12," if typed == "plian-12" else "'a b/aligned', -dash, =1+1")


@pytest.mark.slow
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1, unique=True
    )
)
def test_every_id_is_found_by_itself(ids: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, store_of(Path(folder), ids) as store:
        assert [find_sample_id(store, name) for name in ids] == ids


def test_show_and_override_take_what_they_print_and_refuse_odd_bytes_in_a_sentence(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    name = "\x1b[31mit's a b"
    asked = [replace(first, id=f"{name}/{number}") for number, first in enumerate(instances(1))]
    make_run(Workspace(rashomon.workspace), "r", asked, says("2008"))
    stderr = rashomon.run("show", "r", "--sample", "zzz", code=2).stderr
    pasted = stderr.partition("closest: ")[2].partition(", $'")[0]
    typed = subprocess.run(["bash", "-c", f"printf %s {pasted}"], capture_output=True, text=True, check=True).stdout
    assert typed == f"{name}/0", "what is printed can be pasted into a shell"
    for word in (typed, clean(typed)):
        assert clean(typed) in rashomon.run("show", "r", "--sample", word).stdout
    stdout = rashomon.run("override", "r", clean(typed), "TEXT", "--as", "ann", "--reason", "so it is").stdout
    assert stdout.startswith(f"{clean(typed)}: TEXT by override:ann")
    bad = os.fsdecode(b"\xff\xfe x")
    for arguments in (
        ("show", bad),
        ("show", "r", "--sample", bad),
        ("override", "r", bad, "TEXT", "--as", "ann", "--reason", "y"),
        ("override", "r", bad, "--as", "ann", "--undo"),
    ):
        done = rashomon.run(*arguments, code=2)
        assert done.stderr.startswith("rashomon: ")
        assert done.stderr.count("\n") == 1
