"""Training loop: stopped, killed and resumed anywhere it makes the same; what has diverged is told from what has not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any, TypeVar

import mlx.core as mx
import pytest

from benchmarks.training.training_set import ChatRow, TrainingSet
from mlx_backends.mlx.mlx_load import load
from mlx_backends.mlx.training.training_checkpoint import CHECKPOINT
from mlx_backends.mlx.training.training_divergence import LossTrend
from mlx_backends.mlx.training.training_loop import TrainingLoop
from mlx_backends.training_settings import (
    AnyReport,
    DivergedError,
    RateReport,
    StepReport,
    TrainingSettings,
    ValidationReport,
)
from tests.support.tiny_models import FAMILIES
from tests.support.trainings import measured_losses, write_training_set

Kind = TypeVar("Kind")

SETTINGS = TrainingSettings(
    rank=2, alpha=4.0, dropout=0.1, batch_size=1, learning_rate=5e-3, schedule="constant", warmup=0, steps=6, max_length=4096,
    max_pixels=None, gradient_checkpointing=True, seed=0, validate_every=2, save_every=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FAMILIES["qwen3_vl"](tmp_path_factory.mktemp("model") / "qwen3_vl")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[ChatRow]]:
    data = TrainingSet.open(write_training_set(tmp_path_factory.mktemp("rows") / "set", 3, 2))
    return {part: list(data.rows(part)) for part in ("train", "validation")}


class Training:
    """A training in a folder, with the reports that its log would have."""

    def __init__(self, folder: Path, model: Path, rows: dict[str, list[ChatRow]], **options: Any) -> None:
        self.folder = folder
        self.reports: list[AnyReport] = []
        folder.mkdir(exist_ok=True)
        self._arguments = model, rows, replace(SETTINGS, **options)

    def run(self, *, stop: Callable[[], bool] = lambda: False, killed_after: int | None = None) -> bool:
        """Train to the end, or until ``stop``; a kill comes after the report of this number."""
        model, rows, settings = self._arguments
        loop = TrainingLoop(self.folder, "m", load(model), rows, settings, {})
        progress = loop.resume()
        del self.reports[progress.log_bytes :]

        def report(report: AnyReport) -> None:
            self.reports.append(report)
            if len(self.reports) == killed_after:
                raise KeyboardInterrupt

        return loop.run(progress, report, lambda: len(self.reports), stop)

    @property
    def curve(self) -> list[dict[str, Any]]:
        timing = ("seconds", "peak_memory")
        return [{key: value for key, value in asdict(report).items() if key not in timing} for report in self.reports]

    def of_type(self, kind: type[Kind]) -> list[Kind]:
        return [report for report in self.reports if isinstance(report, kind)]

    def weights(self, name: str) -> bytes:
        return (self.folder / name / "adapters.safetensors").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, model: Path, rows: dict[str, list[ChatRow]]) -> Training:
    training = Training(tmp_path_factory.mktemp("undisturbed") / "t", model, rows)
    assert training.run()
    assert len(training.reports) == 1 + 6 + 3
    return training


def assert_same(training: Training, undisturbed: Training) -> None:
    assert training.curve == undisturbed.curve
    for name in ("adapter", "best"):
        assert training.weights(name) == undisturbed.weights(name)


@pytest.mark.slow
def test_kills_leave_everything_bit_identical(
    undisturbed: Training, tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    training = Training(tmp_path / "t", model, rows)
    for killed_after in (1, 3, 6, 7, 10):  # the base's validation, update 2, update 4, its validation, the last one
        with pytest.raises(KeyboardInterrupt):
            training.run(killed_after=killed_after)
    assert training.run()
    assert_same(training, undisturbed)


def test_stops_leave_everything_bit_identical(
    undisturbed: Training, tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    training = Training(tmp_path / "t", model, rows, save_every=100)
    for calls in (3, 6, 4, 5):  # each row is after one of them
        assert not training.run(stop=map(calls.__eq__, count(1)).__next__)
    assert training.run()
    assert_same(training, undisturbed)


@pytest.mark.slow
def test_stop_within_a_validation_loses_no_update(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]], undisturbed: Training
) -> None:
    training = Training(tmp_path / "t", model, rows, save_every=100)
    after_two = iter((False, False, True))  # before the validation, its first row, its second row

    def stop() -> bool:
        return len(training.reports) == 3 and next(after_two)

    assert not training.run(stop=stop)
    assert [report.step for report in training.of_type(StepReport)] == [1, 2]
    training.run()
    assert isinstance(training.reports[3], ValidationReport)
    assert isinstance(training.reports[4], StepReport)
    assert_same(training, undisturbed)


def test_dropout_changes_what_is_learnt_and_checkpointing_does_not(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    trainings = {}
    for dropout, checkpointing in ((0.0, False), (0.5, False), (0.5, True)):
        options: dict[str, Any] = {"dropout": dropout, "gradient_checkpointing": checkpointing, "steps": 2}
        training = Training(tmp_path / f"{dropout}-{checkpointing}", model, {"train": rows["train"]}, **options)
        assert training.run()
        trainings[dropout, checkpointing] = training
    learnt = {key: training.of_type(StepReport)[-1].loss for key, training in trainings.items()}
    assert learnt[0.5, True] == pytest.approx(learnt[0.5, False], rel=1e-5)
    assert learnt[0.5, False] != pytest.approx(learnt[0.0, False], rel=1e-5)


def test_checkpoint_is_saved_before_the_validation(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(tmp_path / "t", model, rows)
    validate = TrainingLoop._validate
    monkeypatch.setattr(
        TrainingLoop,
        "_validate",
        lambda self, progress, *rest: (
            pytest.fail("no validation") if progress.step else validate(self, progress, *rest)
        ),
    )
    with pytest.raises(pytest.fail.Exception):
        training.run()
    assert (training.folder / CHECKPOINT).is_file()


def test_the_best_adapter_states_its_update(undisturbed: Training) -> None:
    best = min(undisturbed.of_type(ValidationReport)[1:], key=lambda report: report.loss)
    for name, step in (("best", best.step), ("adapter", 6)):
        weights: Any = mx.load(str(undisturbed.folder / name / "adapters.safetensors"), return_metadata=True)
        assert weights[1]["step"] == str(step)


# --- early stopping ------------------------------------------------------------------------------


def rising_after(best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let validations give a loss that falls up to a number of them, and then rises."""
    measured = iter([abs(place - best) + 1.0 for place in range(100)])
    monkeypatch.setattr(TrainingLoop, "_measure", lambda _, inputs, *__: measured_losses(next(measured), len(inputs)))


