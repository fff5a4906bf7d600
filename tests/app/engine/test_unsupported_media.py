"""Media that a model cannot take are excluded when a run is planned, counted, and never sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.engine.run_plan import check_spec, create_run, plan_run
from app.engine.unsupported_media import ExclusionCounts
from app.new_run.preflight import PreflightChecker
from app.new_run.spec_form import read_form
from app.report.tables.run_tables import tables_of
from app.store.run_facts import ExcludedInstances
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.contra4 import Contra4
from benchmarks.errors import SpecError
from benchmarks.media.media_previews import media_pictures
from benchmarks.vocabulary import Instance, Media, Modality, Text
from tests.app.commands.running.test_batch_command import states
from tests.support.command import Rashomon
from tests.support.data.contra4 import PLAIN, row, write_source
from tests.support.json_output import json_result
from tests.support.old_runs import sealed
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm

TEXTS = ["Answer the question Which scene is louder? by selecting one of the following options: Option A: a dog."]
IMAGE, AUDIO, CLOUD, VIDEO = PLAIN
ROWS = [
    row("pictures", [IMAGE, VIDEO]),
    row("sound", [IMAGE, AUDIO], "B"),
    row("thing", [VIDEO, CLOUD]),
    row("all", [IMAGE, AUDIO, CLOUD, VIDEO], "D"),
]


def shown(*modalities: Modality, condition: str = "media", name: str = "x") -> Instance:
    parts = tuple(Media(str(number) * 64, "", modality) for number, modality in enumerate(modalities))
    return Instance(name, name, condition, "?", (Text("Which?"), *parts))


def test_what_is_left_out_is_counted_by_what_is_lacking() -> None:
    chosen = [
        shown("image", "audio", name="a"),
        shown("image", name="b"),
        shown("audio", "audio", "point_cloud", name="c"),
        shown(condition="captions", name="d"),
    ]
    counts = ExclusionCounts(("image", "video"))
    assert [item.id for item in chosen if counts.add(item)] == ["b", "d"]
    excluded = counts.excluded()
    assert excluded == ExcludedInstances(2, 4, {"audio": 2, "point_cloud": 1}, {"media": 2})
    assert excluded.sentence == "2 of 4 not asked: the model takes no audio (2), no 3D (1)"
    everything = ExclusionCounts(("image", "audio", "video", "point_cloud"))
    assert all(everything.add(item) for item in chosen)
    assert (everything.supported, everything.excluded().sentence) == (4, "")
    many = ExcludedInstances(1204, 2335, {"point_cloud": 700, "audio": 900}, {"media": 1204})
    assert many.sentence == "1,204 of 2,335 not asked: the model takes no audio (900), no 3D (700)"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a rendered build of ``ROWS``, and two tiny models."""
    folder = tmp_path_factory.mktemp("home")
    source = write_source(folder / "rows", ROWS)
    build = Workspace(folder / "workspace").build_folder("contra4")
    build.parent.mkdir(parents=True)
    Contra4().build([("published", str(source))], build, BuildOptions(render=media_pictures))
    build_tiny_vlm(folder / "sees", TEXTS, quantise=False)
    build_tiny_lm(folder / "reads", TEXTS, quantise=False)
    return folder


def spec(home: Path, model: str, **more: Any) -> Any:
    result, wrong = read_form({"benchmark": "contra4", "model": [str(home / model)], **more})
    assert result is not None, wrong
    return result


@pytest.fixture
def workspace(home: Path, tmp_path: Path) -> Workspace:
    result = Workspace(tmp_path)
    result.build_folder("contra4").parent.mkdir(parents=True)
    result.build_folder("contra4").symlink_to(Workspace(home / "workspace").build_folder("contra4"))
    return result


@pytest.mark.parametrize(
    ("model", "conditions", "asked", "by"),
    [
        ("sees", ["media"], 1, {"audio": 2, "point_cloud": 2}),
        ("sees", ["rendered"], 2, {"audio": 2}),
        ("sees", ["media", "rendered", "gold-captions"], 7, {"audio": 4, "point_cloud": 2}),
        ("reads", ["media", "gold-captions"], 4, {"audio": 2, "point_cloud": 2, "image": 3, "video": 3}),
    ],
)
def test_a_run_holds_what_its_model_takes(
    home: Path, workspace: Workspace, model: str, conditions: list[str], asked: int, by: dict[str, int]
) -> None:
    typed = spec(home, model, conditions=conditions)
    (run,) = typed.runs()
    checked = check_spec(workspace, run)
    assert (len(checked.instances), checked.excluded.by) == (asked, by)
    assert checked.excluded.of == 4 * len(conditions)
    ahead = PreflightChecker(workspace).check(typed)
    assert ahead.problems is None
    assert ahead.warnings == (f"{home / model}: {checked.excluded.sentence}",)
    assert [instance.id for instance in ahead.runs[0].estimate.instances] == [
        instance.id for instance in checked.instances
    ]
    planned = plan_run(workspace, checked)
    with RunStore.read(planned.folder) as store:
        assert ExcludedInstances.load(store) == checked.excluded
        assert [record.instance for record in store.records()] == list(checked.instances)
    again = check_spec(workspace, run)
    assert again.existing
    assert again.excluded == checked.excluded
    assert PreflightChecker(workspace).check(typed).warnings == (), "a run that is there already is not warned of"


