"""Verdicts on trainings: in a sentence, with the exit code of the command, in the list and on the training's folder."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine.training.verdict import training_verdict
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED, VERDICTS
from benchmarks.errors import StoreFullError
from mlx_backends.mlx.training import checkpoint, loop
from mlx_backends.mlx.training.objective import Losses
from mlx_backends.training import CheckReport
from tests.support.command import Rashomon
from tests.support.trainings import trained_here, write_training_set


@pytest.fixture(autouse=True)
def _here() -> Iterator[None]:
    with trained_here():
        yield


@pytest.fixture(scope="module")
def training_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_training_set(tmp_path_factory.mktemp("set") / "rows")


def command(model: Path, data: Path, *more: str) -> tuple[str, ...]:
    options = ("--rank", "2", "--batch-size", "1", "--max-length", "512", "--steps", "6", "--save-every", "2")
    return ("train", "--model", str(model), "--data", str(data), "--name", "t", *options, *more)


def check(named: int, kept: int, step: int = 0) -> CheckReport:
    marks = {kind: "+" * right + "-" * (12 - right) for kind, right in (("conflict", named), ("no conflict", kept))}
    return CheckReport(step, marks, {}, 1.0)


@pytest.mark.parametrize(
    ("base", "best", "code", "words"),
    [
        (3.66, (40, 0.5), DONE, "use best, update 40: loss 0.5 against 3.66 of the base"),
        (3.66, (1, 3.7), REGRESSED, "do not use it: worse than the base"),
        (3.66, (1, 3.65), INCONCLUSIVE, "nothing can be told"),
        (None, None, INCONCLUSIVE, "nothing can be told"),
        (3.66, None, REGRESSED, "do not use it"),
    ],
)
def test_verdict_follows_the_validation_losses(
    base: float | None, best: tuple[int, float] | None, code: int, words: str
) -> None:
    verdict = training_verdict(base, best)
    assert verdict.code == code
    assert verdict.sentence.startswith(words)


def test_verdict_states_what_the_checks_count() -> None:
    verdict = training_verdict(3.0, (40, 0.5), check(1, 11), check(10, 10, 40))
    assert verdict.sentence.endswith(", names conflicts 1 to 10 of 12, keeps 11 to 10 of 12 (so few show no loss)")
    assert verdict.code == DONE


def test_answers_that_are_lost_outweigh_a_lower_loss() -> None:
    """As with random labels: the form of the answers is learnt, and their values are forgotten."""
    verdict = training_verdict(3.0, (40, 0.5), check(1, 12), check(10, 2, 40))
    assert verdict.code == REGRESSED
    assert "keeps 12 to 2 of 12" in verdict.sentence


def test_training_that_is_better_ends_with_advice(tiny: Path, training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    done = rashomon.run(*command(tiny, training_set, "--learning-rate", "2e-2"))
    (row,) = rashomon.json("trainings")
    assert row["exit_code"] == 0
    assert row["best_loss"] < row["base_loss"]
    assert done.stdout.splitlines()[-3] == row["verdict"]
    assert f"update {row['best_step']}, validation loss" in done.stdout
    assert row["verdict"] in rashomon.run("trainings").stdout
    assert row["verdict"] in rashomon.run("train", "--resume", "t").stdout, "said again where it is done"


def test_training_that_is_worse_ends_with_its_own_code(
    tiny: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rising = iter(range(1, 100))
    monkeypatch.setattr(loop.TrainingLoop, "_measure", lambda *_: Losses(loss := float(next(rising)), loss, 1))
    rashomon = Rashomon(tmp_path)
    failed = rashomon.run(*command(tiny, training_set), code=REGRESSED)
    assert "do not use it: worse than the base" in failed.stderr
    (row,) = rashomon.json("trainings")
    assert (row["state"], row["exit_code"]) == ("done", REGRESSED)
    rashomon.run("train", "--resume", "t", code=REGRESSED)


def test_training_without_validation_rows_cannot_tell(tiny: Path, tmp_path: Path) -> None:
    data, rashomon = write_training_set(tmp_path / "rows", validation=0), Rashomon(tmp_path)
    rashomon.run(*command(tiny, data, "--validation-share", "0"), code=INCONCLUSIVE)
    failed = rashomon.run(*command(tiny, data, "--validation-share", "0", "--rates", "auto", "--name", "r"), code=2)
    assert "--learning-rate" in failed.stderr


def test_search_prints_lists_and_takes_a_rate(tiny: Path, training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rates = ("--rates", "1e-6,2e-2", "--rate-updates", "6")
    planned = rashomon.run(*command(tiny, training_set, *rates), "--dry-run").stdout
    assert "12 updates in all" in planned
    rashomon.run(*command(tiny, training_set, *rates))
    (row,) = rashomon.json("trainings")
    assert row["learning_rate"] == 2e-2
    assert [trial["learning_rate"] for trial in row["rates"]] == [1e-6, 2e-2]
    assert "learning rate 0.02, which had the lowest validation loss" in rashomon.run("trainings").stdout


@pytest.mark.parametrize("rates", ["1e-4", "auto,1e-4", "1e-4,0", "1e-4,nan", ",", "1e-4,1e-4"])
def test_rates_that_are_none_are_refused(tiny: Path, training_set: Path, tmp_path: Path, rates: str) -> None:
    assert "1e-4,3e-4" in Rashomon(tmp_path).run(*command(tiny, training_set), "--rates", rates, code=2).stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ("--rates", "auto", "--rate-updates", "4"),
            "a search with 5 rates needs a budget of 5 updates or more, not of 4",
        ),
        (("--no-early-stopping", "--patience", "5"), "leave it or --no-early-stopping out"),
        (("--rate-updates", "9"), "add --rates auto"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tiny: Path, training_set: Path, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    assert reason in Rashomon(tmp_path).run(*command(tiny, training_set), *options, "--dry-run", code=2).stderr


def test_smallest_search_has_an_update_for_each_rate(tiny: Path, training_set: Path, tmp_path: Path) -> None:
    words = (*command(tiny, training_set), "--rates", "auto", "--rate-updates", "5", "--dry-run")
    assert "search: 1 update with each of 5 rates" in Rashomon(tmp_path).run(*words).stdout


def test_disk_that_fills_at_a_validation_keeps_the_checkpoint(
    tiny: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rashomon, save = Rashomon(tmp_path), checkpoint.save_adapter

    def full(folder: Path, model: Any, provenance: Any, step: int) -> None:
        if folder.name == "best" and step == 4:
            raise StoreFullError(f"cannot write {folder}: {errno.errorcode[errno.ENOSPC]}; free some space.")
        save(folder, model, provenance, step)

    monkeypatch.setattr(loop, "save_adapter", full)
    training = command(tiny, training_set, "--learning-rate", "2e-2")
    assert "free some space" in rashomon.run(*training, code=3).stderr
    (row,) = rashomon.json("trainings")
    assert (row["state"], row["step"], row["best_step"]) == ("failed", 4, 3)
    monkeypatch.setattr(loop, "save_adapter", save)
    rashomon.run(*training, code=VERDICTS)
    (row,) = rashomon.json("trainings")
    assert row["state"] == "done"