def test_training_ends_once_the_validation_loss_no_longer_falls(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rising_after(2, monkeypatch)
    training = Training(tmp_path / "t", model, rows, steps=12, validate_every=1, patience=3)
    assert training.run()
    assert training.of_type(StepReport)[-1].step == 5
    assert [report.step for report in training.of_type(ValidationReport) if report.best] == [1, 2]
    assert (training.folder / "adapter").is_dir()


def test_a_loss_that_falls_by_less_than_a_hundredth_does_not_keep_a_training_going(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = iter([1 - place / 1000 for place in range(100)])
    monkeypatch.setattr(TrainingLoop, "_measure", lambda _, inputs, *__: measured_losses(next(measured), len(inputs)))
    training = Training(tmp_path / "t", model, rows, steps=12, validate_every=1, patience=3)
    assert training.run()
    assert training.of_type(StepReport)[-1].step == 3
    assert training.of_type(ValidationReport)[-1].best, "it is the lowest all the same"


@pytest.mark.parametrize(("level", "end"), [(0.5, 9), (2.0, 3)], ids=["below the base", "above the base"])
def test_loss_that_stands_still_ends_a_training_only_once_its_rate_has_decayed(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]], monkeypatch: pytest.MonkeyPatch, level: float, end: int
) -> None:
    measured = chain([1.0], repeat(level))
    monkeypatch.setattr(TrainingLoop, "_measure", lambda _, inputs, *__: measured_losses(next(measured), len(inputs)))
    training = Training(tmp_path / "t", model, rows, steps=12, validate_every=1, patience=3, schedule="cosine")
    assert training.run()
    assert training.of_type(StepReport)[-1].step == end


@pytest.mark.slow
def test_kills_leave_a_training_that_ends_early_bit_identical(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    options = {"steps": 12, "validate_every": 1, "patience": 4, "learning_rate": 1e-8}
    undisturbed, killed = (Training(tmp_path / name, model, rows, **options) for name in ("undisturbed", "killed"))
    assert undisturbed.run()
    end = len(undisturbed.reports)
    assert undisturbed.of_type(StepReport)[-1].step == 4
    for killed_after in (4, 5, end - 1, end):
        with pytest.raises(KeyboardInterrupt):
            killed.run(killed_after=killed_after)
    assert killed.run()
    assert killed.curve == undisturbed.curve
    assert killed.weights("adapter") == undisturbed.weights("adapter")


# --- the search for a learning rate --------------------------------------------------------------

RATES = {"rates": (1e-4, 5e-3, 1e30), "rate_updates": 2, "save_every": 1}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory, model: Path, rows: dict[str, list[ChatRow]]) -> Training:
    training = Training(tmp_path_factory.mktemp("searched") / "t", model, rows, **RATES)
    assert training.run()
    return training


def test_search_takes_the_rate_of_the_lowest_loss_and_leaves_one_that_diverges(searched: Training) -> None:
    trials = searched.of_type(RateReport)
    assert [trial.trial for trial in trials] == [1e-4, 5e-3, 1e30]
    assert trials[2].loss is None
    assert trials[1].loss is not None
    assert trials[0].loss is not None
    best = 5e-3 if trials[1].loss < trials[0].loss else 1e-4
    assert {report.rate for report in searched.of_type(StepReport) if report.trial is None} == {best}


