"""The tables of the paper, and further ones on points it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.crosscheck_bench.constants import CAPABILITIES, CONDITIONS
from benchmarks.crosscheck_bench.counts import CrossCheckCounts, count_answers
from benchmarks.crosscheck_bench.metrics import (
    BY_CAPABILITY,
    BY_LEVEL,
    COMPOSITION,
    INTERVENTIONS,
    MAIN,
    SHIFT,
    SINGLE_CAPABILITY,
    TASK_KEYS,
    TaskMean,
    accuracy,
)
from benchmarks.failure_table import OUTCOMES, OutcomeReader, counts_by_run, failures_table, outcome_by_judge
from benchmarks.stats.intervals import independent_difference, macro_average, wilson
from benchmarks.stats.paired_tests import share_difference
from benchmarks.vocabulary import Cell, Estimate, Outcome, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

Runs = Mapping[str, Answers]
Tallies = Mapping[str, CrossCheckCounts]
_Row = tuple[str, tuple[Cell, ...]]

_VANILLA = CONDITIONS.index("vanilla")
_EXCLUDED = {
    "undecided": "undecided by the judge",
    "judge-failed": "not labelled by the judge",
    "error": "in error",
    "pending": "pending",
}
_INTERVALS = (
    "Intervals: 95%, Wilson's score interval; for a mean over tasks, with the effective number of answers, so that a task "
    "with few answers widens it."
)
_GAINS = "Intervals of gains: over paired samples, weighted so that tasks count alike (Bonett and Price 2012)."
_VRC = (
    'The paper names the other axis "VRC scores" and "reasoning alignment" (Figure 7), and gives neither a definition nor a '
    "value, so VRC is n/a. The table `interleaved` counts how often the reasoning named a region."
)
_UNWEIGHTED = "Means are unweighted over tasks; a mean with a missing task is n/a."
_OPEN = (
    "Open questions ({n}) are matched exactly here; the paper has a model compare their meaning. "
    "`rashomon judge RUN --judge MODEL` does that."
)
_ENTERS = "Labelled and unparsed answers enter the other tables, unparsed ones (empty, or nothing but reasoning) as INCORRECT."


def tables(runs: Runs, judge: str) -> list[Table]:
    """Return every table that the answers can fill.

    These are main, levels, capabilities, composition, exact-match and failures, and also interventions, shift and
    interleaved if the runs cover more than Table 1 needs. A row is a run under one strategy; "vanilla" is not spelled out.
    """
    sheet = _Sheet({run: count_answers(answers, outcome_by_judge(judge)) for run, answers in runs.items()})
    notes = (_INTERVALS, _UNWEIGHTED, *_open_note(runs, judge), *sheet.missing())
    main = [*sheet.rows(MAIN)]
    levels = [*sheet.rows(BY_LEVEL)]
    composition = [*sheet.rows(COMPOSITION)]
    capabilities = [*sheet.rows(BY_CAPABILITY), *sheet.rows(SINGLE_CAPABILITY, " / the task that needs nothing else")]
    named = ", ".join(f"{key} {name}" for key, name in CAPABILITIES.items())
    all_tables = [
        Table("main", "Accuracy by task (Table 1)", tuple(MAIN), tuple(main), notes, percent=True),
        Table("levels", "Accuracy by level", tuple(BY_LEVEL), tuple(levels), notes, percent=True, chart="bars"),
        Table(
            "capabilities",
            "Accuracy by capability, over the tasks that need it (Figure 5)",
            tuple(BY_CAPABILITY),
            tuple(capabilities),
            (f"{named}.", *notes),
            percent=True,
            chart="heat",
        ),
        Table(
            "composition",
            "Atomic against compositional tasks (Table 2)",
            tuple(COMPOSITION),
            tuple(composition),
            ("A drop is the atomic task's accuracy less the compositional one's.", *notes),
            percent=True,
        ),
        _with_fine_tuned(
            sheet,
            runs,
            _strategies(
                sheet, "interventions", "Prompting strategies on three capabilities (Table 3)", INTERVENTIONS, notes
            ),
        ),
        _with_vrc(_strategies(sheet, "shift", "Prompting strategies, overall and on A5-A7 (Figure 7)", SHIFT, notes)),
        _interleaved(runs),
        _exact_match(runs),
        failures_table(runs, judge, CONDITIONS, scope_note=_ENTERS),
    ]
    return [table for table in all_tables if table.rows or table.name in ("main", "failures")]


class _Sheet:
    """The counts of each run under one judge, and the table rows computed from them."""

    def __init__(self, tallies: Tallies) -> None:
        self.tallies = tallies

    def rows(self, columns: Mapping[str, TaskMean], suffix: str = "") -> Iterable[_Row]:
        """Yield a row for each run and strategy."""
        for run, counts in self.tallies.items():
            for condition in counts.conditions:
                at = CONDITIONS.index(condition)
                cells = (_cell(mean, counts.present, counts.counts.sum(0), at) for mean in columns.values())
                yield f"{_row_label(run, condition)}{suffix}", tuple(cells)

    def missing(self) -> list[str]:
        """Return notes on answers counted as incorrect without a label and on excluded answers, with each run's numbers."""
        outcomes = {
            run: dict(zip(OUTCOMES, counts.outcomes.sum(0).tolist(), strict=True))
            for run, counts in self.tallies.items()
        }

        def numbers(outcome: str) -> str:
            return counts_by_run({run: by_outcome[outcome] for run, by_outcome in outcomes.items()})

        notes = [f"Counted as incorrect: empty answers ({count_text})."] if (count_text := numbers("unparsed")) else []
        excluded = [
            f"{words} ({count_text})" for outcome, words in _EXCLUDED.items() if (count_text := numbers(outcome))
        ]
        return [*notes, f"Left out: {', '.join(excluded)}."] if excluded else notes