def test_where_nothing_is_left_the_ways_out_are_named(home: Path, workspace: Workspace) -> None:
    (run,) = spec(home, "sees", strata={"modalities": ["3d+video"]}).runs()
    with pytest.raises(SpecError) as raised:
        check_spec(workspace, run)
    message = str(raised.value)
    assert message.startswith("sees takes no 3D (1), which all 1 instances need; ask by captions")
    for way in ("--conditions gold-captions", "--captioner", "--rendered"):
        assert way in message
    wrong = PreflightChecker(workspace).check(spec(home, "sees", strata={"modalities": ["3d+video"]})).problems
    assert wrong is not None
    assert "takes no 3D (1)" in str(wrong)


def test_a_policy_is_asked_everything(workspace: Workspace) -> None:
    result, _ = read_form({"benchmark": "contra4", "model": ["policy:always-yes"], "conditions": ["media"]})
    assert result is not None
    (run,) = result.runs()
    checked = check_spec(workspace, run)
    assert (len(checked.instances), checked.excluded.total) == (4, 0)


@pytest.mark.slow
def test_a_run_that_was_planned_before_this_was_counted_has_nothing_left_out(home: Path, workspace: Workspace) -> None:
    (run,) = spec(home, "sees", conditions=["gold-captions"]).runs()
    checked = check_spec(workspace, run)
    workspace.make()
    create_run(workspace, run, checked.folder, checked.identity, checked.instances, data=None)
    with sealed(checked.folder) as database:
        database.execute("DELETE FROM meta WHERE key = 'excluded'")
    with RunStore.read(checked.folder) as store:
        assert ExcludedInstances.load(store) == ExcludedInstances()
    assert "not asked" not in tables_of([checked.folder], only="failures")[0].columns


@pytest.mark.slow
def test_it_is_told_at_the_start_kept_and_shown_everywhere(home: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(home)
    ask = ("--batch", "--benchmark", "contra4", "--model", home / "sees", "--max-tokens", "3", "--name", "told")
    which = ("--conditions", "media,rendered")
    says = "5 of 8 not asked: the model takes no audio (4), no 3D (2)"
    dry = rashomon.run(*ask, *which, "--dry-run").stdout
    assert f"told: {says}" in dry
    assert "the spec is valid, 3 instances" in dry
    assert says in rashomon.run(*ask, *which, "--display", "plain").stdout
    assert states(rashomon)["told"] == ("done", 3, 3)
    again = rashomon.run(*ask, *which, "--display", "plain").stdout
    assert says in again
    assert "all 3 instances are answered already" in again
    assert says in rashomon.run("show", "told").stdout.splitlines()[0]
    (failures,) = rashomon.json("show", "told", "--table", "failures")["tables"]
    cells = {failure["label"]: failure["cells"] for failure in failures["rows"]}
    assert {row: (failure["not_asked"], failure["answered"], failure["error"]) for row, failure in cells.items()} == {
        "sees / media": (3, 1, 0),
        "sees / rendered": (2, 2, 0),
    }
    assert f"sees: {says}." in failures["notes"]
    rashomon.run("export", "told", "--out", tmp_path / "out", "--format", "json,md")
    results = json_result((tmp_path / "out" / "results.json").read_text())
    assert results["runs"][0]["excluded"] == {
        "total": 5,
        "of": 8,
        "by": {"audio": 4, "point_cloud": 2},
        "conditions": {"media": 3, "rendered": 2},
    }
    assert says in (tmp_path / "out" / "tables.md").read_text().replace("\\", "")
    assert says in rashomon.run("show", "told", "--spec").stdout


def test_a_condition_of_which_nothing_is_asked_stands_among_the_failures(home: Path) -> None:
    rashomon = Rashomon(home)
    ask = ("--batch", "--benchmark", "contra4", "--model", home / "reads", "--max-tokens", "3", "--display", "none")
    rashomon.run(*ask, "--conditions", "media,gold-captions", "--name", "reads")
    assert states(rashomon)["reads"] == ("done", 4, 4)
    (failures,) = rashomon.json("show", "reads", "--table", "failures")["tables"]
    cells = {failure["label"]: failure["cells"] for failure in failures["rows"]}
    assert list(cells) == ["reads / media", "reads / gold-captions"]
    assert (cells["reads / media"]["not_asked"], cells["reads / media"]["answered"]) == (4, 0)
    assert (cells["reads / gold-captions"]["not_asked"], cells["reads / gold-captions"]["answered"]) == (0, 4)
    stderr = rashomon.run(*ask, "--conditions", "media", code=2).stderr
    assert "reads is a text-only model and takes no images (3), no audio (2), no video (3), no 3D (2), which" in stderr
    assert len(stderr.strip().splitlines()) == 1


def test_models_are_listed_with_what_they_take(home: Path) -> None:
    hub = home / "cache" / "huggingface" / "hub"
    for name in ("sees", "reads"):
        snapshot = hub / f"models--org--{name}" / "snapshots" / ("1" * 40)
        snapshot.parent.mkdir(parents=True)
        snapshot.symlink_to(home / name)
        (hub / f"models--org--{name}" / "refs").mkdir()
        (hub / f"models--org--{name}" / "refs" / "main").write_text("1" * 40)
    rashomon = Rashomon(home)
    listing = rashomon.json("models")
    stdout = {item["name"]: item for item in (*listing["policies"], *listing["cached"])}
    assert stdout["org/sees"]["takes"] == ["image", "video"]
    assert stdout["org/reads"]["takes"] == []
    assert stdout["policy:random"]["takes"] == ["image", "audio", "video", "point_cloud"]
    lines = rashomon.run("models").stdout
    assert "takes images, video" in lines
    assert "(text only)" in lines
