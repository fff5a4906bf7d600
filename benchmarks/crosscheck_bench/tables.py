"""The tables of the paper, and those that show what it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Cell, Estimate, Outcome, Record, Table
from benchmarks.crosscheck_bench.constants import CAPABILITIES, CONDITIONS
from benchmarks.crosscheck_bench.counts import CrossCheckCounts, tally
from benchmarks.crosscheck_bench.exact_match import Labelled, by_final_answer, by_whole_reply
from benchmarks.crosscheck_bench.metrics import (
    ALONE,
    BY_CAPABILITY,
    BY_LEVEL,
    COMPOSITION,
    INTERVENTIONS,
    KEYS,
    MAIN,
    TaskMean,
    accuracy,
)
from benchmarks.crosscheck_bench.protocol import grounding
from benchmarks.failure_table import OUTCOMES, by_judge, by_run, failures_table
from benchmarks.stats.intervals import difference_of, mean_of_shares, wilson
from benchmarks.stats.paired_tests import share_difference
from benchmarks.text.answer_text import outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Runs = Mapping[str, Sequence[Record]]
Tallies = Mapping[str, CrossCheckCounts]
_Row = tuple[str, tuple[Cell, ...]]

_VANILLA = CONDITIONS.index("vanilla")
_LEFT_OUT = {"judge-failed": "not labelled by the judge", "error": "in error", "pending": "pending"}
_INTERVALS = (
    "Intervals: 95%, Wilson's score interval; of a mean over tasks with as many answers as would vary as much in one sample, "
    "so that a task of few answers makes it wide."
)
_GAINS = "Intervals of gains: over paired samples, weighted so that tasks count alike (Bonett and Price 2012)."
_UNWEIGHTED = "Means are unweighted over tasks; where a task is missing they are n/a."
_OPEN = (
    "Open questions ({n}) are matched exactly here; the paper has a model compare their meaning. "
    "`rashomon judge RUN --judge MODEL` does that."
)
_ENTERS = "Labelled and unparsed answers enter the other tables, unparsed ones (empty, or nothing but reasoning) as INCORRECT."


def tables(runs: Runs, judge: str) -> list[Table]:
    """Every table that the records fill: main, levels, capabilities, composition, exact-match, failures; interventions and
    interleaved where more was asked than Table 1 needs.

    Rows are a run under one strategy; "vanilla" goes without saying.
    """
    sheet = _Sheet({run: tally(records, by_judge(judge)) for run, records in runs.items()})
    notes = (_INTERVALS, _UNWEIGHTED, *_open(runs, judge), *sheet.missing())
    main = [*sheet.rows(MAIN)]
    levels = [*sheet.rows(BY_LEVEL)]
    composition = [*sheet.rows(COMPOSITION)]
    capabilities = [*sheet.rows(BY_CAPABILITY), *sheet.rows(ALONE, " / the task that needs nothing else")]
    named = ", ".join(f"{key} {name}" for key, name in CAPABILITIES.items())
    made = [
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
        _interventions(sheet, notes),
        _interleaved(runs),
        _exact_match(runs),
        failures_table(runs, judge, CONDITIONS, enters=_ENTERS),
    ]
    return [table for table in made if table.rows or table.name in ("main", "failures")]


class _Sheet:
    """The runs as one judge labels them, and rows of figures about them."""

    def __init__(self, tallies: Tallies) -> None:
        self.tallies = tallies

    def rows(self, columns: Mapping[str, TaskMean], suffix: str = "") -> Iterable[_Row]:
        """A row for each run and strategy."""
        for run, found in self.tallies.items():
            for condition in found.conditions:
                at = CONDITIONS.index(condition)
                cells = (_cell(mean, found.asked, found.counts.sum(0), at) for mean in columns.values())
                yield f"{_label(run, condition)}{suffix}", tuple(cells)

    def missing(self) -> list[str]:
        """Notes on what is counted as incorrect without a label, and on what is left out; for each run its own numbers."""
        lost = {
            run: dict(zip(OUTCOMES, found.outcomes.sum(0).tolist(), strict=True)) for run, found in self.tallies.items()
        }

        def numbers(outcome: str) -> str:
            return by_run({run: counts[outcome] for run, counts in lost.items()})

        notes = [f"Counted as incorrect: empty answers ({told})."] if (told := numbers("unparsed")) else []
        left = [f"{words} ({told})" for outcome, words in _LEFT_OUT.items() if (told := numbers(outcome))]
        return [*notes, f"Left out: {', '.join(left)}."] if left else notes


def _label(run: str, condition: str) -> str:
    return run if condition == "vanilla" else f"{run} / {condition}"


def _cell(mean: TaskMean, asked: NDArray[np.bool_], totals: NDArray[np.int64], at: int) -> Estimate:
    right, answers = (dict(zip(KEYS, totals[at, :, i].tolist(), strict=True)) for i in range(2))
    if reason := _why(mean, np.logical_or.reduce(asked[:, at]).tolist(), totals[at, :, 1]):
        return Estimate(None, n=sum(answers[task] for task in mean.needs), reason=reason)
    whole = mean_of_shares([right[task] for task in mean.tasks], [answers[task] for task in mean.tasks])
    if mean.less:
        whole = difference_of(whole, wilson(right[mean.less], answers[mean.less]))
    return replace(whole, value=float(mean(accuracy(totals.astype(float))[at])))


def _why(mean: TaskMean, asked: Sequence[bool], answers: NDArray[np.int64]) -> str:
    """Why a mean is undefined; empty where it is not."""
    if not mean.tasks:
        return "no task needs it alone"
    unasked = [task for task in mean.needs if not asked[KEYS.index(task)]]
    if unasked:
        return f"nothing was asked of {', '.join(unasked)}"
    empty = [task for task in mean.needs if not answers[KEYS.index(task)]]
    return f"no answer of {', '.join(empty)} is labelled" if empty else ""


def _interventions(sheet: _Sheet, notes: Sequence[str]) -> Table:
    """Table 3: strategies side by side, over the samples that have an answer under each of a run's, and gains over vanilla."""
    rows: list[_Row] = []
    told: list[str] = []
    gains = tuple(f"{name} gain" for name in INTERVENTIONS)
    shown = any(found.conditions not in ((), ("vanilla",)) for found in sheet.tallies.values())
    for run, found in sheet.tallies.items() if shown else ():
        whole = found.complete()
        counts, asked = found.counts[whole], found.asked[whole]
        told.append(f"{run}: {int(whole.sum()):,} of {len(whole):,} samples are answered under all of its strategies.")
        for condition in found.conditions:
            at = CONDITIONS.index(condition)
            cells = [_cell(mean, asked, counts.sum(0), at) for mean in INTERVENTIONS.values()]
            gained = (
                [_gain(mean, asked, counts, at) for mean in INTERVENTIONS.values()]
                if condition != "vanilla"
                else [None] * len(gains)
            )
            rows.append((f"{run} / {condition}", (*cells, *gained)))
    paired = (
        "Each run over the samples that are answered under all of its strategies; a gain is over the run's vanilla."
    )
    return Table(
        "interventions",
        "Prompting strategies on three capabilities (Table 3)",
        (*INTERVENTIONS, *gains),
        tuple(rows),
        (paired, _GAINS, *told, *notes),
        percent=True,
    )


