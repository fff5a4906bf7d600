"""Trainings that are taken up again: moved data, other engines, earlier versions' folders, and a worker that sleeps or dies."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine.training.training_folder import Training
from app.engine.training.training_log import Curve, LogReader
from app.exit_codes import VERDICTS
from mlx_backends.mlx import mlx_engine
from tests.support.command import Rashomon
from tests.support.trainings import append_updates, trained_here, write_training_set

STEPS = 6


def command(model: Path, data: Path, *more: str) -> tuple[str, ...]:
    options = ("--rank", "2", "--batch-size", "1", "--max-length", "512", "--steps", str(STEPS), "--save-every", "2")
    fixed = ("--no-early-stopping", "--dropout", "0.1")
    return ("train", "--model", str(model), "--data", str(data), "--name", "t", *options, *fixed, *more)


@pytest.fixture
def here() -> Iterator[None]:
    with trained_here():
        yield


@pytest.fixture(scope="module")
def training_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_training_set(tmp_path_factory.mktemp("set") / "rows")


@pytest.fixture(scope="module")
def undisturbed(tiny: Path, training_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training that nothing disturbed."""
    rashomon = Rashomon(tmp_path_factory.mktemp("undisturbed"))
    with trained_here():
        rashomon.run(*command(tiny, training_set), code=VERDICTS)
    return rashomon.workspace / "trainings" / "t"


def begun(undisturbed: Path, rashomon: Rashomon, **changes: Any) -> Path:
    """Copy a training, as if it had been stopped, with changes of its ``training.json``."""
    folder = rashomon.workspace / "trainings" / "t"
    shutil.copytree(undisturbed, folder)
    (folder / "state.json").unlink()
    values = json.loads((folder / "training.json").read_text())
    (folder / "training.json").write_text(json.dumps(values | changes))
    return folder


def values_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "training.json").read_text()))


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_data_that_was_moved_is_found_where_it_is_named(
    tiny: Path, training_set: Path, undisturbed: Path, tmp_path: Path
) -> None:
    rashomon = Rashomon(tmp_path)
    data = shutil.copytree(training_set, tmp_path / "elsewhere")
    spec = values_of(undisturbed)["spec"] | {"data": "/nowhere"}
    for resume in (("train", "--resume", "t", "--data", str(data)), command(tiny, data)):
        folder = begun(undisturbed, rashomon, spec=spec)
        assert "nowhere" in rashomon.run("train", "--resume", "t", code=2).stderr
        rashomon.run(*resume, code=VERDICTS)
        assert values_of(folder)["spec"]["data"] == str(data)
        shutil.rmtree(folder)


