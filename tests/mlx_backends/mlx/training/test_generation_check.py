"""Checks along a training: the answers are an evaluation's, and the training is the same with and without them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from app.store.run_store import RunStore
from benchmarks.training.training_set import ChatRow, TrainingSet
from judges.training_answer_judge import judge_answer
from mlx_backends.mlx.mlx_load import load
from mlx_backends.mlx.training.generation_check import GenerationCheck
from mlx_backends.mlx.training.training_checkpoint import load_adapter
from mlx_backends.mlx.training.training_loop import BEST, TrainingLoop
from mlx_backends.training_settings import AnyReport, CheckReport, CheckRows, TrainingSettings
from tests.support.command import Rashomon
from tests.support.data.small import own_rows
from tests.support.tiny_models import FAMILIES
from tests.support.trainings import write_training_set

DEMO = Path(__file__).parents[4] / "assets" / "demo"

SETTINGS = TrainingSettings(
    rank=2, alpha=4.0, dropout=0.1, batch_size=1, learning_rate=5e-3, schedule="constant", warmup=0, steps=5, max_length=4096,
    max_pixels=None, gradient_checkpointing=True, seed=0, validate_every=1, save_every=2, check_every=2,
)  # fmt: skip

Rows = dict[str, list[ChatRow]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FAMILIES["qwen3_vl"](tmp_path_factory.mktemp("model") / "qwen3_vl")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    data = TrainingSet.open(write_training_set(tmp_path_factory.mktemp("rows") / "set", 3, 2))
    learnt, validation = (list(data.rows(part)) for part in ("train", "validation"))
    kinds = ("conflict", "no conflict")
    return {
        "train": learnt,
        "validation": [replace(row, kind=kind) for row, kind in zip(validation, kinds, strict=True)],
    }


def loop_of(folder: Path, model: Path, rows: Rows, *, checked: bool = True, **options: Any) -> TrainingLoop:
    folder.mkdir(exist_ok=True)
    check = CheckRows(rows["validation"], judge_answer, True) if checked else None
    settings = replace(SETTINGS, **options)
    return TrainingLoop(folder, "m", load(model), rows, settings, {}, check=check)


class Killed(Exception):
    """A kill, which saves nothing."""


class Training:
    """A training in a folder with its log, which may be stopped or killed."""

    def __init__(self, folder: Path, model: Path, rows: Rows, **options: Any) -> None:
        self._make: Callable[[], TrainingLoop] = partial(loop_of, folder, model, rows, **options)
        self.folder = folder
        self.reports: list[AnyReport] = []

    def run(self, stop: Callable[[], bool] = lambda: False, killed_after: int | None = None) -> bool:
        loop = self._make()
        progress = loop.resume()
        del self.reports[progress.log_bytes :]

        def report(report: AnyReport) -> None:
            self.reports.append(report)
            if len(self.reports) == killed_after:
                raise Killed

        return loop.run(progress, report, lambda: len(self.reports), stop)

    @property
    def log(self) -> list[Any]:
        changing = ("seconds", "peak_memory")
        return [
            (type(report), {name: value for name, value in asdict(report).items() if name not in changing})
            for report in self.reports
        ]

    def weights(self, name: str) -> bytes:
        return (self.folder / name / "adapters.safetensors").read_bytes()


def _end_within_check(training: Training, before: list[int], end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a training until its check after those of ``before`` has answered the first row."""
    generate, within = GenerationCheck._generated, [False]

    def generated(own: GenerationCheck, index: int, stop: Callable[[], bool]) -> Any:
        within[0] = index == 1 and _checks(training) == before
        if within[0] and end == "kill":
            raise Killed
        return generate(own, index, stop)

    with monkeypatch.context() as patch:
        patch.setattr(GenerationCheck, "_generated", generated)
        if end == "kill":
            with pytest.raises(Killed):
                training.run()
        else:
            assert not training.run(stop=lambda: within[0])


def _checks(training: Training, before: int | None = None) -> list[int]:
    """Return the updates of the checks in the log, in order; with ``before``, those ahead of the check of that update."""
    steps = [report.step for report in training.reports if isinstance(report, CheckReport)]
    return steps if before is None else steps[: steps.index(before)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, model: Path, rows: Rows) -> Training:
    training = Training(tmp_path_factory.mktemp("undisturbed") / "t", model, rows)
    assert training.run()
    return training


