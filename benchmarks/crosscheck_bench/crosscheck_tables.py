"""The tables of the paper, and further ones on points it leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.crosscheck_bench.crosscheck_constants import CAPABILITIES, CONDITIONS
from benchmarks.crosscheck_bench.crosscheck_metrics import (
    BY_CAPABILITY,
    BY_LEVEL,
    COMPOSITION,
    INTERVENTIONS,
    MAIN,
    SHIFT,
    SINGLE_CAPABILITY,
    STATES,
    TASK_KEYS,
    TaskMean,
    accuracy,
    answered,
)
from benchmarks.failure_table import counts_by_run, failures_table
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import INTERVALS, clustered_wilson, independent_difference, macro_average
from benchmarks.stats.paired_tests import share_difference
from benchmarks.stats.repeated_answers import wilson_repeated
from benchmarks.tables.declared_tables import Grid, Places, Sheets
from benchmarks.vocabulary import Cell, Chart, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

    Counts = NDArray[Any]

Runs = Mapping[str, Answers]
_Row = tuple[str, tuple[Cell, ...]]

_VANILLA = CONDITIONS.index("vanilla")
_NO_MODELS = ("policy:", "baseline:", "person:", "ocr:")
"""Beginnings of the names of runs that are not of models."""
_RIGHT, _WRONG, _UNCOUNTED = range(len(STATES))
_MEANS = (
    "A mean over tasks has the interval of its effective number of answers, so that a task with few answers widens it."
)
_GAINS = "Gains: over paired samples, weighted so that tasks count alike."
_VRC = (
    'The paper names the other axis "VRC scores" and "reasoning alignment" (Figure 7), and gives neither a definition nor a '
    "value, so VRC is n/a. The table `interleaved` counts how often the reasoning named a region."
)
_OVERALL_A = (
    "Overall-A: the mean over the compared models under vanilla, without rules and people. It has no interval, because the "
    "models answer the same questions and are no sample of models."
)
_UNWEIGHTED = "Means are unweighted over tasks; a mean with a missing task is n/a."
_OPEN = (
    "Open questions ({n}) are matched exactly here; the paper has a model compare their meaning. "
    "`rashomon judge RUN --judge MODEL` does that."
)
_ENTERS = "Labelled and unparsed answers enter the other tables, unparsed ones (empty, or nothing but reasoning) as INCORRECT."


def _places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int, int]]:
    task = kind.strata.get("task")
    if kind.condition in CONDITIONS and task in TASK_KEYS:
        state = _UNCOUNTED if not labels else _RIGHT if "CORRECT" in labels else _WRONG
        yield CONDITIONS.index(kind.condition), TASK_KEYS.index(task), state


def _exact_places(rule: str, kind: AnswerKind, labels: tuple[str, ...]) -> Places:
    """Return the place of a closed question's answer by a rule, whatever the judge."""
    if not _is_closed(kind):
        return ()
    label = "CORRECT" if getattr(kind.reading, rule) else "INCORRECT"
    return _places(kind, (label,) if kind.is_answered else ())


_SHAPE = (len(CONDITIONS), len(TASK_KEYS), len(STATES))
_GRID = Grid(_SHAPE, _places)
_EXACT = {rule: Grid(_SHAPE, partial(_exact_places, rule)) for rule in ("printed", "extracted")}


def tables(benchmark: Benchmark, runs: Runs, judge: str) -> list[Table]:
    """Return every table that the answers can fill.

    These are main, levels, capabilities, composition, exact-match and failures, and also interventions, shift and
    interleaved if the runs cover more than Table 1 needs. A row is a run under one strategy; "vanilla" is not spelled out.
    """
    # No table resamples: the intervals are closed-form, and so the cells are computed here instead of by columns of a layout.
    sheets = Sheets(benchmark, runs, judge, resamples=0, seed=0)
    notes = (INTERVALS, _MEANS, _UNWEIGHTED, *_open_note(runs, judge))

    def table(
        name: str,
        title: str,
        columns: Mapping[str, TaskMean],
        *own: str,
        more: Sequence[_Row] = (),
        chart: Chart | None = None,
    ) -> Table:
        rows = (*_rows(sheets, columns), *more)
        return sheets.finish(name, title, columns, rows, *own, *notes, percent=True, chart=chart)

    alone = [*_rows(sheets, SINGLE_CAPABILITY, " / the task that needs nothing else")]
    named = ", ".join(f"{key} {name}" for key, name in CAPABILITIES.items())
    by_capability = "Accuracy by capability, over the tasks that need it (Figure 5)"
    drop = "A drop is the atomic task's accuracy less the compositional one's."
    overall_a = [*_overall_a(sheets, COMPOSITION)]
    of_all = [_OVERALL_A] if overall_a else []
    strategies = "Prompting strategies on three capabilities (Table 3)"
    shift = "Prompting strategies, overall and on A5-A7 (Figure 7)"
    all_tables = [
        table("main", "Accuracy by task (Table 1)", MAIN),
        table("levels", "Accuracy by level", BY_LEVEL, chart="bars"),
        table("capabilities", by_capability, BY_CAPABILITY, f"{named}.", more=alone, chart="heat"),
        table(
            "composition", "Atomic against compositional tasks (Table 2)", COMPOSITION, drop, *of_all, more=overall_a
        ),
        _with_fine_tuned(sheets, _strategies(sheets, "interventions", strategies, INTERVENTIONS, notes)),
        _with_vrc(_strategies(sheets, "shift", shift, SHIFT, notes)),
        _interleaved(runs),
        _exact_match(sheets),
        failures_table(runs, judge, CONDITIONS, scope_note=_ENTERS),
    ]
    return [filled for filled in all_tables if filled.rows or filled.name in ("main", "failures")]


