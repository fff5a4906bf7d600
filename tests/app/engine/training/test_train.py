"""Trainings from the command line: killed and resumed, full disks, bad data, adapters that load again."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.engine.training.training_folder import Training, create_training
from app.engine.training.training_log import LogReader
from app.engine.training.training_plan import plan_training
from app.engine.training.training_spec_and_recipes import training_spec
from app.exit_codes import INCONCLUSIVE, VERDICTS
from app.store.workspace import Workspace
from benchmarks.training.trained_on import TrainingRecord
from benchmarks.training.training_set import TrainingSet
from tests.support.command import Rashomon, children_of, kill_all
from tests.support.demo import FOUR_BIT, HeldOutSet
from tests.support.full_disk import no_room_above

SMALL = ("--rank", "4", "--batch-size", "1", "--learning-rate", "1e-3", "--dropout", "0.1", "--max-length", "512")


def losses(folder: Path) -> list[tuple[int, float]]:
    reader = LogReader(folder)
    reader.poll()
    return reader.curve.losses


def listing(rashomon: Rashomon) -> dict[str, Any]:
    (row,) = rashomon.json("trainings")
    return dict(row)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.fixture(scope="module")
def training_set(charts: HeldOutSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dozen rows of drawn charts."""
    home = tmp_path_factory.mktemp("rows")
    Rashomon(home).run("training", "cmc-bench", "--data", charts.build.path, "--out", home / "set")
    few = home / "few"
    shutil.copytree(home / "set", few)
    for name, count in (("train", 8), ("validation", 1)):
        lines = (few / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        (few / f"{name}.jsonl").write_bytes(b"".join(lines[:count]))
    return few


@pytest.fixture(scope="module")
def undisturbed(training_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training that nothing disturbed."""
    home = tmp_path_factory.mktemp("undisturbed")
    rashomon = Rashomon(home)
    rashomon.run("train", *command(training_set), code=VERDICTS)
    assert listing(rashomon)["state"] == "done"
    return rashomon.workspace / "trainings" / "t"


def command(data: Path, *more: str, steps: int = 12) -> tuple[str, ...]:
    every = ("--save-every", "2", "--validate-every", "4")
    return ("--model", str(FOUR_BIT), "--data", str(data), "--name", "t", *SMALL, "--steps", str(steps), *every, *more)


@pytest.mark.slow
def test_adapter_loads_in_mlx_vlm_and_states_its_provenance(
    undisturbed: Path, training_set: Path, charts: HeldOutSet
) -> None:
    from mlx_vlm import load

    for name in ("adapter", "best"):
        folder = undisturbed / name
        assert sorted(file.name for file in folder.iterdir()) == [
            "adapter_config.json",
            "adapters.safetensors",
            "training.json",
        ]
        load(str(FOUR_BIT), adapter_path=str(folder))
    provenance = json.loads((undisturbed / "adapter" / "training.json").read_text())
    assert provenance["base model"] == FOUR_BIT.name
    assert len(provenance["base weights"]) == len(provenance["data digest"]) == 64
    assert str(training_set) not in json.dumps(provenance)
    assert TrainingRecord.read([provenance]) == TrainingRecord.of(TrainingSet.open(training_set))
    assert provenance["builds"] == [charts.build.digest]
    assert provenance["compared with"] == []
    curve = losses(undisturbed)
    assert [step for step, _ in curve] == list(range(1, 13))
    assert sum(loss for _, loss in curve[-4:]) < sum(loss for _, loss in curve[:4])


def kill_and_resume(rashomon: Rashomon, training: tuple[str, ...], kills: int) -> Path:
    """Train; kill the training after one update more each time, and let it end. Return its folder."""
    folder = rashomon.workspace / "trainings" / "t"
    for kill in range(1, kills + 1):
        process = rashomon.start("train", *training)
        wait_for(lambda kill=kill: (losses(folder) or [(0, 0.0)])[-1][0] > kill, process)  # type: ignore[misc]
        kill_all(process)
        assert listing(rashomon)["state"] == "interrupted"
    rashomon.run("train", "--resume", "t", code=VERDICTS)
    return folder


def assert_same_training(folder: Path, undisturbed: Path) -> None:
    assert losses(folder) == losses(undisturbed)
    for name in ("adapter", "best"):
        weights = f"{name}/adapters.safetensors"
        assert (folder / weights).read_bytes() == (undisturbed / weights).read_bytes()


@pytest.mark.slow
def test_ten_kills_leave_the_adapter_and_the_curve_bit_identical(
    undisturbed: Path, training_set: Path, tmp_path: Path
) -> None:
    folder = kill_and_resume(Rashomon(tmp_path), command(training_set), 10)
    assert_same_training(folder, undisturbed)


@pytest.mark.slow
def test_kills_leave_the_adapter_of_preferences_bit_identical(
    undisturbed: Path, training_set: Path, tmp_path: Path
) -> None:
    training = command(training_set, "--objective", "orpo")
    homes = [tmp_path / name for name in ("undisturbed", "killed")]
    for home in homes:
        home.mkdir()
    preferring, killed = map(Rashomon, homes)
    preferring.run("train", *training, code=VERDICTS)
    folder = kill_and_resume(killed, training, 4)
    assert_same_training(folder, preferring.workspace / "trainings" / "t")
    assert losses(folder) != losses(undisturbed)


@pytest.mark.slow
def test_worker_that_is_killed_is_replaced(undisturbed: Path, training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    folder = rashomon.workspace / "trainings" / "t"
    process = rashomon.start("train", *command(training_set))
    wait_for(lambda: len(losses(folder)) > 3, process)
    os.kill(Training.open(folder).worker() or 0, signal.SIGKILL)
    assert "SIGKILL, as the system does where memory runs out; restart 1 of 2" in process.communicate()[1]
    assert process.returncode == INCONCLUSIVE  # one row validates
    assert_same_training(folder, undisturbed)


@pytest.mark.slow
def test_interrupted_training_saves_a_checkpoint_and_resumes(
    undisturbed: Path, training_set: Path, tmp_path: Path
) -> None:
    rashomon = Rashomon(tmp_path)
    folder = rashomon.workspace / "trainings" / "t"
    process = rashomon.start("train", *command(training_set, "--save-every", "100"))
    wait_for(lambda: len(losses(folder)) > 2, process)
    os.kill(process.pid, signal.SIGINT)
    assert "train --resume t" in process.communicate()[1]
    assert process.returncode == 130
    assert not children_of(process.pid)
    assert listing(rashomon)["state"] == "stopped"
    assert (folder / "checkpoint.safetensors").is_file()
    rashomon.run("train", "--resume", "t", code=VERDICTS)
    assert (folder / "adapter" / "adapters.safetensors").read_bytes() == (
        undisturbed / "adapter" / "adapters.safetensors"
    ).read_bytes()


@pytest.mark.slow
def test_full_disk_stops_and_keeps_the_checkpoint(training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    folder = rashomon.workspace / "trainings" / "t"
    with no_room_above(40_000):
        failed = rashomon.process("train", *command(training_set), code=3)
    assert "free some space" in failed.stderr
    assert listing(rashomon)["state"] == "failed"
    assert not list(folder.glob(".*.safetensors"))
    rashomon.run("train", "--resume", "t", code=VERDICTS)
    assert listing(rashomon)["state"] == "done"


@pytest.mark.slow
def test_diverging_training_stops_and_says_what_is_kept(training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    values = {"model": str(FOUR_BIT), "data": str(training_set), "name": "t", "batch_size": 1, "max_length": 512}
    options = {"steps": 12, "warmup": 0.0, "schedule": "constant", "save_every": 1}
    # No command takes this learning rate any more; trainings that were begun with it resume.
    spec = training_spec({**values, **options}).model_copy(update={"learning_rate": 1e30})
    workspace = Workspace(rashomon.workspace)
    plan = plan_training(workspace, spec, force=False)
    create_training(workspace, plan.name, spec, plan.identity, plan.settings.steps)
    failed = rashomon.run("train", "--resume", "t", code=3)
    assert "diverged" in failed.stderr
    row = listing(rashomon)
    assert row["state"] == "diverged"
    assert "lower --learning-rate" in row["note"]
    assert row["adapter"] is None


@pytest.mark.slow
def test_pickled_checkpoint_is_never_opened(undisturbed: Path, training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    folder = rashomon.workspace / "trainings" / "t"
    shutil.copytree(undisturbed, folder)
    (folder / "state.json").unlink()
    (folder / "checkpoint.safetensors").write_bytes(pickle.dumps(_Opened(tmp_path / "opened")))
    failed = rashomon.run("train", *command(training_set), code=2)
    assert "damaged" in failed.stderr
    assert not (tmp_path / "opened").exists()


class _Opened:
    """An object that leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.mkdir, (str(self._path),)  # type: ignore[return-value]


def rewrite(data: Path, to: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Path:
    shutil.copytree(data, to)
    rows = [json.loads(line) for line in (to / "train.jsonl").read_text("utf-8").splitlines()]
    (to / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in change(rows)), "utf-8")
    return to


def without_images(row: dict[str, Any]) -> dict[str, Any]:
    content = [part for part in row["messages"][0]["content"] if part["type"] == "text"]
    return row | {
        "images": [],
        "image_digests": [],
        "messages": [{"role": "user", "content": content}, row["messages"][1]],
    }


def test_data_with_nothing_to_learn_is_refused_or_warned_of(training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    blind = rewrite(training_set, tmp_path / "blind", lambda rows: list(map(without_images, rows)))
    rashomon.run("train", *command(blind), code=2)
    single = rewrite(training_set, tmp_path / "single", lambda rows: rows[:1])
    rashomon.run("train", *command(single), code=2)
    one_kind = rewrite(training_set, tmp_path / "kind", lambda rows: [row | {"kind": "conflict"} for row in rows])
    assert "one kind" in rashomon.run("train", *command(one_kind), "--dry-run").stderr
    assert not (rashomon.workspace / "trainings").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--rank", "0"),
        ("--alpha", "-1"),
        ("--dropout", "1"),
        ("--learning-rate", "nan"),
        ("--schedule", "cosin"),
        ("--objective", "dpo"),
        ("--beta", "0"),
        ("--recipe", "clash"),
        ("--epochs", "0"),
        ("--max-length", "40"),
        ("--data", "nowhere"),
        ("--model", "nobody/nothing"),
    ],
)
def test_wrong_option_is_refused(training_set: Path, tmp_path: Path, options: tuple[str, str]) -> None:
    Rashomon(tmp_path).run("train", *command(training_set), *options, code=2)


@pytest.mark.slow
def test_orpo_needs_a_rejected_answer_in_each_row(training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    lacking = rewrite(training_set, tmp_path / "lacking", lambda rows: [rows[0] | {"rejected": ""}, *rows[1:]])
    rashomon.run("train", *command(lacking, "--objective", "orpo"), code=2)
    rashomon.run("train", *command(training_set, "--objective", "orpo", steps=2), code=VERDICTS)
    (training,) = (rashomon.workspace / "trainings").iterdir()
    spec = json.loads((training / "adapter" / "training.json").read_text())["spec"]
    assert (spec["objective"], spec["beta"]) == ("orpo", 0.1)


def test_model_that_cannot_be_trained_is_named_before_it_is_loaded(training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    pickled, other = tmp_path / "pickled", tmp_path / "other"
    for folder in (pickled, other):
        shutil.copytree(FOUR_BIT, folder)
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    failed = rashomon.run("train", *command(training_set), "--model", pickled, code=2)
    assert "pickled" in failed.stderr
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"model_type": "paligemma"}))
    failed = rashomon.run("train", *command(training_set), "--model", other, code=2)
    assert "cannot be trained" in failed.stderr
    assert not (rashomon.workspace / "trainings").exists()


