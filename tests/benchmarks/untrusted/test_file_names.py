"""Names that some disks do not tell apart: no run, training, set, export or bundle takes the place of another.

The file system of these tests may tell them apart: what is compared are the names themselves.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from app.engine.adopt_run import _new_name
from app.engine.training.training_folder import trainings_folder
from app.engine.training.training_plan import _known
from app.exports.expected_files import expected_files
from app.exports.export_input import file_names
from app.run_spec import BatchSpec
from app.store.bundles.bundle_layout_and_limits import bundled_names
from app.store.question_sets import SETS, default_name, set_folder, set_name
from app.store.run_trash import Trash
from app.store.workspace import Workspace
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.file_names import distinct_names, name_key, repeated_name, twin
from tests.support.command import Rashomon

COMPOSED, DECOMPOSED = (normalize(form, "Données") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [
        ("Night", "night", True),
        (COMPOSED, DECOMPOSED, True),
        (COMPOSED.upper(), DECOMPOSED, True),
        ("Straße", "STRASSE", True),
        ("ǰ", "J̌", True),
        ("night", "nights", False),
        ("donnees", COMPOSED, False),
        ("a-b", "a_b", False),
    ],
)
def test_names_that_a_disk_may_not_tell_apart(name: str, other: str, same: bool) -> None:
    assert (name_key(name) == name_key(other)) is same
    assert (repeated_name([name, "x", other]) == other) is same
    assert (twin(other, ["x", name]) == name) is same
    assert twin(other, [name, other]) is None, "it is one of them"
    distinct = distinct_names([name, other])
    assert distinct[0] == name
    assert (distinct[1] == f"{other} (2)") is same
    assert repeated_name(distinct) is None


def test_a_number_is_no_name_of_another() -> None:
    names = distinct_names(["a", "A", "a (2)", "A (2)", "a"])
    assert repeated_name(names) is None
    assert names[:2] == ["a", "A (2)"]


@pytest.mark.parametrize(
    "names", [["night", "Night"], [COMPOSED, DECOMPOSED], ["ré", "rè"], ["x", "x"], ["a", "A", "a (2)"]]
)
@pytest.mark.parametrize("form", ["csv", "json", "inspect"])
def test_runs_are_exported_to_files_of_their_own(form: str, names: list[str]) -> None:
    folders = [Path(f"/workspace-{number}") / name for number, name in enumerate(names)]
    files = expected_files([form], [], folders)
    assert repeated_name(files) is None
    assert len([file for file in files if file.endswith((".samples.csv", ".samples.jsonl", ".eval"))]) == len(names)
    assert repeated_name(bundled_names(names)) is None
    assert all(name.isascii() for name in file_names(folders))


def test_a_set_is_found_however_its_name_is_written(tmp_path: Path) -> None:
    assert set_name(DECOMPOSED) == default_name(DECOMPOSED) == default_name(COMPOSED) == COMPOSED
    folder = tmp_path / SETS / COMPOSED
    folder.mkdir(parents=True)
    for name in (COMPOSED, DECOMPOSED, COMPOSED.lower(), DECOMPOSED.upper()):
        assert set_folder(tmp_path, name) == folder
    assert set_folder(tmp_path, "donnees") != folder


def test_a_training_has_a_name_that_every_disk_tells_from_others(tmp_path: Path) -> None:
    workspace, rows = Workspace(tmp_path), Any
    folder = trainings_folder(workspace) / "Charts"
    folder.mkdir(parents=True)
    (folder / "training.json").write_text("{}")
    assert _known(workspace, "other", rows) is None  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="there is a training Charts, which some disks do not tell from charts"):
        _known(workspace, "charts", rows)  # type: ignore[arg-type]


def test_a_pattern_names_each_model_on_every_disk() -> None:
    values: dict[str, Any] = {"benchmark": "cmc-bench", "name": "night-{model}", "judge": ["match"]}
    BatchSpec.model_validate({**values, "model": ["a/Qwen", "b/Gemma"]})
    with pytest.raises(SpecError, match="can only name one run"):
        BatchSpec.model_validate({**values, "model": ["a/Qwen", "b/qwen"]}).runs()


def test_a_run_has_a_name_that_every_disk_tells_from_others(rashomon: Rashomon) -> None:
    command = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", "--limit", "2", "--name")
    rashomon.run(*command, "Night")
    rashomon.run(*command, "Night")
    refused = rashomon.run(*command, "night", code=2)
    assert "there is a run Night, which some disks do not tell from night; choose another --name." in refused.stderr
    assert [run["name"] for run in rashomon.json("runs")] == ["Night"]


def test_a_run_that_is_adopted_imported_or_restored_takes_no_name_of_another(rashomon: Rashomon) -> None:
    command = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", "--limit", "2", "--name")
    rashomon.run(*command, "Night")
    workspace, received = Workspace(rashomon.workspace), rashomon.home / "mail" / "NIGHT"
    shutil.copytree(workspace.runs_folder / "Night", received)
    (rashomon.home / "answers.jsonl").write_text("{}\n")
    refused = "there is a run Night, which some disks do not tell from nIGHT; choose another --name."
    assert refused in rashomon.run("adopt", received, "--yes", "--name", "nIGHT", code=2).stderr
    imported = ("import", rashomon.home / "answers.jsonl", "--benchmark", "cmc-bench", "--model", "m")
    assert refused in rashomon.run(*imported, "--name", "nIGHT", code=2).stderr
    assert _new_name(workspace, "NIGHT", None) == "NIGHT-adopted"
    with closing(Trash(workspace)) as trash:
        trash.delete(workspace.runs_folder / "Night")
        rashomon.run(*command, "night")
        with pytest.raises(StoreError, match=r"there is another run night now; .* restore Night"):
            trash.restore()
        assert workspace.run_names() == ["night"]
        trash.empty()