def overall(benchmark: Benchmark, answers: Answers, judge: str) -> dict[str, Estimate]:
    """Return the mean over tasks under vanilla, the column "Avg." of Table 1, by name."""
    sheet = Sheets(benchmark, {"": answers}, judge, resamples=0, seed=0).sheet("", _GRID)
    counts = sheet.counts[:, _VANILLA]
    return {"mean over tasks under vanilla": _cell(MAIN["Avg."], counts, sheet.distinct)} if counts.any() else {}


def _counts(sheets: Sheets, run: str, grid: Grid = _GRID) -> Counts:
    """Return the counts of a run, shape (clusters, conditions, tasks, states)."""
    return sheets.sheet(run, grid).counts


def _asked(counts: Counts) -> list[int]:
    """Return the places of the conditions under which any question was asked."""
    return [place for place in range(len(CONDITIONS)) if counts[:, place].any()]


def _rows(sheets: Sheets, columns: Mapping[str, TaskMean], suffix: str = "") -> Iterator[_Row]:
    """Yield a row for each run and strategy."""
    for run in sheets.runs:
        counts, distinct = _counts(sheets, run), sheets.sheet(run, _GRID).distinct
        for at in _asked(counts):
            yield f"{_row_label(run, at)}{suffix}", _cells(columns, counts[:, at], distinct)


def _overall_a(sheets: Sheets, columns: Mapping[str, TaskMean]) -> Iterator[_Row]:
    """Yield the row of the mean over models, as the paper's Overall-A, of at least two models."""
    models = [run for run in sheets.runs if not run.startswith(_NO_MODELS) and _counts(sheets, run)[:, _VANILLA].any()]
    if len(models) < 2:
        return
    rows = [_cells(columns, _counts(sheets, run)[:, _VANILLA], sheets.sheet(run, _GRID).distinct) for run in models]
    cells = []
    for by_model in zip(*rows, strict=True):
        values = [cell.value for cell in by_model if cell.value is not None]
        n = sum(cell.n for cell in by_model)
        reason = "" if len(values) == len(models) else next(cell.reason for cell in by_model if cell.value is None)
        cells.append(Estimate(None, n=n, reason=reason) if reason else Estimate(sum(values) / len(values), n=n))
    yield f"Overall-A, mean of {len(models)} models", tuple(cells)


def _row_label(run: str, at: int) -> str:
    return run if at == _VANILLA else f"{run} / {CONDITIONS[at]}"


def _cells(columns: Mapping[str, TaskMean], counts: Counts, distinct: float) -> tuple[Estimate, ...]:
    """Return the means of counts of shape (clusters, tasks, states), of which a share is ``distinct``."""
    return tuple(_cell(mean, counts, distinct) for mean in columns.values())


def _cell(mean: TaskMean, counts: Counts, distinct: float) -> Estimate:
    totals = counts.sum(0)
    n = int(answered(totals)[[TASK_KEYS.index(task) for task in mean.needs]].sum())
    if reason := _why_undefined(mean, totals):
        return Estimate(None, n=n, reason=reason)
    missing = int(totals[[TASK_KEYS.index(task) for task in mean.needs], _UNCOUNTED].sum())
    right, sizes = counts[..., _RIGHT] * distinct, answered(counts) * distinct
    tasks = [TASK_KEYS.index(task) for task in mean.tasks]
    estimate = macro_average(right[:, tasks], sizes[:, tasks])
    if mean.less:
        less = TASK_KEYS.index(mean.less)
        estimate = independent_difference(estimate, clustered_wilson(right[:, less], sizes[:, less]))
    return replace(estimate, value=float(mean(accuracy(totals))), n=n, missing=missing)


