"""The tables of the paper, next to the metrics of the published evaluation, and the excluded answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.failure_table import failures_table
from benchmarks.mmkc_bench import mmkc_metrics
from benchmarks.mmkc_bench.mmkc_all_types import all_types_table
from benchmarks.mmkc_bench.mmkc_constants import (
    CONDITIONS,
    CONFLICT_CONDITIONS,
    DATASETS,
    DETECTION_CONDITIONS,
    FACT_TYPES,
    RATES,
    ROW_TYPES,
)
from benchmarks.mmkc_bench.mmkc_official_answers import official_answers
from benchmarks.mmkc_bench.mmkc_reading import ALREADY_COUNTER, NO_OWN_ANSWER, OWN_ANSWER_ERROR, OWN_ANSWER_UNPARSED
from benchmarks.stats.intervals import DIFFERENCE, SHARE
from benchmarks.tables.declared_tables import (
    Column,
    Grid,
    Layout,
    Part,
    Sheets,
    answers_where,
    judges_under,
    newest_judge,
    other_judges,
)
from benchmarks.vocabulary import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

    _Metrics = Callable[[NDArray[np.float64]], NDArray[np.float64]]

__all__ = ["DETECTION_COLUMNS", "tables"]

_DEFAULT = "own-answer"
_CHOICES = tuple(condition for condition in CONFLICT_CONDITIONS if condition.endswith("-mc"))
_OPENS = tuple(condition for condition in CONFLICT_CONDITIONS if condition.endswith("-open"))
_SETTINGS = ("Context-Memory", "Inter-Context")
"""The settings of ``_CHOICES`` and ``_OPENS``."""

DETECTION_COLUMNS = (
    *(f"{dataset} {what}" for dataset in DATASETS for what in ("Non-Conflict", "Conflict", "Avg.")),
    "Coarse Avg.",
    *(f"Fine EK {what}" for what in ("Non-Conflict", "Conflict", "Avg.")),
)
"""The columns of Table 4, coarse detection first."""

_REASONS = (
    ALREADY_COUNTER,
    NO_OWN_ANSWER,
    OWN_ANSWER_ERROR,
    OWN_ANSWER_UNPARSED,
    "unparsed",
    "undecided",
    "judge-failed",
    "error",
    "pending",
)
"""The reasons why an answer under conflict is excluded from the rates; each is counted separately."""

_NOTE_RATES = (
    "Shares of the answers that can be compared with the model's own answer without conflict. EK: unweighted mean of its six "
    "sub-types. Avg.: weighted by the paper's 757, 669 and 147 instances."
)
_NOTE_CHANGE = (
    "CAR under inter-context minus CAR under context-memory. Only the former has both false texts, either of which counts. The "
    "paper gives two of these changes, rounded: at most .21 and at least -.02 on average."
)
_NOTE_FACTS = (
    "PT, PL, PC: a person's birth, nationality, occupation. LT, LC, LO: a brand's founding, founder, products."
)
_NOTE_OFFICIAL = (
    "Rows marked (official): as the published evaluation counts. It takes the first A to D in any word for the letter, and "
    "compares every answer without conflict with the last answer under conflict to a row of that name."
)
_NOTE_SPREAD = "Intervals: 95%, over entities, each with all its facts."
_NOTE_DETECTION = (
    "Accuracy; an answer that says neither yes nor no is wrong. EK: unweighted mean of its sub-types. Coarse Avg.: weighted by "
    "757, 669 and 147."
)


def _grid(conditions: Sequence[str], labels: Sequence[str]) -> Grid:
    """Return a grid of conditions, types and labels."""

    def places(kind: AnswerKind, counted: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        row_type = kind.strata.get("type")
        if row_type in ROW_TYPES:
            condition, place = conditions.index(kind.condition), ROW_TYPES.index(row_type)
            yield from ((condition, place, labels.index(label)) for label in counted if label in labels)

    return Grid((len(conditions), len(ROW_TYPES), len(labels)), places)


def _columns(
    of: _Metrics, answers: _Metrics, reasons: Mapping[str, str], within: tuple[float, float] = SHARE
) -> dict[str, Column]:
    """Return a column for each metric, by name: its values, the number of answers behind it, and its reason for n/a."""

    def column(place: int, reason: str) -> Column:
        return Column(
            lambda counts: of(counts)[..., place], lambda totals: answers(totals)[place], lambda totals: reason, within
        )

    return {name: column(place, reason) for place, (name, reason) in enumerate(reasons.items())}


_GRIDS = {conditions: _grid(conditions, tuple(RATES)) for conditions in (_CHOICES, _OPENS)}
_NONE = "no answer that counts"
_MAIN_REASONS = {
    "ER": _NONE,
    "EK": "a sub-type has no answer that counts",
    "VS": _NONE,
    "Avg.": "it needs ER, EK and VS",
}
_MAIN = [
    _columns(partial(mmkc_metrics.main_columns, outcome=outcome), mmkc_metrics.main_answers, _MAIN_REASONS)
    for outcome in range(len(RATES))
]
_FACTS = [
    _columns(
        partial(mmkc_metrics.fact_columns, outcome=outcome), mmkc_metrics.fact_answers, dict.fromkeys(FACT_TYPES, _NONE)
    )
    for outcome in range(len(RATES))
]
"""The columns of Tables 2 and 3, and of Tables 5 and 6, for each of the rates."""

_CHANGE = _columns(mmkc_metrics.change_columns, mmkc_metrics.change_answers, _MAIN_REASONS, DIFFERENCE)
"""The columns of Table 2 for the change of CAR from one false text to two."""

_DETECTION = Layout(
    "detection",
    "Conflict detection, coarse and fine (Table 4)",
    _grid(DETECTION_CONDITIONS, ("CORRECT", "WRONG")),
    _columns(
        mmkc_metrics.detection_columns,
        mmkc_metrics.detection_answers,
        dict.fromkeys(DETECTION_COLUMNS, "no answer to some of what it is made of"),
    ),
    notes=(_NOTE_DETECTION, _NOTE_SPREAD),
)


def tables(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill, the paper's first.

    A table uses the labels of ``judge`` if it has judged any of the answers in question, otherwise those of
    ``own-answer``. Multiple choice is also counted by the published evaluation, which needs no judge.
    """
    base = Sheets(benchmark, runs, judge, resamples, seed)
    choices, opens = base.parts(_choices(base)), base.parts(_parts(base, _OPENS))
    detections = base.parts(_parts(base, DETECTION_CONDITIONS))
    types = all_types_table(runs, (choices, opens, detections))
    all_tables = [
        _rates(choices, "main", "Multiple choice (Table 2)", _CHOICES, _MAIN),
        _rates(opens, "open", "Open questions (Table 3)", _OPENS, _MAIN),
        detections.table(_DETECTION),
        _rates(opens, "subtypes-open", "Entity knowledge, open questions (Table 5)", _OPENS, _FACTS),
        _rates(choices, "subtypes-mc", "Entity knowledge, multiple choice (Table 6)", _CHOICES, _FACTS),
        _change(choices, opens),
        *([] if types is None else [types]),
        _left_out(choices, opens),
        failures_table(
            runs, judge, CONDITIONS, judge_for=lambda run, condition: _judge_for(runs[run], judge, (condition,))
        ),
    ]
    return [table for table in all_tables if table.rows or table.name in ("main", "failures")]


