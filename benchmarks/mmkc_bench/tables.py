"""The tables of the paper, beside the figures of the published evaluation, and what they leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Estimate, Record, Table
from benchmarks.failure_table import failures_table
from benchmarks.mmkc_bench import metrics
from benchmarks.mmkc_bench.constants import CONDITIONS, CONFLICT, DATASETS, DETECTION, FACTS, RATES
from benchmarks.mmkc_bench.counts import KINDS, LEFT_OUT, MMKCCounts, by_judge, left_out, officially, per_thing
from benchmarks.stats.intervals import estimate, resample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["DETECTION_COLUMNS", "tables"]

Runs = Mapping[str, Sequence[Record]]
_Row = tuple[str, tuple[Estimate, ...]]

_DEFAULT = "own-answer"
_SETTINGS = {"context-memory": "Context-Memory", "inter-context": "Inter-Context"}

DETECTION_COLUMNS = (
    *(f"{dataset} {what}" for dataset in DATASETS for what in ("Non-Conflict", "Conflict", "Avg.")),
    "Coarse Avg.",
    *(f"Fine EK {what}" for what in ("Non-Conflict", "Conflict", "Avg.")),
)
"""Table 4's columns, coarse detection first."""

_NOTE_RATES = (
    "Shares of the answers that can be compared with the model's own answer without conflict. EK: unweighted mean of its six "
    "sub-types. Avg.: weighted by the paper's 757, 669 and 147 instances."
)
_NOTE_FACTS = (
    "PT, PL, PC: a person's birth, nationality, occupation. LT, LC, LO: a brand's founding, founder, products."
)
_NOTE_OFFICIAL = (
    "Rows marked (official): as the published evaluation counts. It takes the first A to D in any word for the letter, and "
    "compares every answer without conflict with the last answer under conflict to a row of that name."
)
_NOTE_SPREAD = "Intervals: 95% percentiles of the bootstrap over entities, whose facts stay together."
_NOTE_DETECTION = (
    "Accuracy; an answer that says neither yes nor no is wrong. EK: unweighted mean of its sub-types. Coarse Avg.: weighted by "
    "757, 669 and 147."
)


@dataclass(frozen=True)
class _Reading:
    """A run's answers as somebody counts them: what its rows are called, by whom, and the answers."""

    row: str
    judge: str | None
    found: Sequence[MMKCCounts]