def _why_undefined(mean: TaskMean, totals: Counts) -> str:
    """Return why a mean is undefined, or "" if it is defined."""
    if not mean.tasks:
        return "no task needs it alone"
    needed = {task: totals[TASK_KEYS.index(task)] for task in mean.needs}
    if unasked := [task for task, states in needed.items() if not states.any()]:
        return f"nothing was asked of {', '.join(unasked)}"
    empty = [task for task, states in needed.items() if not answered(states)]
    return f"no answer of {', '.join(empty)} is labelled" if empty else ""


def _strategies(sheets: Sheets, name: str, title: str, metrics: Mapping[str, TaskMean], notes: Sequence[str]) -> Table:
    """Return the strategies side by side, with gains over vanilla, on samples answered under all strategies of a run."""
    rows: list[_Row] = []
    coverage: list[str] = []
    gains = tuple(f"{metric} gain" for metric in metrics)
    has_strategies = any(_asked(_counts(sheets, run)) not in ([], [_VANILLA]) for run in sheets.runs)
    for run in sheets.runs if has_strategies else ():
        counts, clusters = _by_sample(sheets, run)
        asked = _asked(counts)
        complete = (answered(counts[:, asked]).sum(-1) > 0).all(-1)
        coverage.append(
            f"{run}: {int(complete.sum()):,} of {len(complete):,} samples are answered under all of its strategies."
        )
        shared, of, distinct = counts[complete], clusters.at(complete), sheets.sheet(run, _GRID).distinct
        for at in asked:
            own: tuple[Cell, ...] = (None,) * len(gains)
            if at != _VANILLA:
                own = _gains(metrics, shared[:, _VANILLA], shared[:, at], of, distinct)
            rows.append((f"{run} / {CONDITIONS[at]}", (*_cells(metrics, of.sums(shared[:, at]), distinct), *own)))
    paired = (
        "Each run over the samples that are answered under all of its strategies; a gain is over the run's vanilla."
    )
    columns = (*metrics, *gains)
    return sheets.finish(name, title, columns, rows, paired, _GAINS, *coverage, *notes, percent=True)


def _with_vrc(table: Table) -> Table:
    """Return the table with Figure 7's VRC score, which is undefined, beside its metrics; the figure shows the metrics."""
    vrc = Estimate(None, reason="the paper does not define VRC")
    rows = tuple((name, (*cells, vrc)) for name, cells in table.rows)
    columns = (*table.columns, "VRC")
    return replace(table, columns=columns, rows=rows, notes=(_VRC, *table.notes), chart="bars", drawn=tuple(SHIFT))


def _with_fine_tuned(sheets: Sheets, table: Table) -> Table:
    """Return Table 3 with a row for each fine-tuned run, as the paper's CSFT, with its gains over its base under vanilla."""
    vanilla = {run: _counts(sheets, run)[:, _VANILLA] for run in sheets.runs}
    distinct = {run: sheets.sheet(run, _GRID).distinct for run in sheets.runs}
    bases = {run: answers.base for run, answers in sheets.runs.items() if answers.base}
    rows: list[_Row] = []
    for run, base in bases.items():
        if not vanilla[run].any():
            continue
        (before, clusters), (after, _) = (_by_sample(sheets, name, _VANILLA) for name in (base, run))
        gains = (Estimate(None, reason="the two runs do not have the same samples"),) * len(INTERVENTIONS)
        if np.array_equal(before.any(-1), after.any(-1)):
            both = answered(before).any(-1) & answered(after).any(-1)
            gains = _gains(INTERVENTIONS, before[both], after[both], clusters.at(both), distinct[run])
        rows.append((f"{run} / CSFT", (*_cells(INTERVENTIONS, vanilla[run], distinct[run]), *gains)))
    if not rows:
        return table
    note = "CSFT: a fine-tuned run under vanilla; its gains are over its base's vanilla, on the samples that both answered."
    labels = {label.removesuffix("/ CSFT") for label, _ in rows}
    others = [row for row in table.rows if row[0].removesuffix("/ vanilla") not in labels]
    for name in dict.fromkeys(bases.values()):
        label = f"{name} / vanilla"
        if label not in [row for row, _ in others]:
            others.append(
                (label, (*_cells(INTERVENTIONS, vanilla[name], distinct[name]), *[None] * len(INTERVENTIONS)))
            )
    return replace(table, rows=(*others, *rows), notes=(note, *table.notes))


