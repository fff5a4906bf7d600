"""``rashomon audit``: the share of a build's or a run's questions that can be answered without looking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.annotation.review_session import find_build
from app.commands.terminal.spinner import spinner
from app.json_output.audit_json import AuditedBuild, AuditResult, QuestionScore, TaskGain
from app.json_output.json_envelope import print_json
from app.json_output.tables_json import estimate_json
from app.report.tables.table_inputs import read_inputs
from app.report.tables.table_rendering import print_table
from app.store.cached_blind_scores import unchanged_build
from app.store.question_sets import set_folder, set_folders
from app.store.run_references import run_folder
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.answers import Answers
from benchmarks.audit import Audit
from benchmarks.audit.audit_tables import rule_tables, sentence, summary
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.build_audit import audit_build, audit_instances
from benchmarks.errors import StoreError
from benchmarks.factors.factor_tables import reference_cells
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.tables.blind_rule_tables import Gain, gain_over_blind
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import Cell


@dataclass(frozen=True)
class _AuditedRun:
    """Additions of a run to the audit of its build: its gains by task, and the scores of its questions."""

    folder: Path
    judge: str
    gains: Mapping[str, Gain]
    questions: tuple[QuestionScore, ...]
    not_shown: str


def audit(workspace: Workspace, name: str, *, judge: str | None, every: bool, as_json: bool) -> None:
    """Print the audit of the build or the run ``name``, with the run's own results; with ``every``, all rules.

    Raises SourceError or StoreError if there is neither.
    """
    run: _AuditedRun | None = None
    with spinner("trying rules that look at no source"):
        build = _build(workspace, name)
        if build is not None:
            result = audit_build(build, get_benchmark(build.benchmark))
        else:
            result, run = _audit_run(workspace, name, judge)
    if as_json:
        gains = {} if run is None else run.gains
        values = AuditResult(
            build=None if build is None else AuditedBuild(benchmark=build.benchmark, data_digest=build.digest),
            sentence=f"{sentence(result)}.",
            not_shown="" if run is None else run.not_shown,
            tasks=result.tasks,
            open_questions=result.open,
            gains=tuple(
                TaskGain(task=task, right=estimate_json(gain.right), gain=estimate_json(gain.gain))
                for task, gain in gains.items()
            ),
            questions=() if run is None else run.questions,
        )
        print_json(
            "audit", values, folders=[] if run is None else [run.folder], judge=None if run is None else run.judge
        )
        return
    if result.tasks:
        columns: dict[str, Mapping[str, Cell]] = {}
        if run is not None:
            columns["the run"] = {task: gain.right for task, gain in run.gains.items()}
            columns["gain"] = {task: gain.gain for task, gain in run.gains.items()}
        print_table(summary(result, columns))
        for table in rule_tables(result) if every else ():
            print_table(table)
    print(clean(f"{sentence(result)}."))
    if run is not None and run.not_shown:
        print(clean(run.not_shown))
    if result.tasks and not every:
        print("--all prints all rules, --json all numbers.")


def _build(workspace: Workspace, name: str) -> Build | None:
    """Return the build in a folder, of a benchmark or of a question set; None for what stands for a run.

    Raises SourceError if there is no build, or SpecError for a version that a set has not.
    """
    set_part = set_folder(workspace.path, name.rpartition("@")[0] or name)
    is_set = name not in workspace.run_names() and set_part in set_folders(workspace.path)
    if is_set or name in benchmark_names() or path_exists(typed_path(name) / "manifest.json"):
        return find_build(workspace, name)
    return None


def _audit_run(workspace: Workspace, name: str, judge: str | None) -> tuple[Audit, _AuditedRun]:
    """Return the audit of a run's instances, and its gains over the best blind rule.

    Only questions whose prompt offers their options have a gain: what else has to be found in a source.
    """
    try:
        folder = run_folder(workspace, name)
    except StoreError as error:
        raise StoreError(f"{name!r} is neither a build, a question set nor a run: {error}") from error
    inputs = read_inputs([folder], judge)
    benchmark, (answers,) = inputs.benchmark, reference_cells(inputs.runs).values()
    with RunStore.read(folder) as store:
        instances = (record.instance for record in store.records())
        result = audit_instances(benchmark, instances, unchanged_build(store))
    whole = gain_over_blind(benchmark, answers, inputs.judge)
    return result, _AuditedRun(
        folder,
        inputs.judge,
        {} if whole is None else whole.by_task,
        _scores(benchmark, answers, inputs.judge),
        "" if whole is None else whole.doubt(name),
    )


def _scores(benchmark: Benchmark, answers: Answers, judge: str) -> tuple[QuestionScore, ...]:
    """Return the scores of a run, of the best blind rule and of guessing on each question that counts in its gain."""
    if (blind := answers.blind) is None:
        return ()
    counted = benchmark.counted_conditions
    right = answers.scores(lambda kind: benchmark.counted_score(kind, judge) if kind.condition in counted else None)
    places = np.flatnonzero(~np.isnan(right + blind.blind))
    records = answers.read(places.tolist())
    return tuple(
        QuestionScore(
            id=record.instance.id,
            task=blind.tasks[blind.task[place]][0],
            right=float(right[place]),
            blind=float(blind.blind[place]),
            chance=float(blind.chance[place]),
        )
        for place, record in zip(places, records, strict=True)
    )
