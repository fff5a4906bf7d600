"""``rashomon learning-curve``: the same training on several data sets and sizes, each measured on the same test data."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.commands.running.batch_command import batch
from app.commands.running.run_execution import ExecutionOptions
from app.commands.terminal.spinner import spinner
from app.commands.training.train_command import train
from app.compare.fine_tuning.learning_curve import (
    FailedPoint,
    LearningCurve,
    curve_sentences,
    curve_table,
    find_metric,
    learning_curve,
)
from app.compare.runs.view_reader import load_views
from app.engine.run_plan import open_build
from app.engine.training.training_folder import DIVERGED, Training, find_training
from app.engine.training.training_spec_and_recipes import RESUMED_WITH, plain_name, training_spec
from app.engine.training.workspace_test_data import find_leaks, find_test_builds
from app.exit_codes import DONE, FAILURES, VERDICTS, EndedError
from app.exports.export_input import Files
from app.exports.export_writer import check_formats, write_files, written_message
from app.figures.figure_style import FIGURE_FORMATS, inches
from app.json_output.json_envelope import print_json
from app.json_output.tables_json import table_json
from app.json_output.training_json import LearningCurveJson, LearningCurvePlan
from app.report.tables.run_tables import RESAMPLES
from app.report.tables.table_rendering import print_table, to_csv, to_markdown
from app.run_spec import parse_spec
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean
from benchmarks.build import Build
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.training.leaks_of_test_data import check_leaks
from benchmarks.training.training_set import PARTS, TrainingSet
from benchmarks.training.training_subset import write_subset
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import digest
from mlx_backends.models.adapter_folder import join_adapter
from mlx_backends.training_settings import DivergedError

FORMATS = ("csv", "md", *FIGURE_FORMATS)

_FRACTIONS = (8, 4, 2, 1)
"""Default sizes: these fractions of the smallest data set, and the whole of each."""

_FOLDER = "learning-curves"


@dataclass(frozen=True, slots=True)
class CurveArguments:
    """The options of ``rashomon learning-curve``; ``training`` are those of ``rashomon train``."""

    model: str
    data: Sequence[Path]
    sizes: Sequence[str] = ()
    benchmark: str | None = None
    test: Path | None = None
    limit: int | None = None
    seed: int = 0
    judge: str | None = None
    metric: str | None = None
    formats: Sequence[str] | None = None
    out: Path | None = None
    as_json: bool = False
    force: bool = False
    accept_engine: bool = False
    dry_run: bool = False
    display: str | None = None
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Point:
    data: str
    rows: int
    source: TrainingSet
    folder: Path
    training: str


def learning_curve_command(workspace: Workspace, arguments: CurveArguments) -> int:
    """Train and measure what is not there yet, then print the curve; return 0.

    Raises EndedError if a training has diverged, answers failed, or the command could not continue or was interrupted. The same
    command resumes: a training, a run or a part of a data set that is complete is not made again, nor a training that
    has diverged.
    """
    if arguments.formats is not None:
        check_formats(arguments.formats, FORMATS)
    if not arguments.model:
        raise SpecError("--model is missing; name the base model.")
    model = str(typed_path(arguments.model)) if path_exists(arguments.model) else arguments.model
    points = _points(workspace, model, arguments)
    benchmark = arguments.benchmark or _benchmark(points)
    find_metric(get_benchmark(benchmark), arguments.metric or "")
    values = {"model": [model], "benchmark": benchmark, "limit": arguments.limit, "seed": arguments.seed}
    values |= {"data": str(typed_path(arguments.test)) if arguments.test else None}
    values |= {"judge": [arguments.judge] if arguments.judge else None}
    values = {key: value for key, value in values.items() if value is not None}
    build = open_build(workspace, parse_spec(values, {}, "the command line").runs()[0])
    _check_test_data(workspace, points, build)
    if not arguments.as_json:
        _print_plan(points, benchmark)
    if arguments.dry_run:
        if arguments.as_json:
            print_json("learning-curve", LearningCurveJson(trainings=_planned(points), sentences=(), table=None))
        return 0
    failed: list[FailedPoint] = []
    trained: list[_Point] = []
    for point in points:
        try:
            _train(workspace, model, point, arguments)
        except (DivergedError, EndedError) as end:
            state, reason = find_training(workspace, point.training).state()
            if state == DIVERGED:
                failed.append(FailedPoint(point.data, point.rows, reason))
                continue
            if end.exit_code not in VERDICTS:
                raise
        trained.append(point)
    return _measure(workspace, arguments, values, build, points, trained, failed)


def _measure(
    workspace: Workspace,
    arguments: CurveArguments,
    values: Mapping[str, Any],
    build: Build,
    planned: Sequence[_Point],
    points: Sequence[_Point],
    failed: Sequence[FailedPoint],
) -> int:
    """Run the base and each adapter with the spec's ``values``, and print the curve; return 0. Raises as :func:`batch`."""
    (model,) = values["model"]
    trainings = [find_training(workspace, point.training) for point in points]
    models = [model, *(join_adapter(model, str(training.advised_adapter())) for training in trainings)]
    display = arguments.display or ("none" if arguments.as_json else None)
    options = ExecutionOptions(display=display, force=arguments.force, accept_engine=arguments.accept_engine)
    failures = [f"{count_of(point.rows, 'row')} of {point.data}: {point.reason}" for point in failed]
    try:
        batch(workspace, None, {**values, "model": models}, options)
    except EndedError as end:
        if end.exit_code != FAILURES:
            raise
        failures.append(str(end))
    specs = parse_spec({**values, "model": models}, {}, "the command line").runs()
    folders = [workspace.runs_folder / spec.run_name(build.digest) for spec in specs]
    with spinner("comparing the runs"):
        views = load_views(folders, judge=arguments.judge)
        places = [(point.data, point.rows) for point in points]
        curve = learning_curve(views, places, metric=arguments.metric or "", resamples=RESAMPLES, failed=failed)
        sentences = [*curve_sentences(curve, resamples=RESAMPLES), *_doubts(points, trainings)]
    _print_curve(curve, planned, sentences, folders, arguments)
    if failures:
        raise EndedError(FAILURES, " ".join(failures))
    return DONE