def _row_label(run: str, condition: str) -> str:
    return run if condition == "vanilla" else f"{run} / {condition}"


def _cell(mean: TaskMean, is_prompted: NDArray[np.bool_], totals: NDArray[np.int64], column: int) -> Estimate:
    right_counts, answers = (dict(zip(TASK_KEYS, totals[column, :, i].tolist(), strict=True)) for i in range(2))
    if reason := _undefined_reason(mean, np.logical_or.reduce(is_prompted[:, column]).tolist(), totals[column, :, 1]):
        return Estimate(None, n=sum(answers[task] for task in mean.needs), reason=reason)
    estimate = macro_average([right_counts[task] for task in mean.tasks], [answers[task] for task in mean.tasks])
    if mean.less:
        estimate = independent_difference(estimate, wilson(right_counts[mean.less], answers[mean.less]))
    return replace(estimate, value=float(mean(accuracy(totals.astype(float))[column])))


def _undefined_reason(mean: TaskMean, is_prompted: Sequence[bool], answers: NDArray[np.int64]) -> str:
    """Return why a mean is undefined, or "" if it is defined."""
    if not mean.tasks:
        return "no task needs it alone"
    unasked = [task for task in mean.needs if not is_prompted[TASK_KEYS.index(task)]]
    if unasked:
        return f"nothing was asked of {', '.join(unasked)}"
    empty = [task for task in mean.needs if not answers[TASK_KEYS.index(task)]]
    return f"no answer of {', '.join(empty)} is labelled" if empty else ""


def _strategies(sheet: _Sheet, name: str, title: str, metrics: Mapping[str, TaskMean], notes: Sequence[str]) -> Table:
    """Return the strategies side by side, with gains over vanilla, on samples answered under all strategies of a run."""
    rows: list[_Row] = []
    coverage: list[str] = []
    gains = tuple(f"{metric} gain" for metric in metrics)
    has_strategies = any(run_counts.conditions not in ((), ("vanilla",)) for run_counts in sheet.tallies.values())
    for run, run_counts in sheet.tallies.items() if has_strategies else ():
        complete = run_counts.complete()
        counts, is_prompted = run_counts.counts[complete], run_counts.present[complete]
        coverage.append(
            f"{run}: {int(complete.sum()):,} of {len(complete):,} samples are answered under all of its strategies."
        )
        for condition in run_counts.conditions:
            at = CONDITIONS.index(condition)
            cells = [_cell(mean, is_prompted, counts.sum(0), at) for mean in metrics.values()]
            gained = (
                [_gain(mean, is_prompted, counts, at) for mean in metrics.values()]
                if condition != "vanilla"
                else [None] * len(gains)
            )
            rows.append((f"{run} / {condition}", (*cells, *gained)))
    paired = (
        "Each run over the samples that are answered under all of its strategies; a gain is over the run's vanilla."
    )
    return Table(
        name,
        title,
        (*metrics, *gains),
        tuple(rows),
        (paired, _GAINS, *coverage, *notes),
        percent=True,
    )


def _with_vrc(table: Table) -> Table:
    """Return the table with Figure 7's VRC score, which is undefined, beside its metrics; the figure shows the metrics."""
    vrc = Estimate(None, reason="the paper does not define VRC")
    rows = tuple((name, (*cells, vrc)) for name, cells in table.rows)
    columns = (*table.columns, "VRC")
    return replace(table, columns=columns, rows=rows, notes=(_VRC, *table.notes), chart="bars", drawn=tuple(SHIFT))


