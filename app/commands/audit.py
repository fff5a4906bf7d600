"""``rashomon audit``: the share of a build's or a run's questions that can be answered without looking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from app.annotation.review_session import find_build
from app.commands.spinner import spinner
from app.report.render import print_table
from app.report.tables import read_inputs
from app.store.blind_scores import unchanged_build
from app.store.run import RunStore
from app.store.run_references import run_folder
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.answers import Answers
from benchmarks.audit import Audit
from benchmarks.audit.tables import rule_tables, sentence, summary
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.build_audit import audit_build, audit_instances
from benchmarks.errors import StoreError
from benchmarks.factors.tables import reference_cells
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import Cell, Estimate
from benchmarks.without_looking import gain_over_blind

Columns = dict[str, Mapping[str, Cell]]
"""Further columns of the audit's table: their cells by task."""


def audit(workspace: Workspace, name: str, *, judge: str | None, every: bool, as_json: bool) -> None:
    """Print the audit of the build or the run ``name``, with the run's own results; with ``every``, all rules.

    Raises SourceError or StoreError if there is neither.
    """
    columns: Columns = {}
    scores: list[dict[str, object]] = []
    not_shown = ""
    with spinner("trying rules that look at no source"):
        build = _build(workspace, name)
        if build is not None:
            result = audit_build(build, get_benchmark(build.benchmark))
        else:
            result, columns, scores, not_shown = _audit_run(workspace, name, judge)
    if as_json:
        values = {"tasks": [asdict(task) for task in result.tasks], "open questions": result.open}
        runs = {run: {task: _json(cell) for task, cell in cells.items()} for run, cells in columns.items()}
        of_run = {"run": runs, "questions": scores} if runs else {}
        print(json.dumps(values | of_run, indent=2, ensure_ascii=True))
        return
    if result.tasks:
        print_table(summary(result, columns))
        for table in rule_tables(result) if every else ():
            print_table(table)
    print(clean(f"{sentence(result)}."))
    if not_shown:
        print(clean(not_shown))
    if result.tasks and not every:
        print("--all prints all rules, --json all numbers.")


_SHARE, _GAIN = "the run", "gain"


def _build(workspace: Workspace, name: str) -> Build | None:
    """Return the build in a folder, or of a benchmark; None for the name of a run. Raises SourceError if there is no build."""
    if name in benchmark_names() or path_exists(typed_path(name) / "manifest.json"):
        return find_build(workspace, name)
    return None


def _audit_run(
    workspace: Workspace, name: str, judge: str | None
) -> tuple[Audit, Columns, list[dict[str, object]], str]:
    """Return the audit of a run's instances, its gains over the best blind rule, their scores, and that it has none, if so.

    Only questions whose prompt offers their options have a gain: what else has to be found in a source.
    """
    try:
        folder = run_folder(workspace, name)
    except StoreError as error:
        raise StoreError(f"{name!r} is neither a build nor a run: {error}") from error
    inputs = read_inputs([folder], judge)
    benchmark, (answers,) = inputs.benchmark, reference_cells(inputs.runs).values()
    with RunStore.read(folder) as store:
        instances = (record.instance for record in store.records())
        result = audit_instances(benchmark, instances, unchanged_build(store))
    whole = gain_over_blind(benchmark, answers, inputs.judge)
    gains = whole.by_task if whole is not None else {}
    columns: Columns = {
        _SHARE: {task: gain.right for task, gain in gains.items()},
        _GAIN: {task: gain.gain for task, gain in gains.items()},
    }
    scores = _scores(benchmark, answers, inputs.judge)
    return result, columns, scores, "" if whole is None else whole.doubt(name)


def _scores(benchmark: Benchmark, answers: Answers, judge: str) -> list[dict[str, object]]:
    """Return the scores of a run, of the best blind rule and of guessing on each question that counts in its gain."""
    if (blind := answers.blind) is None:
        return []
    counted = benchmark.counted_conditions
    right = answers.scores(lambda kind: benchmark.counted_score(kind, judge) if kind.condition in counted else None)
    places = np.flatnonzero(~np.isnan(right + blind.blind))
    records = answers.read(places.tolist())
    return [
        {
            "id": record.instance.id,
            "task": blind.tasks[blind.task[place]][0],
            "right": float(right[place]),
            "blind": float(blind.blind[place]),
            "chance": float(blind.chance[place]),
        }
        for place, record in zip(places, records, strict=True)
    ]


def _json(cell: Cell) -> object:
    return asdict(cell) if isinstance(cell, Estimate) else cell