def _parts(base: Sheets, conditions: Sequence[str]) -> dict[str, Part]:
    """Return the answers under some conditions, by run, of the runs that have any."""
    parts = {
        run: Part(
            answers_where(answers, lambda kind: kind.condition in conditions),
            _judge_for(answers, base.judge, conditions),
        )
        for run, answers in base.runs.items()
    }
    return {run: part for run, part in parts.items() if len(part.answers)}


def _choices(base: Sheets) -> dict[str, Part]:
    """Return the answers to a multiple choice, each run's also as the published evaluation counts them."""
    parts = {}
    for run, part in _parts(base, _CHOICES).items():
        parts[run] = part
        parts[f"{run} (official)"] = Part(official_answers(base.runs[run], part.judge), part.judge)
    return parts


def _judge_for(answers: Answers, judge: str, conditions: Sequence[str]) -> str:
    """Return ``judge``, or the newest ``own-answer`` if only that one has judged any of these answers."""
    judges = judges_under(answers, conditions)
    return judge if judge in judges else newest_judge(_DEFAULT, judges) or judge


def _rates(
    sheets: Sheets, name: str, title: str, conditions: tuple[str, ...], columns: Sequence[Mapping[str, Column]]
) -> Table:
    """Return a table of the rates; no declared layout, because the metrics differ by row."""
    rows = []
    for run, answers in sheets.runs.items():
        sheet, present = sheets.sheet(run, _GRIDS[conditions]), answers.count(lambda kind: kind.condition)
        for place, (condition, setting) in enumerate(zip(conditions, _SETTINGS, strict=True)):
            for rate, metrics_of_rate in zip(RATES.values(), columns, strict=True):
                if condition in present:
                    rows.append((f"{run} / {setting} / {rate}", sheet.cells(metrics_of_rate.values(), place)))
    notes = (_NOTE_RATES if columns is _MAIN else _NOTE_FACTS, *([_NOTE_OFFICIAL] if conditions == _CHOICES else []))
    return sheets.finish(name, title, columns[0], rows, *notes, _NOTE_SPREAD, chart="turned")


