"""Verdicts on trainings: in a sentence, with the exit code of the command, in the list and on the training's folder."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine.training.training_log import LogReader, LogWriter
from app.engine.training.training_verdict import rate_sentence, verdict_of
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED, VERDICTS
from benchmarks.errors import StoreFullError
from mlx_backends.mlx.training import training_checkpoint, training_loop
from mlx_backends.training_settings import CheckReport, ValidationReport, chosen_rate
from tests.support.command import Rashomon
from tests.support.trainings import ended_curve, measured_losses, trained_here, write_training_set


@pytest.fixture(autouse=True)
def _here() -> Iterator[None]:
    with trained_here():
        yield


@pytest.fixture(scope="module")
def training_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_training_set(tmp_path_factory.mktemp("set") / "rows", validation=8)


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
        (3.66, (1, 3.65), INCONCLUSIVE, "nothing can be told: the losses differ by less than 1%"),
        (3.66, (1, 3.67), INCONCLUSIVE, "nothing can be told: the losses differ by less than 1%"),
        # Two models that are sure of every token.
        (
            9.342e-5,
            (1, 1.681e-4),
            INCONCLUSIVE,
            "nothing can be told: the losses differ by less than 1%, or by less than 0.001",
        ),
        (
            1.681e-4,
            (1, 9.342e-5),
            INCONCLUSIVE,
            "nothing can be told: the losses differ by less than 1%, or by less than 0.001",
        ),
        (0.0101, (1, 0.0001), DONE, "use best"),
        (None, None, INCONCLUSIVE, "nothing can be told"),
        (3.66, None, REGRESSED, "do not use it"),
    ],
)
def test_verdict_follows_the_validation_losses(
    base: float | None, best: tuple[int, float] | None, code: int, words: str
) -> None:
    verdict = verdict_of(ended_curve(base, best))
    assert verdict.code == code
    assert verdict.sentence.startswith(words)


@pytest.mark.parametrize(
    ("lower", "higher", "code", "words"),
    [
        (0, 0, INCONCLUSIVE, "no losses by example were recorded"),
        (1, 0, INCONCLUSIVE, "1 validation example can show no difference; give 6 or more"),
        (5, 0, INCONCLUSIVE, "5 validation examples can show no difference; give 6 or more"),
        (6, 0, DONE, "use best"),
        (7, 1, INCONCLUSIVE, "lower in 7 of 8 examples, which may be chance; about 9 would decide"),
        (9, 1, DONE, "use best"),
        (12, 8, INCONCLUSIVE, "lower in 12 of 20 examples, which may be chance; about 100 would decide"),
        (4, 8, INCONCLUSIVE, "the mean loss is lower, but only in 4 of 12 examples; a run with the adapter"),
    ],
)
@pytest.mark.parametrize("better", [True, False])
def test_gains_and_losses_need_the_same_evidence(lower: int, higher: int, code: int, words: str, better: bool) -> None:
    """The mean loss falls, or rises, whatever a few examples do."""
    curve = ended_curve(3.0, (40, 2.0 if better else 4.0))
    sign = 1 if better else -1
    curve.base_examples = (3.0,) * (lower + higher)
    curve.best_examples = (3.0 - sign,) * lower + (3.0 + sign,) * higher
    verdict = verdict_of(curve)
    assert verdict.code == (code if better or code != DONE else REGRESSED)
    assert (
        words if better else words.replace("lower", "higher").replace("use best", "do not use it")
    ) in verdict.sentence


@pytest.mark.parametrize(
    ("best", "highest", "code"),
    [(5.564, 11.0, REGRESSED), (5.564, 6.0, INCONCLUSIVE), (5.5, 11.0, REGRESSED), (0.5, 11.0, DONE)],
)
def test_loss_that_rose_as_with_too_high_a_rate_is_worse_unless_it_fell_again(
    best: float, highest: float, code: int
) -> None:
    """As measured with a learning rate of 5, in which the last of three validations was near the base's loss by chance."""
    curve = ended_curve(5.538, (9, best))
    curve.validations = [(3, 7.4), (6, highest), (9, best)] if highest > 7 else [(3, highest), (9, best)]
    verdict = verdict_of(curve)
    assert verdict.code == code
    assert ("its loss rose to 11 on the way" in verdict.sentence) == (code == REGRESSED)


def test_examples_that_hardly_differ_show_nothing() -> None:
    curve = ended_curve(3.0, (40, 2.0))
    curve.best_examples = (2.9999,) * 11 + (-9.0,)
    assert "lower in 1 of 12 examples" in verdict_of(curve).sentence