def tables(runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Every table that the records fill: main, open, detection, subtypes-open, subtypes-mc, left-out, failures.

    Figures rest on the labels of ``judge`` where it has looked at any of the answers in question, else on those of
    ``own-answer``. Multiple choice is shown by the published evaluation too, which needs no judge.
    """
    choices: list[_Reading] = []
    opens: list[_Reading] = []
    asked: list[_Reading] = []
    for label, records in runs.items():
        for part, of in zip(_PARTS, (choices, opens, asked), strict=True):
            if any(record.instance.condition in part for record in records):
                by = _whose(records, judge, part)
                of.append(_Reading(label, by, [one for one in by_judge(records, by) if one.condition in part]))
                if of is choices:
                    of.append(_Reading(f"{label} (official)", None, list(officially(records))))

    def rates(name: str, title: str, form: str, of: Sequence[_Reading], columns: Sequence[str], how: _Columns) -> Table:
        rows = [row for each in of for row in _rates(each, form, how, resamples, seed)]
        notes = (
            _NOTE_RATES if len(columns) == 4 else _NOTE_FACTS,
            *([_NOTE_OFFICIAL] if form == "mc" else []),
            _NOTE_SPREAD,
            *_left_out_notes(of, [f"{setting}-{form}" for setting in _SETTINGS]),
        )
        return Table(name, title, tuple(columns), tuple(rows), notes, judges=_judges(of, judge), chart="turned")

    facts = tuple(FACTS)
    made = [
        rates("main", "Multiple choice (Table 2)", "mc", choices, _MAIN, metrics.main_columns),
        rates("open", "Open questions (Table 3)", "open", opens, _MAIN, metrics.main_columns),
        _detection(asked, judge, resamples, seed),
        rates(
            "subtypes-open", "Entity knowledge, open questions (Table 5)", "open", opens, facts, metrics.fact_columns
        ),
        rates("subtypes-mc", "Entity knowledge, multiple choice (Table 6)", "mc", choices, facts, metrics.fact_columns),
        _left_out([*choices, *opens], judge),
        failures_table(runs, judge, CONDITIONS, whose=lambda run, condition: _whose(runs[run], judge, (condition,))),
    ]
    return [table for table in made if table.rows or table.name in ("main", "failures")]


_MAIN = (*DATASETS, "Avg.")
_PARTS = (
    tuple(condition for condition in CONFLICT if condition.endswith("-mc")),
    tuple(condition for condition in CONFLICT if condition.endswith("-open")),
    DETECTION,
)
_Columns = Callable[["Array", int], "Array"]


def _rates(of: _Reading, form: str, how: _Columns, resamples: int, seed: int) -> list[_Row]:
    conditions = [f"{setting}-{form}" for setting in _SETTINGS]
    counts = per_thing(of.found, conditions, KINDS)
    totals, draws = counts.sum(0), resample(counts, resamples, seed)
    rows = []
    for place, (condition, setting) in enumerate(zip(conditions, _SETTINGS.values(), strict=True)):
        if not any(each.condition == condition for each in of.found):
            continue
        answers = totals[place].sum(-1)
        for outcome, rate in enumerate(RATES.values()):
            values, replicates = how(totals[place], outcome), how(draws[:, place], outcome)
            ns, why = _answers(answers, len(values)), _undefined(len(values))
            cells = tuple(
                estimate(float(value), replicates[..., i], ns[i], reason=why[i]) for i, value in enumerate(values)
            )
            rows.append((f"{of.row} / {setting} / {rate}", cells))
    return rows


def _answers(of_types: Array, columns: int) -> list[int]:
    """How many answers each column rests on."""
    er, *facts, vs = (int(count) for count in of_types)
    return facts if columns == len(facts) else [er, sum(facts), vs, er + sum(facts) + vs]


def _undefined(columns: int) -> tuple[str, ...]:
    """Why each column is n/a where it is."""
    none = "no answer that counts"
    if columns == len(FACTS):
        return (none,) * columns
    return none, "a sub-type has no answer that counts", none, "it needs ER, EK and VS"


def _detection(of: Sequence[_Reading], judge: str, resamples: int, seed: int) -> Table:
    rows = []
    for each in of:
        counts = per_thing(each.found, DETECTION, ("CORRECT", "WRONG"))
        values = metrics.detection_columns(counts.sum(0))
        replicates = metrics.detection_columns(resample(counts, resamples, seed))
        ns = metrics.detection_answers(counts.sum(0))
        cells = tuple(
            estimate(float(value), replicates[..., i], int(ns[i]), reason="no answer to some of what it is made of")
            for i, value in enumerate(values)
        )
        rows.append((each.row, cells))
    notes = (_NOTE_DETECTION, _NOTE_SPREAD, *_left_out_notes(of, DETECTION))
    title = "Conflict detection, coarse and fine (Table 4)"
    return Table("detection", title, DETECTION_COLUMNS, tuple(rows), notes, judges=_judges(of, judge))


def _left_out(of: Sequence[_Reading], judge: str) -> Table:
    rows = []
    for each in of:
        for condition in CONFLICT:
            outcomes = Counter(one.outcome for one in each.found if one.condition == condition)
            if outcomes:
                counted = sum(outcomes[kind] for kind in KINDS)
                rows.append((f"{each.row} / {condition}", (counted, *(outcomes[why] for why in LEFT_OUT))))
    note = (
        "Own answer: the model's answer without conflict. Already the counter answer: it is what the evidence says, so that "
        "keeping to it and taking the evidence's cannot be told apart."
    )
    title = "Which answers the rates rest on"
    return Table("left-out", title, ("counted", *LEFT_OUT), tuple(rows), (note,), judges=_judges(of, judge))


def _left_out_notes(of: Sequence[_Reading], conditions: Sequence[str]) -> list[str]:
    notes = []
    for each in of:
        lost = left_out(each.found, conditions)
        if lost:
            told = ", ".join(f"{why} ({lost[why]:,})" for why in LEFT_OUT if lost[why])
            notes.append(f"Left out of {each.row}: {told}.")
    return notes


def _judges(of: Sequence[_Reading], judge: str) -> tuple[str, ...] | None:
    used = tuple(dict.fromkeys(each.judge for each in of if each.judge is not None))
    return None if set(used) <= {judge} else used


def _whose(records: Sequence[Record], judge: str, conditions: Sequence[str]) -> str:
    """``judge``, or the newest ``own-answer`` where it has looked at none of these answers and that one has."""
    ids = {one for record in records if record.instance.condition in conditions for one in record.verdicts}
    own = [one for one in ids if one.rpartition("@")[0] == _DEFAULT]
    return judge if judge in ids or not own else max(own, key=lambda one: (len(one), one))