def _change(choices: Sheets, opens: Sheets) -> Table:
    """Return the change of CAR from one false text to two, of runs with both, in both forms of the question."""
    rows = []
    for form, conditions, sheets in (("multiple choice", _CHOICES, choices), ("open", _OPENS, opens)):
        for run, answers in sheets.runs.items():
            if set(conditions) <= set(answers.count(lambda kind: kind.condition)):
                rows.append((f"{run} / {form}", sheets.sheet(run, _GRIDS[conditions]).cells(_CHANGE.values())))
    title = "Change of CAR from one false text to two (section 5.2)"
    judges = other_judges(choices.judge, (*choices.judges.values(), *opens.judges.values()))
    notes = (_NOTE_CHANGE, _NOTE_SPREAD)
    return Table("second-text", title, tuple(_CHANGE), tuple(rows), notes, judges=judges)


def _left_out(choices: Sheets, opens: Sheets) -> Table:
    columns, rows = ("counted", *_REASONS), []
    for sheets in (choices, opens):
        for run in sheets.runs:
            for condition in CONFLICT_CONDITIONS:
                if outcomes := _outcomes(sheets, run, condition):
                    rows.append((f"{run} / {condition}", tuple(outcomes[name] for name in columns)))
    note = (
        "Own answer: the model's answer without conflict. Already the counter answer: it is what the evidence says, so that "
        "keeping to it and taking the evidence's cannot be told apart."
    )
    judges = other_judges(choices.judge, (*choices.judges.values(), *opens.judges.values()))
    return Table("left-out", "Which answers the rates rest on", columns, tuple(rows), (note,), judges=judges)


def _outcomes(sheets: Sheets, run: str, condition: str) -> Counter[str]:
    """Return the number of a run's answers under a condition that count, and of the others by reason."""
    judge = sheets.judge_of(run)

    def outcome(kind: AnswerKind) -> str | None:
        if kind.condition != condition:
            return None
        if reason := sheets.benchmark.left_out(kind):
            return reason
        if kind.outcome(judge) != "labelled":
            return kind.outcome(judge)
        return "counted" if kind.label(judge) in RATES else "judge-failed"

    return sheets.runs[run].count(outcome)
