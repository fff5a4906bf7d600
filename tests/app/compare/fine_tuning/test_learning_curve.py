"""The same training on several data sets and sizes, as one resumable command and a curve with intervals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.compare.fine_tuning.learning_curve import FailedPoint, curve_sentences, curve_table, learning_curve
from app.figures.figure_style import to_bytes
from app.figures.learning_curve_figures import draw_learning_curve
from benchmarks.errors import SourceError, SpecError
from benchmarks.training.training_set import TrainingSet
from benchmarks.training.training_subset import write_subset
from benchmarks.vocabulary import Estimate
from mlx_backends.mlx.training.training_loop import TrainingLoop
from mlx_backends.training_settings import DivergedError
from tests.app.compare.fine_tuning.test_fine_tuning_effect import BASE, run, shares
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.compared_runs import sides
from tests.support.demo import FOUR_BIT, HeldOutSet
from tests.support.trainings import trained_here

PLACES = [("filtered", 100), ("filtered", 400), ("unfiltered", 100), ("unfiltered", 800)]


def test_the_curve_has_every_point_and_compares_quality_with_quantity() -> None:
    runs = [run("base", shares(0.3, 0.97), BASE)]
    runs += [
        run(str(i), shares(c, a), BASE) for i, (c, a) in enumerate([(0.6, 0.96), (0.9, 0.97), (0.4, 0.9), (0.6, 0.8)])
    ]
    views = sides(*runs)
    curve = learning_curve(views, PLACES, resamples=200)
    table = curve_table(curve)
    assert [label for label, _ in table.rows] == [
        "base",
        "filtered / 100",
        "filtered / 400",
        "unfiltered / 100",
        "unfiltered / 800",
    ]
    rows, conflict, gain, other, change, category = dict(table.rows)["filtered / 400"]
    assert category == "worth shipping"
    assert rows == 400
    assert isinstance(conflict, Estimate)
    assert isinstance(gain, Estimate)
    assert isinstance(other, Estimate)
    assert isinstance(change, Estimate)
    assert [conflict.value, gain.value, other.value, change.value] == pytest.approx([0.9, 0.6, 0.97, 0])
    assert conflict.low is not None
    assert conflict.low < 0.9
    best, most, equal, against = curve_sentences(curve, resamples=200)
    assert best.startswith("Worth shipping with 400 rows of filtered: 1 gains 60 points under conflict")
    assert most.startswith("Harmful with 800 rows of unfiltered: 3 loses 17 points without conflict")
    assert equal.startswith("filtered with 100 rows against unfiltered with 100: +20 points")
    assert against.startswith("filtered with 400 rows against unfiltered with 800: +30 points")
    lossy = learning_curve(sides(runs[0], runs[4], runs[1]), [("few", 10), ("many", 20)], resamples=200)
    *_, sentence = curve_sentences(lossy, resamples=200)
    assert sentence.startswith("few with 10 rows against many with 20: -16 points (")
    assert sentence.index(" without conflict, ") < sentence.index(" under conflict")
    assert to_bytes(draw_learning_curve(curve, width="column"), "svg").startswith(b"<?xml")


def test_a_training_that_failed_is_in_table_and_figure_with_its_reason() -> None:
    runs = [run(name, shares(share, 0.97), BASE) for name, share in (("base", 0.3), ("tuned", 0.9))]
    failed = [FailedPoint("set", 20, "the training diverged"), FailedPoint("other", 20, "the training diverged too")]
    curve = learning_curve(sides(*runs), [("set", 10)], resamples=100, failed=failed)
    table = curve_table(curve)
    assert [label for label, _ in table.rows] == ["base", "set / 10", "set / 20", "other / 20"]
    assert dict(table.rows)["other / 20"][:2] == (20, "failed")
    assert "other / 20: the training diverged too" in table.notes
    (sentence,) = curve_sentences(curve, resamples=100)
    assert sentence.startswith("Worth shipping with 10 rows of set: ")
    drawn = to_bytes(draw_learning_curve(curve, width="column"), "svg")
    assert drawn != to_bytes(draw_learning_curve(replace(curve, failed=()), width="column"), "svg")
    nothing = learning_curve(sides(runs[0]), [], resamples=100, failed=failed)
    assert to_bytes(draw_learning_curve(nothing, width="column"), "svg")


def test_a_metric_can_take_the_place_of_accuracy() -> None:
    runs = [run(name, shares(share, 0.97), BASE) for name, share in (("base", 0.3), ("tuned", 0.9))]
    curve = learning_curve(sides(*runs), [("set", 10)], metric="cdr", resamples=100)
    assert curve_table(curve).columns[1] == "CDR"
    assert curve.points[0].gain.difference.value == pytest.approx(0.2)  # both-wrong is a third of the conflicts
    assert to_bytes(draw_learning_curve(curve, width="page"), "png")
    with pytest.raises(SpecError):
        learning_curve(sides(*runs), [("set", 10)], metric="none", resamples=10)


@pytest.fixture(scope="module")
def training_sets(charts: HeldOutSet, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two training sets of the same drawn charts."""
    home = tmp_path_factory.mktemp("sets")
    for name, target in (("named", "name"), ("answered", "answer")):
        Rashomon(home).run(
            "training", "cmc-bench", "--data", charts.build.path, "--target", target, "--out", home / name
        )
    return [home / "named", home / "answered"]