def test_log_gives_losses_by_example_back_and_no_others(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    losses = tuple(1 + number / 7 for number in range(1000))
    writer.write(ValidationReport(0, 2.0, False, 1.0, losses))
    writer.write(ValidationReport(1, 1.5, True, 1.0, (1.5, 1.25)))
    writer.write(ValidationReport(2, 1.6, False, 1.0))
    reader = LogReader(tmp_path)
    reader.poll()
    assert (reader.curve.base_examples, reader.curve.best_examples) == (losses, (1.5, 1.25))
    for text in ("3", '["x"]', "[true, 1.0]", "[1e999]", "{}", "[1" + "0" * 500 + "]"):
        with (tmp_path / "log.jsonl").open("a") as log:
            log.write(f'{{"step": 3, "validation": 1.0, "loss": 1.0, "best": true, "examples": {text}}}\n')
        reader.poll()
        assert reader.curve.best_examples in ((), (1.5, 1.25)), text


def test_verdict_states_what_the_checks_count() -> None:
    verdict = verdict_of(ended_curve(3.0, (40, 0.5), (check(1, 11), check(10, 10, 40))))
    assert verdict.sentence.endswith(", names conflicts 1 to 10 of 12, keeps 11 to 10 of 12 (too few to show a loss)")
    assert verdict.code == DONE


def test_answers_that_are_lost_outweigh_a_lower_loss() -> None:
    """As with random labels: the form of the answers is learnt, and their values are forgotten."""
    verdict = verdict_of(ended_curve(3.0, (40, 0.5), (check(1, 12), check(10, 2, 40))))
    assert verdict.code == REGRESSED
    assert "keeps 12 to 2 of 12" in verdict.sentence


def test_training_that_is_better_ends_with_advice(tiny: Path, training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    done = rashomon.run(*command(tiny, training_set, "--learning-rate", "2e-2", "--check-rows", "0"))
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
    monkeypatch.setattr(training_loop.TrainingLoop, "_measure", lambda *_: measured_losses(float(next(rising)), 8))
    rashomon = Rashomon(tmp_path)
    failed = rashomon.run(*command(tiny, training_set), code=REGRESSED)
    assert "do not use it: worse than the base" in failed.stderr
    (row,) = rashomon.json("trainings")
    assert (row["state"], row["exit_code"]) == ("done", REGRESSED)
    rashomon.run("train", "--resume", "t", code=REGRESSED)


def test_lower_loss_without_a_gain_in_right_answers_cannot_tell(tiny: Path, training_set: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    failed = rashomon.run(*command(tiny, training_set, "--learning-rate", "2e-2"), code=INCONCLUSIVE)
    assert (
        "no gain in right answers is shown; a run with the adapter, compared with the base's, would decide"
        in failed.stderr
    )
    (row,) = rashomon.json("trainings")
    assert row["best_loss"] < row["base_loss"]
    assert row["exit_code"] == INCONCLUSIVE


def test_few_validation_examples_cannot_tell(tiny: Path, tmp_path: Path) -> None:
    data, rashomon = write_training_set(tmp_path / "rows"), Rashomon(tmp_path)
    failed = rashomon.run(*command(tiny, data, "--learning-rate", "2e-2", "--check-rows", "0"), code=INCONCLUSIVE)
    assert "1 validation example can show no difference; give 6 or more" in failed.stderr


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
    rashomon.run(*command(tiny, training_set, *rates), "--check-rows", "0")
    (row,) = rashomon.json("trainings")
    assert row["learning_rate"] == 2e-2
    assert [trial["learning_rate"] for trial in row["rates"]] == [1e-6, 2e-2]
    assert "learning rate 0.02, which had the lowest validation loss" in rashomon.run("trainings").stdout


@pytest.mark.parametrize(
    ("losses", "base", "chosen"),
    [
        ((3.61, 1.23, 1.05), 4.77, 3e-3),  # as measured; the whole trainings above ended at 0.084, 0.062 and 0.114
        ((3.61, 2.0, 1.05), 4.77, 1e-2),
        ((4.7, 4.6, 4.2), 4.77, 1e-2),  # each is within a few percent of the lowest loss, and one alone learnt
        ((1.05, 1.05, 1.05), 4.77, 1e-3),
        ((5.0, 4.9, 6.0), 4.77, 3e-3),
        ((None, 1.23, None), 4.77, 3e-3),
        ((3.0, 2.0, 1.0), None, 1e-2),
    ],
)
def test_lowest_rate_whose_loss_falls_nearly_as_far_is_taken(
    losses: tuple[float | None, ...], base: float | None, chosen: float
) -> None:
    trials = list(zip((1e-3, 3e-3, 1e-2), losses, strict=True))
    assert chosen_rate(trials, base) == chosen
    least = min((loss, rate) for rate, loss in trials if loss is not None)[1]
    words = "lowest validation loss" if least == chosen else "fell nearly as far as any"
    assert words in rate_sentence(trials, chosen)


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
    rashomon, save = Rashomon(tmp_path), training_checkpoint.save_adapter

    def full(folder: Path, model: Any, provenance: Any, step: int) -> None:
        if folder.name == "best" and step == 4:
            raise StoreFullError(f"cannot write {folder}: {errno.errorcode[errno.ENOSPC]}; free some space.")
        save(folder, model, provenance, step)

    monkeypatch.setattr(training_loop, "save_adapter", full)
    training = command(tiny, training_set, "--learning-rate", "2e-2")
    assert "free some space" in rashomon.run(*training, code=3).stderr
    (row,) = rashomon.json("trainings")
    assert (row["state"], row["step"], row["best_step"]) == ("failed", 4, 3)
    monkeypatch.setattr(training_loop, "save_adapter", save)
    rashomon.run(*training, code=VERDICTS)
    (row,) = rashomon.json("trainings")
    assert row["state"] == "done"
