"""The tables of the paper, next to the metrics of the published evaluation, and the excluded answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import Answers
from benchmarks.failure_table import failures_table
from benchmarks.mmkc_bench import metrics
from benchmarks.mmkc_bench.constants import (
    CONDITIONS,
    CONFLICT_CONDITIONS,
    DATASETS,
    DETECTION_CONDITIONS,
    FACT_TYPES,
    RATES,
)
from benchmarks.mmkc_bench.counts import (
    CONFLICT_LABELS,
    EXCLUSION_REASONS,
    CountedAnswer,
    count_by_judge,
    count_exclusions,
    count_officially,
    entity_counts,
)
from benchmarks.stats.intervals import estimate, resample
from benchmarks.vocabulary import Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["DETECTION_COLUMNS", "tables"]

Runs = Mapping[str, Answers]
_Row = tuple[str, tuple[Estimate, ...]]

_DEFAULT = "own-answer"
_SETTINGS = {"context-memory": "Context-Memory", "inter-context": "Inter-Context"}

DETECTION_COLUMNS = (
    *(f"{dataset} {what}" for dataset in DATASETS for what in ("Non-Conflict", "Conflict", "Avg.")),
    "Coarse Avg.",
    *(f"Fine EK {what}" for what in ("Non-Conflict", "Conflict", "Avg.")),
)
"""The columns of Table 4, coarse detection first."""

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
_NOTE_SPREAD = "Intervals: 95%, percentile bootstrap over entities, each with all its facts."
_NOTE_DETECTION = (
    "Accuracy; an answer that says neither yes nor no is wrong. EK: unweighted mean of its sub-types. Coarse Avg.: weighted by "
    "757, 669 and 147."
)


@dataclass(frozen=True)
class _Reading:
    """A run's answers under one way of counting: the row's label, the judge (None for the published evaluation), the answers."""

    row: str
    judge: str | None
    answers: Sequence[CountedAnswer]


def tables(runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill: main, open, detection, subtypes-open, subtypes-mc, left-out, failures.

    A table uses the labels of ``judge`` if it has judged any of the answers in question, otherwise those of
    ``own-answer``. Multiple choice is also counted by the published evaluation, which needs no judge.
    """
    choices: list[_Reading] = []
    opens: list[_Reading] = []
    detections: list[_Reading] = []
    for label, run in runs.items():
        present = run.count(lambda kind: kind.condition)
        for part, of in zip(_PARTS, (choices, opens, detections), strict=True):
            if not present.keys().isdisjoint(part):
                by = _judge_for(run, judge, part)
                of.append(
                    _Reading(label, by, [answer for answer in count_by_judge(run, by) if answer.condition in part])
                )
                if of is choices:
                    of.append(_Reading(f"{label} (official)", None, list(count_officially(run))))

    def rates(
        name: str, title: str, form: str, of: Sequence[_Reading], columns: Sequence[str], compute: _Columns
    ) -> Table:
        rows = [row for reading in of for row in _rates(reading, form, compute, resamples, seed)]
        notes = (
            _NOTE_RATES if len(columns) == 4 else _NOTE_FACTS,
            *([_NOTE_OFFICIAL] if form == "mc" else []),
            _NOTE_SPREAD,
            *_left_out_notes(of, [f"{setting}-{form}" for setting in _SETTINGS]),
        )
        return Table(name, title, tuple(columns), tuple(rows), notes, judges=_judges(of, judge), chart="turned")

    facts = tuple(FACT_TYPES)
    all_tables = [
        rates("main", "Multiple choice (Table 2)", "mc", choices, _MAIN, metrics.main_columns),
        rates("open", "Open questions (Table 3)", "open", opens, _MAIN, metrics.main_columns),
        _detection(detections, judge, resamples, seed),
        rates(
            "subtypes-open", "Entity knowledge, open questions (Table 5)", "open", opens, facts, metrics.fact_columns
        ),
        rates("subtypes-mc", "Entity knowledge, multiple choice (Table 6)", "mc", choices, facts, metrics.fact_columns),
        _left_out_table([*choices, *opens], judge),
        failures_table(
            runs, judge, CONDITIONS, judge_for=lambda run, condition: _judge_for(runs[run], judge, (condition,))
        ),
    ]
    return [table for table in all_tables if table.rows or table.name in ("main", "failures")]


_MAIN = (*DATASETS, "Avg.")
_PARTS = (
    tuple(condition for condition in CONFLICT_CONDITIONS if condition.endswith("-mc")),
    tuple(condition for condition in CONFLICT_CONDITIONS if condition.endswith("-open")),
    DETECTION_CONDITIONS,
)
_Columns = Callable[["Array", int], "Array"]