def test_training_after_a_search_is_that_of_its_rate_alone(
    searched: Training, tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    rate = searched.of_type(StepReport)[-1].rate
    alone = Training(tmp_path / "t", model, rows, learning_rate=rate)
    assert alone.run()
    assert alone.weights("adapter") == searched.weights("adapter")


@pytest.mark.slow
def test_kills_within_a_search_leave_everything_bit_identical(
    searched: Training, tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    training = Training(tmp_path / "t", model, rows, **RATES)
    for killed_after in range(1, len(searched.reports) + 1):
        with pytest.raises(KeyboardInterrupt):
            training.run(killed_after=killed_after)
    assert training.run()
    assert training.curve == searched.curve
    for name in ("adapter", "best"):
        assert training.weights(name) == searched.weights(name)


def test_stops_within_a_search_leave_everything_bit_identical(
    searched: Training, tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    training = Training(tmp_path / "t", model, rows, **RATES | {"save_every": 100})
    for calls in range(3, 12):
        training.run(stop=map(calls.__eq__, count(1)).__next__)
    assert training.run()
    assert training.curve == searched.curve
    assert training.weights("adapter") == searched.weights("adapter")


def test_search_in_which_each_rate_diverges_ends_as_diverged(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    training = Training(tmp_path / "t", model, rows, rates=(1e29, 1e30), rate_updates=3)
    with pytest.raises(DivergedError, match="lower --rates"):
        training.run()
    assert [report.loss for report in training.of_type(RateReport)] == [None, None]


# --- divergence ----------------------------------------------------------------------------------


def rates(*by_step: float) -> Callable[[TrainingSettings, int], float]:
    return lambda settings, step: by_step[min(step, len(by_step)) - 1]


@pytest.mark.parametrize("last", [1e30, 1e3], ids=["nan", "high"])
def test_diverged_training_leaves_the_adapter_of_its_last_checkpoint(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]], monkeypatch: pytest.MonkeyPatch, last: float
) -> None:
    from mlx_vlm import load as load_vlm

    monkeypatch.setattr(TrainingSettings, "rate", rates(*[1e-2] * 24, last))
    training = Training(tmp_path / "t", model, {"train": rows["train"]}, steps=80, save_every=12)
    with pytest.raises(DivergedError):
        training.run()
    assert training.of_type(StepReport)[-1].step < 80
    adapter: Any = mx.load(str(training.folder / "adapter" / "adapters.safetensors"), return_metadata=True)
    assert adapter[1]["step"] == "24"
    load_vlm(str(model), adapter_path=str(training.folder / "adapter"))


def test_diverged_training_without_a_sound_checkpoint_leaves_none(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    training = Training(tmp_path / "t", model, {"train": rows["train"]}, learning_rate=1e30, save_every=1)
    with pytest.raises(DivergedError):
        training.run()
    assert (training.folder / CHECKPOINT).is_file()
    assert not (training.folder / "adapter").exists()


@pytest.mark.slow
def test_preferences_diverge_by_their_answers_alone(
    tmp_path: Path, model: Path, rows: dict[str, list[ChatRow]]
) -> None:
    """With a large beta the loss begins above that of any guess."""
    training = Training(
        tmp_path / "t", model, {"train": rows["train"]}, objective="orpo", beta=2000.0, learning_rate=1e-6, steps=22
    )
    assert training.run()
    assert isinstance(first := training.reports[0], StepReport)
    assert first.loss > 200 > first.answer_loss


def diverged_at(losses: list[float], vocabulary: int = 150_000) -> int | None:
    trend = LossTrend.of_guessing(vocabulary)
    for step, loss in enumerate(losses, 1):
        trend = trend.after(loss)
        if trend.diverged:
            return step
    return None


@pytest.mark.parametrize("level", [0.05, 1.5, 10.0])
@pytest.mark.parametrize("spread", [0.2, 1.2])
def test_noisy_losses_that_fall_are_healthy(level: float, spread: float) -> None:
    noise = random.Random(f"{level} {spread}")
    falling = [level * math.exp(-step / 500) * noise.lognormvariate(0, spread) for step in range(2000)]
    assert diverged_at(falling, 2600) is None


@pytest.mark.parametrize("risen", [4.5, 8.0, 60.0, 1e9])
def test_losses_that_rise_for_good_have_diverged(risen: float) -> None:
    step = diverged_at([1.5] * 300 + [risen] * 100)
    assert step is not None
    assert 305 < step < 340


def test_losses_that_rise_from_the_beginning_above_the_base_have_diverged() -> None:
    """They stay below guessing, so that only the base's validation loss shows the rise."""
    trend = LossTrend(1.5)
    for loss in [1.4, *[4.5] * 60]:
        trend = trend.after(loss)
    assert trend.diverged
    assert diverged_at([1.4, *[4.5] * 60]) is None, "without the base's loss"


def test_single_great_loss_is_no_divergence() -> None:
    assert diverged_at(([1.5] * 50 + [1e6]) * 4) is None


def test_losses_above_guessing_from_the_start_have_diverged() -> None:
    assert diverged_at([1.5, 2.0] + [40.0] * 50) is not None
