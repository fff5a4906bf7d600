"""The names in transformers' modules: remembered while its files stay the same, and searched again otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.untrusted import private_state
from mlx_backends.core.transformers_names import Names, _remembering
from tests.support.command import ROOT

FOUND: Names = {frozenset(): {"a.modeling_a": {"A", "B"}}, frozenset({"torch", "vision"}): {"b": {"C"}}}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return private_state.state_folder()


class Search:
    """A search that counts how often it is needed."""

    def __init__(self, folder: Path) -> None:
        (folder / "a").mkdir(parents=True)
        (folder / "a" / "modeling_a.py").write_text("A = B = 1")
        self.folder, self.count = folder, 0

    def __call__(self, place: Path, prefix: str | None = None) -> Names:
        self.count += 1
        return {needed: dict(modules) for needed, modules in FOUND.items()}

    def in_a_new_process(self, place: Path | str | None = None) -> None:
        """Ask for the names twice, with and without a prefix; between the two, change what is given, as transformers does."""
        remembering = _remembering(self, self.folder)
        names = remembering(place or self.folder, "models")
        assert names == {
            needed: {f"models.{key}": value for key, value in found.items()} for needed, found in FOUND.items()
        }
        names[frozenset()]["more"] = {"D"}
        names[frozenset()]["models.a.modeling_a"].add("E")
        assert remembering(place or self.folder) == FOUND


@pytest.fixture
def search(tmp_path: Path) -> Search:
    return Search(tmp_path / "models")


def test_is_searched_once(search: Search) -> None:
    search.in_a_new_process()
    search.in_a_new_process()
    assert search.count == 1


def test_a_folder_is_also_named_by_its_first_module(search: Search) -> None:
    search.in_a_new_process()
    search.in_a_new_process(str(search.folder / "__init__.py"))
    assert search.count == 1


def test_other_folders_are_always_searched(search: Search, state: Path) -> None:
    for _ in range(2):
        assert _remembering(search, search.folder)(search.folder / "a") == FOUND
    assert search.count == 2
    assert not state.exists()


def change_text(search: Search, _: Path) -> None:
    (search.folder / "a" / "modeling_a.py").write_text("A = B = C = 1")


def change_time(search: Search, _: Path) -> None:
    os.utime(search.folder / "a" / "modeling_a.py", (1, 1))


def add(search: Search, _: Path) -> None:
    (search.folder / "a" / "b.py").touch()


def remove(search: Search, _: Path) -> None:
    (search.folder / "a" / "modeling_a.py").unlink()


def replace(content: str) -> Callable[[Search, Path], None]:
    def write(_: Search, file: Path) -> None:
        same = json.loads(file.read_text())["state"]
        file.write_text(content.replace("SAME", same))

    return write


@pytest.mark.parametrize(
    "harm",
    [
        change_text,
        change_time,
        add,
        remove,
        *map(
            replace,
            (
                "",
                "{",
                "[]",
                "[" * 100_000,
                "1",
                '{"state": "SAME"}',
                '{"state": "SAME", "names": [1]}',
                '{"state": "SAME", "names": [[[], []]]}',
            ),
        ),
    ],
)
def test_is_searched_again(harm: Callable[[Search, Path], None], search: Search, state: Path) -> None:
    search.in_a_new_process()
    harm(search, state / "transformers-names.json")
    search.in_a_new_process()
    search.in_a_new_process()
    assert search.count == 2


def test_goes_on_where_nothing_can_be_written(search: Search, state: Path) -> None:
    state.parent.write_text("a file in its place")
    search.in_a_new_process()
    search.in_a_new_process()
    assert search.count == 2


@pytest.mark.slow
def test_transformers_has_the_same_names(state: Path) -> None:
    """And it opens no file of a model to find them."""
    program = """
import sys
read = []
sys.addaudithook(lambda event, args: read.append(str(args[0])) if event == "open" else None)
if "remember" in sys.argv:
    from mlx_backends.core.transformers_names import remember_names
    remember_names()
import transformers, transformers.models
searched = sum("modeling_" in name and name.endswith(".py") for name in read)
print(searched, end=" ")
for module in (transformers, transformers.models):
    print(sorted(dir(module)), sorted(module._class_to_module.items()))
    print(sorted((name, sorted(needed)) for name, needed in module._object_missing_backend.items()))
"""
    command = [sys.executable, "-c", program]
    printed = [
        subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(" ", 1)
        for more in ([], ["remember"], ["remember"])
    ]
    assert [int(searched) > 0 for searched, _ in printed] == [True, True, False]
    assert len({names for _, names in printed}) == 1
    assert len(printed[0][1]) > 100_000