def _gain(mean: TaskMean, asked: NDArray[np.bool_], counts: NDArray[np.int64], at: int) -> Estimate:
    """The mean under a strategy less that under vanilla; ``counts`` are of samples that are answered under both."""
    if not asked[:, _VANILLA].any():
        return Estimate(None, reason="this run was not asked under vanilla")
    totals, tasks = counts.sum(0), [KEYS.index(task) for task in mean.needs]
    n = int(totals[at, tasks, 1].sum())
    if reason := _why(mean, np.logical_or.reduce(asked[:, at]).tolist(), totals[at, :, 1]):
        return Estimate(None, n=n, reason=reason)
    # A sample weighs as much as makes its task's samples together weigh what those of any other task do.
    weights = (counts[:, at, tasks, 1] * (n / len(tasks) / totals[at, tasks, 1])).sum(-1)
    gains = (counts[:, at, tasks, 0] - counts[:, _VANILLA, tasks, 0]).sum(-1) * weights
    difference = share_difference(gains[weights > 0], weights[weights > 0])
    assert difference is not None
    every = accuracy(totals.astype(float))
    low, high = difference.interval()
    return Estimate(float(mean(every[at]) - mean(every[_VANILLA])), low, high, n)


def _interleaved(runs: Runs) -> Table:
    rows: list[_Row] = []
    for run, records in runs.items():
        asked = [record for record in records if record.instance.condition == "mm-cot"]
        first = [r for r in asked if r.generations and r.generations[0].finish_reason != "error"]
        found = [grounding(record.instance, record.generations[0].text) for record in first]
        if asked:
            answered = sum(len(r.generations) > 1 and r.generations[1].finish_reason != "error" for r in first)
            drawn = sum(bool(each.drawn) for each in found)
            unmatched = sum(len(each.unmatched) for each in found)
            rows.append((run, (len(asked), len(first), answered, drawn, len(found) - drawn, unmatched)))
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
    """Exact match of closed questions in both readings, whoever judges."""
    rows: list[_Row] = []
    rules: Mapping[str, Callable[[Record], Labelled]] = {"printed": by_whole_reply, "extracted": by_final_answer}
    for run, records in runs.items():
        closed = [record for record in records if record.instance.strata.get("form") != "open"]
        read = {name: tally(closed, _matched(rule)) for name, rule in rules.items()}
        for condition in read["printed"].conditions if closed else ():
            at = CONDITIONS.index(condition)
            for name, found in read.items():
                totals = found.counts.sum(0)
                tasks = (_cell(MAIN[key], found.asked, totals, at) for key in KEYS)
                rows.append((f"{_label(run, condition)} / {name}", (_pooled(totals, at), *tasks)))
    notes = (
        "printed: the whole reply is the answer (Appendix D). extracted: its final answer is, wherever it stands. Closed "
        "questions alone; All: over all of them together. An empty answer is incorrect.",
        _INTERVALS,
    )
    return Table(
        "exact-match", "Exact match in two readings", ("All", *KEYS), tuple(rows), notes, percent=True, judges=()
    )


def _matched(rule: Callable[[Record], Labelled]) -> Callable[[Record], tuple[Outcome, bool]]:
    def read(record: Record) -> tuple[Outcome, bool]:
        found = outcome(record)
        return found, found == "labelled" and rule(record)[0] == "CORRECT"

    return read


def _pooled(totals: NDArray[np.int64], at: int) -> Estimate:
    right, answers = totals[at].sum(0).tolist()
    return wilson(right, answers) if answers else Estimate(None, reason="no closed question is answered")


def _open(runs: Runs, judge: str) -> list[str]:
    """That open questions are matched, where a judge that matches is asked."""
    n = {run: sum(r.instance.strata.get("form") == "open" for r in records) for run, records in runs.items()}
    matches = judge.partition("@")[0] in ("extracted", "printed")
    return [_OPEN.format(n=told)] if matches and (told := by_run(n)) else []