@pytest.mark.usefixtures("here")
def test_resuming_takes_no_option_that_decides_the_adapter(undisturbed: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    begun(undisturbed, rashomon)
    assert "--rank" in rashomon.run("train", "--resume", "t", "--rank", "3", code=2).stderr
    rashomon.run("train", "--resume", "t", "--save-every", "5", code=VERDICTS)


@pytest.mark.usefixtures("here")
def test_a_training_remembers_that_it_was_forced(
    tiny: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.training.training_plan.memory_fit", lambda _: NoRoom)
    rashomon = Rashomon(tmp_path)
    rashomon.run(*command(tiny, training_set), code=2)
    rashomon.run(*command(tiny, training_set, "--force"), code=VERDICTS)
    (rashomon.workspace / "trainings" / "t" / "state.json").unlink()
    rashomon.run("train", "--resume", "t", code=VERDICTS)


class NoRoom:
    """A machine without any memory."""

    available, source = 0, "none"


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_another_engine_is_refused_unless_it_is_accepted(
    tiny: Path, undisturbed: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rashomon = Rashomon(tmp_path)
    folder = begun(undisturbed, rashomon)
    version = mlx_engine._version
    monkeypatch.setattr(mlx_engine, "_version", lambda name: "99.0" if name == "mlx-vlm" else version(name))
    for resume in (("train", "--resume", "t"), command(tiny, training_set)):
        refused = rashomon.run(*resume, code=2).stderr
        assert "mlx-vlm" in refused
        assert "--accept-engine" in refused
    rashomon.run("train", "--resume", "t", "--accept-engine", code=VERDICTS)
    (folder / "state.json").unlink()
    rashomon.run("train", "--resume", "t", code=VERDICTS)  # it was accepted
    provenance = json.loads((folder / "adapter" / "training.json").read_text())
    assert [known["version of mlx-vlm"] for known in provenance["engines"]] == [version("mlx-vlm"), "99.0"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", [1, 2])
def test_training_of_an_earlier_version_is_resumed(
    tiny: Path, training_set: Path, undisturbed: Path, tmp_path: Path, form: int
) -> None:
    rashomon = Rashomon(tmp_path)
    values = values_of(undisturbed) | {"format": form}
    newer = ("early_stopping", "patience", "rates", "rate_updates", "check_every", "check_rows")
    for key in newer:
        del values["spec"][key]
        values["identity"].pop(key, None)
    if form == 1:
        for part in (values["spec"], values["identity"]):
            del part["validation_rows"]
        del values["spec"]["skip_unusable"], values["forced"], values["engines"]
        identity = {
            key: value for key, value in values["identity"].items() if not key.startswith(("version of ", "device"))
        }
        values["identity"] = identity | {"max_length": 512}
    folder = begun(undisturbed, rashomon)
    (folder / "training.json").write_text(json.dumps(values))
    spec = Training.open(folder).spec
    assert not spec.early_stopping
    assert form == 2 or spec.validation_rows is None
    rashomon.run("train", "--resume", "t", code=VERDICTS)
    assert (folder / "adapter" / "adapters.safetensors").read_bytes() == (
        undisturbed / "adapter" / "adapters.safetensors"
    ).read_bytes()
    if form == 2:  # by the command that it was begun with, too, which did not know early stopping
        known = [word for word in command(tiny, training_set) if word != "--no-early-stopping"]
        rashomon.run(*known, code=VERDICTS)


@pytest.mark.usefixtures("here")
def test_training_that_ended_under_an_earlier_version_has_no_verdict(
    tiny: Path, training_set: Path, undisturbed: Path, tmp_path: Path
) -> None:
    rashomon = Rashomon(tmp_path)
    folder = begun(undisturbed, rashomon)
    (folder / "state.json").write_text(json.dumps({"state": "done", "note": "", "at": 1.0}))
    lines = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    (folder / "log.jsonl").write_text("".join(lines[1:]))  # without the base's validation
    rashomon.run(*command(tiny, training_set))
    (row,) = rashomon.json("trainings")
    assert (row["state"], row["verdict"], row["exit_code"], row["base_loss"]) == ("done", None, None, None)


@pytest.mark.usefixtures("here")
def test_adapter_in_the_model_s_name_is_refused(
    tiny: Path, training_set: Path, undisturbed: Path, tmp_path: Path
) -> None:
    model = f"{tiny}+{undisturbed / 'adapter'}"
    assert "fuse" in Rashomon(tmp_path).run(*command(tiny, training_set), "--model", model, code=2).stderr


# --- sleep and death -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_that_sleeps_and_is_killed_leaves_everything_bit_identical(
    training_set: Path, undisturbed: Path, tmp_path: Path
) -> None:
    rashomon = Rashomon(tmp_path)
    folder = rashomon.workspace / "trainings" / "t"
    folder.mkdir(parents=True)
    shutil.copy(undisturbed / "training.json", folder)
    with subprocess.Popen(
        [sys.executable, "-m", "app.engine.training.training_worker", str(folder)],
        env=rashomon.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as worker:
        for updates, number in ((1, signal.SIGSTOP), (3, signal.SIGKILL)):
            while len(losses(folder)) < updates:
                assert worker.poll() is None
                time.sleep(0.002)
            worker.send_signal(number)
            if number == signal.SIGSTOP:
                time.sleep(0.2)
                worker.send_signal(signal.SIGCONT)
    assert Training.open(folder).state()[0] == "interrupted"
    assert len(losses(folder)) < STEPS
    with trained_here():
        rashomon.run("train", "--resume", "t", code=VERDICTS)
    assert losses(folder) == losses(undisturbed)
    for name in ("adapter", "best"):
        weights = f"{name}/adapters.safetensors"
        assert (folder / weights).read_bytes() == (undisturbed / weights).read_bytes()


def test_sleep_and_a_clock_that_jumps_leave_the_pace_as_it_was(tmp_path: Path) -> None:
    append_updates(tmp_path, 1, 60)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    steady = curve_of(tmp_path, lines)
    assert steady.tokens_per_second == 1200
    left = steady.seconds_left(160)
    assert left == pytest.approx(100 * 2.0 + 5 * 4.0)  # validations too
    night = 8 * 3600.0
    updates = [place for place, line in enumerate(lines) if "validation" not in line]
    for asleep in (updates[40], updates[-1], len(lines) - 1):
        slept = [line | {"seconds": line["seconds"] + night} if n == asleep else line for n, line in enumerate(lines)]
        slept = [line | {"at": 1e9 - n} for n, line in enumerate(slept)]
        curve = curve_of(tmp_path, slept)
        assert curve.losses == steady.losses
        assert curve.tokens_per_second == 1200
        assert curve.seconds_left(160) == pytest.approx(left)
        assert curve.seconds == steady.seconds


def curve_of(folder: Path, lines: list[dict[str, Any]]) -> Curve:
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    reader = LogReader(folder)
    reader.poll()
    return reader.curve


def losses(folder: Path) -> list[tuple[int, float]]:
    reader = LogReader(folder)
    reader.poll()
    return reader.curve.losses