@pytest.mark.slow
def test_training_that_cannot_fit_is_refused_with_numbers(training_set: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(FOUR_BIT, model)
    config = json.loads((model / "config.json").read_text())
    config["text_config"] |= {"num_hidden_layers": 900, "intermediate_size": 400_000}
    (model / "config.json").write_text(json.dumps(config))
    failed = Rashomon(tmp_path).run("train", *command(training_set), "--model", model, "--rank", "128", code=2)
    assert " GB" in failed.stderr
    assert "--force" in failed.stderr


@pytest.mark.slow
def test_another_training_of_the_same_name_and_test_data_are_refused(
    training_set: Path, charts: HeldOutSet, undisturbed: Path, tmp_path: Path
) -> None:
    rashomon = Rashomon(tmp_path)
    shutil.copytree(undisturbed, rashomon.workspace / "trainings" / "t")
    rashomon.run("train", *command(training_set), code=VERDICTS)
    assert "rank" in rashomon.run("train", *command(training_set), "--rank", "5", code=2).stderr
    run = ("--benchmark", "cmc-bench", "--data", charts.build.path, "--model", "policy:always-text", "--limit", "2")
    rashomon.run("--batch", *run)
    failed = rashomon.run("train", *command(training_set), "--name", "new", code=2)
    assert "test data" in failed.stderr
    unlearnt = rashomon.workspace / "trainings" / "unlearnt"
    unlearnt.mkdir()
    values = json.loads((undisturbed / "training.json").read_text())
    values["identity"]["data digest"] = "0" * 64
    (unlearnt / "training.json").write_text(json.dumps(values))
    failed = rashomon.run("train", *command(training_set), "--name", "unlearnt", code=2)
    assert "test data" in failed.stderr, "its rows are others, so they are compared"