def _doubts(points: Sequence[_Point], trainings: Sequence[Training]) -> list[str]:
    """Return the verdicts of trainings whose validation does not show that their adapter is better than the base."""
    verdicts = [(point, training.verdict()) for point, training in zip(points, trainings, strict=True)]
    return [
        f"the training on {count_of(point.rows, 'row')} of {point.data}: {verdict.sentence}."
        for point, verdict in verdicts
        if verdict is not None and verdict.code != DONE
    ]


def _points(workspace: Workspace, model: str, arguments: CurveArguments) -> list[_Point]:
    """Return the data sets and sizes to train with. Raises SpecError for sizes that the sets do not have."""
    sets = {path.name: TrainingSet.open(path) for path in map(typed_path, arguments.data)}
    if len(sets) < len(arguments.data):
        raise SpecError("two data sets have the same name; rename one of the folders.")
    counts = {name: sum(1 for _ in data.rows(PARTS[0])) for name, data in sets.items()}
    chosen = sorted({_size(text) for text in arguments.sizes})
    if too_large := [size for size in chosen if size > min(counts.values())]:
        name = min(counts, key=lambda name: counts[name])
        raise SpecError(
            f"{name} has {count_of(counts[name], 'row')} to learn from, fewer than {too_large[0]}; name smaller sizes."
        )
    settings = {**arguments.training, "seed": arguments.seed}
    identifying = {key: value for key, value in settings.items() if key not in RESUMED_WITH}
    points = []
    for name, data in sets.items():
        own = chosen or sorted({max(1, min(counts.values()) // part) for part in _FRACTIONS} | {counts[name]})
        for size in own:
            key = digest([model, data.digest, size, identifying])[:8]
            folder = workspace.path / _FOLDER / f"{name}-{size}-{data.digest[:8]}-{arguments.seed}"
            training = f"{plain_name(name, 'data', 40)}-{size}-{key}"
            # What is wrong is reported before anything is written.
            training_spec({**settings, "model": model, "data": ".", "name": training})
            points.append(_Point(name, size, data, folder, training))
    return points


def _size(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise SpecError(f"{text!r} is not a number of rows; write --sizes 500,1000.")
    return int(text)


def _benchmark(points: Sequence[_Point]) -> str:
    names = {str(point.source.manifest.get("benchmark", "")) for point in points}
    if len(names) > 1 or names == {""}:
        raise SpecError("the data sets do not say which benchmark measures the adapters; name it with --benchmark.")
    return names.pop()


def _check_test_data(workspace: Workspace, points: Sequence[_Point], build: Build) -> None:
    """Raise SpecError where a data set has rows of ``build``, which measures the adapters."""
    for source in {point.data: point.source for point in points}.values():
        if build.digest in source.builds:
            raise SpecError(
                f"{source.path} was made from {build.path}, which would measure the adapters; name another build with --test."
            )
        tests = find_test_builds(workspace, [build.path], source.builds)
        for warning in (*check_leaks(find_leaks(tests.builds, source), drop=False), *tests.unread):
            print(f"warning: {clean(warning)}.", file=sys.stderr)


def _print_plan(points: Sequence[_Point], benchmark: str) -> None:
    print(
        f"{count_of(len(points), 'training')}, and {len(points) + 1} runs of {benchmark}; the same command resumes them:"
    )
    for point in points:
        print(f"  {clean(point.training)}: {count_of(point.rows, 'row')} of {clean(point.data)}")


def _train(workspace: Workspace, model: str, point: _Point, arguments: CurveArguments) -> None:
    subset = write_subset(point.source, point.rows, point.folder, seed=arguments.seed)
    values = {**arguments.training, "seed": arguments.seed, "model": model, "data": str(subset.path)}
    with redirect_stdout(sys.stderr) if arguments.as_json else nullcontext():
        train(
            workspace,
            {**values, "name": point.training},
            resume=None,
            display=None,
            force=arguments.force,
            dry_run=False,
            accept_engine=arguments.accept_engine,
        )


def _planned(points: Sequence[_Point]) -> tuple[LearningCurvePlan, ...]:
    return tuple(LearningCurvePlan(training=point.training, data=point.data, rows=point.rows) for point in points)


def _print_curve(
    curve: LearningCurve,
    planned: Sequence[_Point],
    sentences: Sequence[str],
    folders: Sequence[Path],
    arguments: CurveArguments,
) -> None:
    table = curve_table(curve)
    if arguments.as_json:
        result = LearningCurveJson(trainings=_planned(planned), sentences=tuple(sentences), table=table_json(table))
        print_json("learning-curve", result, folders=folders, judge=curve.views.judge)
        return
    for sentence in sentences:
        print(clean(sentence))
    print()
    print_table(table)
    if arguments.formats is None:
        return
    from app.figures.figure_style import to_bytes
    from app.figures.learning_curve_figures import draw_learning_curve

    inches("column")
    texts = {"csv": to_csv, "md": to_markdown}
    files: Files = {
        f"learning-curve.{form}": texts[form](table).encode("utf-8")
        if form in texts
        else to_bytes(draw_learning_curve(curve, width="column"), form)
        for form in dict.fromkeys(arguments.formats)
    }
    folder = typed_path(arguments.out or Path("learning-curve"))
    write_files(folder, files)
    print(written_message(folder, files))