def _by_sample(sheets: Sheets, run: str, at: int | None = None) -> tuple[Counts, Clusters]:
    """Return the counts of each sample that is asked, of one condition or of all, and the samples' clusters."""
    counts, cluster = sheets.by_example(run, _GRID)
    counts = counts if at is None else counts[:, at]
    asked = counts.reshape(len(counts), -1).any(1)
    return counts[asked], Clusters.of(cluster[asked])


def _gains(
    columns: Mapping[str, TaskMean], before: Counts, after: Counts, clusters: Clusters, distinct: float
) -> tuple[Estimate, ...]:
    """Return the means of ``after`` minus those of ``before``: counts of samples that are answered in both."""
    return tuple(_gain(mean, before, after, clusters, distinct) for mean in columns.values())


def _gain(mean: TaskMean, before: Counts, after: Counts, clusters: Clusters, distinct: float) -> Estimate:
    if not before.any():
        return Estimate(None, reason="this run was not asked under vanilla")
    tasks = [TASK_KEYS.index(task) for task in mean.needs]
    answers = answered(after)[:, tasks]
    n = int(answers.sum())
    if reason := _why_undefined(mean, after.sum(0)):
        return Estimate(None, n=n, reason=reason)
    changes = after[:, tasks, _RIGHT] - before[:, tasks, _RIGHT]
    weights = distinct * n / len(tasks) / answers.sum(0)  # so that all tasks have the same total weight
    parts = (changes.clip(0), (-changes).clip(0), answers)
    gains, losses, sizes = (clusters.sums((part * weights).sum(-1)) for part in parts)
    difference = share_difference(gains, losses, sizes)
    assert difference is not None
    value = float(mean(accuracy(after.sum(0))) - mean(accuracy(before.sum(0))))
    return replace(difference.estimate, value=value, n=n)


def _interleaved(runs: Runs) -> Table:
    rows: list[_Row] = []
    for run, answers in runs.items():
        counts = answers.count(lambda kind: kind.reading.stages)
        if counts:
            first = {stages: size for stages, size in counts.items() if stages.first}
            drawn_count = sum(size for stages, size in first.items() if stages.is_drawn)
            rows.append(
                (
                    run,
                    (
                        counts.total(),
                        sum(first.values()),
                        sum(size for stages, size in first.items() if stages.second),
                        drawn_count,
                        sum(first.values()) - drawn_count,
                        sum(size * stages.unmatched for stages, size in first.items()),
                    ),
                )
            )
    notes = (
        "Whether stage 1 named boxes of its sample, by label or by coordinates; where it named none, stage 2 shows the frames "
        "without boxes. `rashomon show RUN --sample ID` says which.",
    )
    columns = (
        "asked",
        "stage 1 answered",
        "stage 2 answered",
        "highlighted",
        "nothing to highlight",
        "boxes unmatched",
    )
    return Table("interleaved", "What MM-CoT could highlight", columns, tuple(rows), notes, judges=())


def _exact_match(sheets: Sheets) -> Table:
    """Return exact match of closed questions in both readings, regardless of the judge."""
    rows: list[_Row] = []
    for run in sheets.runs:
        counts = {rule: _counts(sheets, run, grid) for rule, grid in _EXACT.items()}
        for at in _asked(counts["printed"]):
            for rule, by_rule in counts.items():
                distinct = sheets.sheet(run, _EXACT[rule]).distinct
                tasks = _cells({key: MAIN[key] for key in TASK_KEYS}, by_rule[:, at], distinct)
                rows.append((f"{_row_label(run, at)} / {rule}", (_pooled(by_rule[:, at], distinct), *tasks)))
    note = (
        "printed: the whole reply is the answer (Appendix D). extracted: its final answer is, wherever it stands. Closed "
        "questions alone; All: over all of them together. An empty answer is incorrect."
    )
    title, columns = "Exact match in two readings", ("All", *TASK_KEYS)
    return sheets.finish("exact-match", title, columns, rows, note, INTERVALS, percent=True, judges=())


def _is_closed(kind: AnswerKind) -> bool:
    return kind.strata.get("form") != "open"


def _pooled(counts: Counts, distinct: float) -> Estimate:
    right, answers = counts[..., _RIGHT].sum(-1), answered(counts).sum(-1)
    share = wilson_repeated(right, answers, distinct)
    return share if share.n else Estimate(None, reason="no closed question is answered")


def _open_note(runs: Runs, judge: str) -> list[str]:
    """Return the note that open questions are matched exactly, if the judge is one that matches."""
    n = {run: answers.count(_is_closed)[False] for run, answers in runs.items()}
    matches = judge.partition("@")[0] in ("extracted", "printed")
    return [_OPEN.format(n=count_text)] if matches and (count_text := counts_by_run(n)) else []