def _with_fine_tuned(sheet: _Sheet, runs: Runs, table: Table) -> Table:
    """Return Table 3 with a row for each fine-tuned run, as the paper's CSFT, with its gains over its base under vanilla."""
    rows = []
    for run, answers in runs.items():
        if not answers.base or "vanilla" not in sheet.tallies[run].conditions:
            continue
        tuned, base = sheet.tallies[run], sheet.tallies[answers.base]
        cells = [_cell(mean, tuned.present, tuned.counts.sum(0), _VANILLA) for mean in INTERVENTIONS.values()]
        reason = "the two runs do not have the same samples"
        gains = [Estimate(None, reason=reason)] * len(cells)
        if base.counts.shape == tuned.counts.shape and (base.present[:, _VANILLA] == tuned.present[:, _VANILLA]).all():
            both = np.stack([base.counts[:, _VANILLA], tuned.counts[:, _VANILLA]], axis=1)
            present = np.stack([base.present[:, _VANILLA], tuned.present[:, _VANILLA]], axis=1)
            shared = (both[..., 1].sum(-1) > 0).all(-1)
            gains = [_gain(mean, present[shared], both[shared], 1) for mean in INTERVENTIONS.values()]
        rows.append((f"{run} / CSFT", (*cells, *gains)))
    if not rows:
        return table
    note = "CSFT: a fine-tuned run under vanilla; its gains are over its base's vanilla, on the samples that both answered."
    labels = {label.removesuffix("/ CSFT") for label, _ in rows}
    others = [row for row in table.rows if row[0].removesuffix("/ vanilla") not in labels]
    for name in dict.fromkeys(answers.base for answers in runs.values() if answers.base):
        label = f"{name} / vanilla"
        if label not in [row for row, _ in others]:
            counts = sheet.tallies[name]
            cells = [_cell(mean, counts.present, counts.counts.sum(0), _VANILLA) for mean in INTERVENTIONS.values()]
            others.append((label, (*cells, *[None] * len(cells))))
    return replace(table, rows=(*others, *rows), notes=(note, *table.notes))


def _gain(mean: TaskMean, is_prompted: NDArray[np.bool_], counts: NDArray[np.int64], column: int) -> Estimate:
    """Return the mean under a strategy minus that under vanilla; ``counts`` cover samples answered under both."""
    if not is_prompted[:, _VANILLA].any():
        return Estimate(None, reason="this run was not asked under vanilla")
    totals, tasks = counts.sum(0), [TASK_KEYS.index(task) for task in mean.needs]
    n = int(totals[column, tasks, 1].sum())
    if reason := _undefined_reason(mean, np.logical_or.reduce(is_prompted[:, column]).tolist(), totals[column, :, 1]):
        return Estimate(None, n=n, reason=reason)
    # Weight the samples so that all tasks have the same total weight.
    weights = (counts[:, column, tasks, 1] * (n / len(tasks) / totals[column, tasks, 1])).sum(-1)
    gains = (counts[:, column, tasks, 0] - counts[:, _VANILLA, tasks, 0]).sum(-1) * weights
    difference = share_difference(gains[weights > 0], weights[weights > 0])
    assert difference is not None
    accuracies = accuracy(totals.astype(float))
    low, high = difference.interval()
    return Estimate(float(mean(accuracies[column]) - mean(accuracies[_VANILLA])), low, high, n)


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


def _exact_match(runs: Runs) -> Table:
    """Return exact match of closed questions in both readings, regardless of the judge."""
    rows: list[_Row] = []
    for run, answers in runs.items():
        rule_counts = {name: count_answers(answers, _by_rule(name), _is_closed) for name in ("printed", "extracted")}
        for condition in rule_counts["printed"].conditions:
            at = CONDITIONS.index(condition)
            for name, counts in rule_counts.items():
                totals = counts.counts.sum(0)
                tasks = (_cell(MAIN[key], counts.present, totals, at) for key in TASK_KEYS)
                rows.append((f"{_row_label(run, condition)} / {name}", (_pooled(totals, at), *tasks)))
    notes = (
        "printed: the whole reply is the answer (Appendix D). extracted: its final answer is, wherever it stands. Closed "
        "questions alone; All: over all of them together. An empty answer is incorrect.",
        _INTERVALS,
    )
    return Table(
        "exact-match", "Exact match in two readings", ("All", *TASK_KEYS), tuple(rows), notes, percent=True, judges=()
    )


def _by_rule(name: str) -> OutcomeReader:
    def read(kind: AnswerKind) -> tuple[Outcome, bool]:
        return kind.text_outcome, getattr(kind.reading, name)

    return read


def _is_closed(kind: AnswerKind) -> bool:
    return kind.strata.get("form") != "open"


def _pooled(totals: NDArray[np.int64], at: int) -> Estimate:
    right_count, answers = totals[at].sum(0).tolist()
    return wilson(right_count, answers) if answers else Estimate(None, reason="no closed question is answered")


def _open_note(runs: Runs, judge: str) -> list[str]:
    """Return the note that open questions are matched exactly, if the judge is one that matches."""
    n = {run: answers.count(_is_closed)[False] for run, answers in runs.items()}
    matches = judge.partition("@")[0] in ("extracted", "printed")
    return [_OPEN.format(n=count_text)] if matches and (count_text := counts_by_run(n)) else []