@pytest.fixture(scope="module")
def other_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of other charts, to measure on."""
    home = tmp_path_factory.mktemp("other")
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources", "--out", home / "build")
    return home / "build"


def test_smaller_parts_are_in_larger_ones(training_sets: list[Path], tmp_path: Path) -> None:
    whole = TrainingSet.open(training_sets[0])
    parts = [write_subset(whole, size, tmp_path / str(size), seed=1) for size in (3, 6)]
    small, large = ([row.prompt for row in part.rows("train")] for part in parts)
    assert len(small) == 3
    assert set(small) < set(large)
    assert all(image.is_file() for row in parts[0].rows("train") for image in row.images)
    assert list(parts[0].rows("validation"))
    again = write_subset(whole, 3, tmp_path / "again", seed=1)
    assert again.digest == parts[0].digest
    assert write_subset(whole, 3, tmp_path / "other", seed=2).digest != again.digest
    for size in (0, 10**6):
        with pytest.raises(SourceError):
            write_subset(whole, size, tmp_path / "none", seed=1)
    assert not (tmp_path / "none").exists()


def test_part_of_a_set_made_elsewhere(tmp_path: Path) -> None:
    made = tmp_path / "blobs" / "made"
    (made / "images").mkdir(parents=True)
    (tmp_path / "blobs" / "picture").write_bytes(b"a picture")
    (made / "images" / "linked.png").symlink_to("../../picture")
    turns = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": "A dog."}]
    row = json.dumps({"images": ["images/linked.png"], "messages": turns})
    (made / "train.jsonl").write_text(f"{row}\n\n{row}\n \n")
    part = write_subset(TrainingSet.open(made), 2, tmp_path / "part", seed=0)
    assert [row.images[0].read_bytes() for row in part.rows("train")] == [b"a picture"] * 2
    with pytest.raises(SourceError):  # blank lines are no rows
        write_subset(TrainingSet.open(made), 3, tmp_path / "more", seed=0)


@pytest.mark.slow
def test_wrong_options_start_nothing(
    training_sets: list[Path], other_build: Path, charts: HeldOutSet, tmp_path: Path
) -> None:
    rashomon, trained_on = Rashomon(tmp_path), charts.build.path
    command = ("learning-curve", "--model", FOUR_BIT, "--data", training_sets[0], "--test", other_build)
    for wrong in (
        ("--sizes", "0"),
        ("--sizes", "x"),
        ("--sizes", "100000"),
        ("--recipe", "none"),
        ("--metric", "none"),
        ("--format", "doc"),
    ):
        rashomon.run(*command, *wrong, code=2)
    rashomon.run(*command, "--rank", "0", code=2)
    rashomon.run("learning-curve", "--data", training_sets[0], "--test", other_build, code=2)
    rashomon.run(*command, "--data", training_sets[0], code=2)
    rashomon.run("learning-curve", "--model", tmp_path, "--data", tmp_path, code=2)
    rashomon.run(*command, "--test", trained_on, "--dry-run", code=2)
    output = rashomon.run(*command, "--sizes", "2,4", "--dry-run").stdout
    assert "2 trainings, and 3 runs" in output
    assert not (rashomon.workspace / "trainings").exists()


@pytest.mark.slow
def test_a_point_that_diverges_does_not_hold_up_the_others(
    training_sets: list[Path], other_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn: Callable[..., Any] = TrainingLoop.learn
    attempts: list[str] = []

    def diverging(loop: TrainingLoop, *rest: Any) -> Any:
        attempts.append(loop._folder.name)
        if loop._folder.name.startswith("my-rows-2-"):
            raise DivergedError("the training diverged: the loss is not a number")
        return learn(loop, *rest)

    monkeypatch.setattr(TrainingLoop, "learn", diverging)
    rashomon = Rashomon(tmp_path)
    data = shutil.copytree(training_sets[0], tmp_path / "my rows")
    command: tuple[str | Path, ...] = ("learning-curve", "--model", FOUR_BIT, "--data", data, "--test", other_build)
    command += (
        "--sizes",
        "2,4",
        "--limit",
        "2",
        "--rank",
        "2",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--display",
        "none",
    )
    with trained_here():
        for tries in (1, 0):  # the second command does not train it again
            attempts.clear()
            printed = json.loads(rashomon.run(*command, "--json", code=1).stdout)
            result = printed["result"]
            assert printed["judge"]["id"] == "match"
            assert len([name for name in attempts if name.startswith("my-rows-2-")]) == tries
            assert [row["label"] for row in result["table"]["rows"]][1:] == ["my rows / 4", "my rows / 2"]
            assert any("not a number" in note for note in result["table"]["notes"])


@pytest.mark.slow
def test_the_command_trains_measures_and_resumes(training_sets: list[Path], other_build: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    command: tuple[str | Path, ...] = ("learning-curve", "--model", FOUR_BIT, "--sizes", "2,4", "--limit", "3")
    command += ("--data", training_sets[0], "--data", training_sets[1], "--test", other_build, "--rank", "2")
    command += ("--steps", "2", "--batch-size", "1", "--max-length", "512", "--display", "none")
    result = rashomon.json(*command)
    assert [row["label"] for row in result["table"]["rows"]][1:] == [
        "named / 2",
        "named / 4",
        "answered / 2",
        "answered / 4",
    ]
    trainings = sorted((rashomon.workspace / "trainings").iterdir())
    before = {path: (path / "log.jsonl").stat().st_mtime_ns for path in trainings}
    assert len(trainings) == 4
    rashomon.run(*command, "--format", "csv,svg", "--out", tmp_path / "out")
    assert {path: (path / "log.jsonl").stat().st_mtime_ns for path in trainings} == before, "nothing is trained again"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["learning-curve.csv", "learning-curve.svg"]