def test_the_base_updates_along_the_way_and_the_best_adapter_are_checked_once(undisturbed: Training) -> None:
    checks = [report for report in undisturbed.reports if isinstance(report, CheckReport)]
    _, best = load_adapter(undisturbed.folder / BEST)
    assert [check.step for check in checks] == [*dict.fromkeys((0, 2, 4, best))]
    assert all(check.conflicts == check.agreeing == 1 for check in checks)
    assert all(sum(sum(counts.values()) for counts in check.outcomes.values()) == 2 for check in checks)


def test_a_training_with_checks_makes_the_same_adapter(
    undisturbed: Training, tmp_path: Path, model: Path, rows: Rows
) -> None:
    without = Training(tmp_path / "t", model, rows, checked=False)
    assert without.run()
    assert without.log == [entry for entry in undisturbed.log if entry[0] is not CheckReport]
    for name in ("adapter", "best"):
        assert without.weights(name) == undisturbed.weights(name)


@pytest.mark.slow
def test_killed_within_each_check_and_stopped_within_it_afterwards_it_is_the_same(
    undisturbed: Training, tmp_path: Path, model: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbed = Training(tmp_path / "t", model, rows)
    for check in [report for report in undisturbed.reports if isinstance(report, CheckReport)]:
        before = _checks(undisturbed, before=check.step)
        for end in ("kill", "stop"):
            _end_within_check(disturbed, before, end, monkeypatch)
    assert disturbed.run()
    assert disturbed.log == undisturbed.log
    for name in ("adapter", "best"):
        assert disturbed.weights(name) == undisturbed.weights(name)


def test_a_check_changes_neither_weights_nor_random_numbers_and_stops_within_an_answer(
    tmp_path: Path, model: Path, rows: Rows
) -> None:
    loop = loop_of(tmp_path / "t", model, rows)
    assert loop._check is not None
    weights: Any = dict(tree_flatten(loop._model.parameters()))
    state: Any = mx.random.state
    before = state[0].tolist()
    report = loop._check.run(7, lambda: False)
    assert report is not None
    assert (report.step, state[0].tolist()) == (7, before)
    after: Any = dict(tree_flatten(loop._model.parameters()))
    assert weights.keys() == after.keys()
    assert all(bool(mx.array_equal(weights[name], after[name])) for name in weights)
    calls = iter(range(100))
    assert loop._check.run(7, lambda: next(calls) >= 2) is None
    again = loop._check.run(7, lambda: False)
    assert again is not None
    assert replace(again, seconds=0.0) == replace(report, seconds=0.0)


@pytest.mark.slow
def test_answers_are_those_of_a_run_with_the_adapter_to_the_token(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    source = own_rows(tmp_path / "source", [str(20 + 7 * n) for n in range(6)], "What is the value of kale?")
    rashomon.run("build", "cmc-bench", "--source", f"rows={source}", "--out", tmp_path / "build")
    rashomon.run("training", "cmc-bench", "--data", tmp_path / "build", "--out", tmp_path / "set")
    lines = (tmp_path / "set" / "train.jsonl").read_text("utf-8").splitlines()
    rows = list(TrainingSet.open(tmp_path / "set").rows("train"))
    names = [json.loads(line)["id"] for line in lines]
    split = {"train": rows, "validation": rows}
    loop = loop_of(tmp_path / "t", DEMO / "model-4bit", split, steps=3, validate_every=3, check_every=0)
    assert loop.run(loop.resume(), lambda report: None, lambda: 0, lambda: False)
    check = loop._check
    assert check is not None
    answers = {name: check.answer_tokens(index) for index, name in enumerate(names)}
    model = ("--model", DEMO / "model-4bit", "--max-tokens", str(check._max_tokens), "--name", "r")
    rashomon.run(
        "--batch",
        "--benchmark",
        "cmc-bench",
        "--data",
        tmp_path / "build",
        *model,
        "--adapter",
        tmp_path / "t" / "adapter",
    )
    with RunStore.open(rashomon.workspace / "runs" / "r") as run:
        evaluated = {record.instance.id: record.answer.tokens for record in run.records() if record.answer}
    assert len(answers) >= 12
    assert answers == {name: evaluated[name] for name in names}
