"""Edge cases of planning that need no process."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from app.engine import run_plan as plan_module
from app.engine.run_identity import differences
from app.engine.run_plan import check_identity, check_spec, plan_run
from app.run_spec import load_spec
from app.store.run_references import run_folder
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildWriter
from benchmarks.errors import SourceError, SpecError, StoreError
from benchmarks.vocabulary import Instance


def test_the_same_spec_has_the_same_name_and_any_change_another() -> None:
    base: dict[str, Any] = {"benchmark": "cmc-bench", "model": "mlx-community/Qwen3-VL-4B-Instruct-4bit"}
    (spec,) = load_spec(None, base).runs()
    name = spec.run_name("data")
    assert name.startswith("cmc-bench-Qwen3-VL-4B-Instruct-4bit-paper-")
    assert load_spec(None, base).runs()[0].run_name("data") == name
    changes: list[dict[str, Any]] = [
        {"limit": 3},
        {"seed": 1},
        {"max_tokens": 9},
        {"temperature": 0.5},
        {"conditions": ["aligned"]},
    ]
    others = {load_spec(None, {**base, **change}).runs()[0].run_name("data") for change in changes}
    assert len({*others, name, spec.run_name("other data")}) == 7
    assert load_spec(None, {**base, "judge": ["match"]}).runs()[0].run_name("data") == name, (
        "labels can be added to answers"
    )


def test_a_relative_data_folder_is_relative_to_the_spec(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text('benchmark = "cmc-bench"\nmodel = "policy:random"\ndata = "built"\n')
    assert load_spec(tmp_path / "spec.toml", {}).data == str(tmp_path / "built")


@pytest.mark.parametrize("key", ["spec", "prompt_set"])
@pytest.mark.parametrize("kind", ["fifo", "device", "large", "long key"])
def test_a_file_that_is_no_spec_or_prompt_set_is_refused_at_once(tmp_path: Path, key: str, kind: str) -> None:
    file = tmp_path / "file.toml"
    match kind:
        case "fifo":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "large":
            with file.open("wb") as stream:
                stream.truncate(1 << 40)
        case "long key":
            file.write_text("user" + ".a" * 30_000 + " = 1\n")
    spec = tmp_path / "spec.toml"
    spec.write_text('benchmark = "cmc-bench"\nmodel = "policy:random"\nprompt_set = "file.toml"\n')
    with pytest.raises(SpecError, match=r"file\.toml"):
        load_spec(file if key == "spec" else spec, {}).runs()


def test_one_name_cannot_be_two_runs() -> None:
    with pytest.raises(SpecError, match="can only name one run"):
        load_spec(None, {"benchmark": "cmc-bench", "model": ["policy:random", "policy:uniform"], "name": "x"}).runs()


def test_differences_say_what_was_and_what_is() -> None:
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}) == ["b: was 2, is 3", "c: was not set, is 4"]
    assert differences({"fresh": True}, {"exact": False}) == ["fresh: was on, is not set", "exact: was not set, is off"]
    assert differences({"a digest": "ab" * 32}, {"a digest": "cd" * 32}) == [
        "a digest: was abababababab, is cdcdcdcdcdcd"
    ]


def test_a_run_is_found_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for name in ("alpha-1", "alpha-2", "beta"):
        (workspace.runs_folder / name).mkdir(parents=True)
        (workspace.runs_folder / name / "run.sqlite").write_bytes(b"")
    assert run_folder(workspace, "b").name == "beta"
    assert run_folder(workspace, "alpha-2").name == "alpha-2"
    with pytest.raises(StoreError, match="matches 2 runs"):
        run_folder(workspace, "alpha")
    with pytest.raises(StoreError, match="did you mean 'beta'"):
        run_folder(workspace, "betta")


def test_runs_whose_names_begin_alike_are_told_apart_newest_first(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    noon = time.mktime((2026, 5, 3, 12, 0, 0, 0, 0, -1))
    for name, day, data in (("x-1", 2, "cd"), ("x-2", 0, "ab"), ("x-3", 1, "ab")):
        folder = workspace.runs_folder / name
        folder.mkdir(parents=True)
        RunStore.create(folder, {"created": noon + day * 86400, "identity": {"data digest": data * 32}}, []).close()
    with pytest.raises(StoreError) as raised:
        run_folder(workspace, "x")
    assert str(raised.value) == (
        "'x' matches 3 runs, newest first: x-1 (2026-05-05 12:00, data cdcdcdcdcdcd), "
        "x-3 (2026-05-04 12:00, data abababababab), x-2 (2026-05-03 12:00, data abababababab); "
        "type more of the name, or latest:MODEL@SET."
    )
    shutil.rmtree(workspace.runs_folder / "x-1")
    with pytest.raises(StoreError) as raised:
        run_folder(workspace, "x")
    assert "x-3 (2026-05-04 12:00), x-2 (2026-05-03 12:00); type" in str(raised.value)


def test_a_run_that_is_being_planned_is_not_listed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (workspace.runs_folder / ".rashomon-00000000").mkdir(parents=True)
    (workspace.runs_folder / ".rashomon-00000000" / "run.sqlite").write_bytes(b"")
    assert workspace.run_names() == []
    assert workspace.summaries() == []


def test_a_damaged_run_is_listed_and_hides_no_other(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (workspace.runs_folder / "bad").mkdir(parents=True)
    (workspace.runs_folder / "bad" / "run.sqlite").write_bytes(b"garbage" * 400)
    (run,) = workspace.summaries()
    assert (run.state, run.done, run.total) == ("unreadable", 0, 0)
    assert run.problem is not None
    assert "is damaged" in run.problem


@pytest.mark.parametrize(
    "folder", ["Library/Mobile Documents/x", "Dropbox/bench", "Library/CloudStorage/OneDrive-Home/x"]
)
def test_a_cloud_synchronised_workspace_is_warned_about(folder: str) -> None:
    warning = Workspace(Path("/Users/someone") / folder).warning()
    assert warning is not None
    assert "--workspace" in warning
    assert Workspace(Path("/Users/someone/bench")).warning() is None


def test_a_build_with_a_repeated_id_is_refused(tmp_path: Path) -> None:
    row: dict[str, Any] = {
        "group": "g",
        "condition": "aligned",
        "question": "q?",
        "image": None,
        "passage": "p",
        "references": {},
    }
    with BuildWriter(tmp_path / "built") as writer:
        for _ in range(2):
            writer.add_row({**row, "id": "g/aligned", "strata": {"type": "factual"}})
        writer.finish({"benchmark": "cmc-bench"})
    values = {"benchmark": "cmc-bench", "model": "policy:random", "data": str(tmp_path / "built")}
    (spec,) = load_spec(None, values).runs()
    with pytest.raises(SourceError, match="holds the id 'g/aligned' more than once"):
        check_spec(Workspace(tmp_path / "workspace"), spec)


def test_a_device_or_version_that_changed_is_named_and_may_be_accepted(tmp_path: Path) -> None:
    before = {"model": "m", "device": "metal", "version of mlx": "1"}
    store = RunStore.create(tmp_path, {"identity": before}, [])
    for change, accepted in (({"device": "cpu"}, True), ({"version of mlx": "2"}, True), ({"model": "n"}, False)):
        with pytest.raises(SpecError, match="--accept-engine" if accepted else "another --name"):
            check_identity(store, {**before, **change}, accept_engine=False, folder=tmp_path)
        if accepted:
            check_identity(store, {**before, **change}, accept_engine=True, folder=tmp_path)


def test_a_run_that_another_process_plans_meanwhile_is_found(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    overrides = {"benchmark": "cmc-bench", "model": "policy:always-text", "data": str(built / "cmc-bench"), "name": "x"}
    (spec,) = load_spec(None, overrides).runs()
    choose = plan_module.chosen_instances

    def after_the_other(*arguments: Any) -> Iterable[Instance]:
        monkeypatch.setattr(plan_module, "chosen_instances", choose)
        plan_run(workspace, check_spec(workspace, spec))
        return choose(*arguments)

    monkeypatch.setattr(plan_module, "chosen_instances", after_the_other)
    assert plan_run(workspace, check_spec(workspace, spec)).existing