def _rates(reading: _Reading, form: str, compute: _Columns, resamples: int, seed: int) -> list[_Row]:
    conditions = [f"{setting}-{form}" for setting in _SETTINGS]
    counts = entity_counts(reading.answers, conditions, CONFLICT_LABELS)
    totals, draws = counts.sum(0), resample(counts, resamples, seed)
    rows = []
    for place, (condition, setting) in enumerate(zip(conditions, _SETTINGS.values(), strict=True)):
        if not any(answer.condition == condition for answer in reading.answers):
            continue
        answers = totals[place].sum(-1)
        for outcome, rate in enumerate(RATES.values()):
            values, replicates = compute(totals[place], outcome), compute(draws[:, place], outcome)
            ns, why = _answer_counts(answers, len(values)), _undefined_reasons(len(values))
            cells = tuple(
                estimate(float(value), replicates[..., i], ns[i], reason=why[i]) for i, value in enumerate(values)
            )
            rows.append((f"{reading.row} / {setting} / {rate}", cells))
    return rows


def _answer_counts(of_types: Array, columns: int) -> list[int]:
    """Return the number of answers behind each column."""
    er, *facts, vs = (int(count) for count in of_types)
    return facts if columns == len(facts) else [er, sum(facts), vs, er + sum(facts) + vs]


def _undefined_reasons(columns: int) -> tuple[str, ...]:
    """Return the reason for n/a of each column."""
    none = "no answer that counts"
    if columns == len(FACT_TYPES):
        return (none,) * columns
    return none, "a sub-type has no answer that counts", none, "it needs ER, EK and VS"


def _detection(readings: Sequence[_Reading], judge: str, resamples: int, seed: int) -> Table:
    rows = []
    for reading in readings:
        counts = entity_counts(reading.answers, DETECTION_CONDITIONS, ("CORRECT", "WRONG"))
        values = metrics.detection_columns(counts.sum(0))
        replicates = metrics.detection_columns(resample(counts, resamples, seed))
        ns = metrics.detection_answers(counts.sum(0))
        cells = tuple(
            estimate(float(value), replicates[..., i], int(ns[i]), reason="no answer to some of what it is made of")
            for i, value in enumerate(values)
        )
        rows.append((reading.row, cells))
    notes = (_NOTE_DETECTION, _NOTE_SPREAD, *_left_out_notes(readings, DETECTION_CONDITIONS))
    title = "Conflict detection, coarse and fine (Table 4)"
    return Table("detection", title, DETECTION_COLUMNS, tuple(rows), notes, judges=_judges(readings, judge))


def _left_out_table(readings: Sequence[_Reading], judge: str) -> Table:
    rows = []
    for reading in readings:
        for condition in CONFLICT_CONDITIONS:
            outcomes = Counter(answer.outcome for answer in reading.answers if answer.condition == condition)
            if outcomes:
                conflict_count = sum(outcomes[kind] for kind in CONFLICT_LABELS)
                rows.append(
                    (f"{reading.row} / {condition}", (conflict_count, *(outcomes[why] for why in EXCLUSION_REASONS)))
                )
    note = (
        "Own answer: the model's answer without conflict. Already the counter answer: it is what the evidence says, so that "
        "keeping to it and taking the evidence's cannot be told apart."
    )
    title = "Which answers the rates rest on"
    return Table(
        "left-out", title, ("counted", *EXCLUSION_REASONS), tuple(rows), (note,), judges=_judges(readings, judge)
    )


def _left_out_notes(readings: Sequence[_Reading], conditions: Sequence[str]) -> list[str]:
    notes = []
    for reading in readings:
        exclusions = count_exclusions(reading.answers, conditions)
        if exclusions:
            counts_text = ", ".join(f"{why} ({exclusions[why]:,})" for why in EXCLUSION_REASONS if exclusions[why])
            notes.append(f"Left out of {reading.row}: {counts_text}.")
    return notes


def _judges(readings: Sequence[_Reading], judge: str) -> tuple[str, ...] | None:
    judge_names = tuple(dict.fromkeys(reading.judge for reading in readings if reading.judge is not None))
    return None if set(judge_names) <= {judge} else judge_names


def _judge_for(answers: Answers, judge: str, conditions: Sequence[str]) -> str:
    """Return ``judge``, or the newest ``own-answer`` if only that one has judged any of these answers."""
    ids = {judge_id for kind in answers.kinds if kind.condition in conditions for judge_id in kind.verdicts}
    default_ids = [judge_id for judge_id in ids if judge_id.rpartition("@")[0] == _DEFAULT]
    return (
        judge if judge in ids or not default_ids else max(default_ids, key=lambda judge_id: (len(judge_id), judge_id))
    )
