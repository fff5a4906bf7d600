"""The tables of the paper, and those that it names as missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.cmc_bench.cmc_constants import (
    AS_FOUND,
    CONFLICT_CONDITIONS,
    CONSTRUCTED,
    LABELS,
    ORIGIN,
    PAPER_CONDITIONS,
    TYPES,
)
from benchmarks.cmc_bench.cmc_metrics import MAIN_METRICS, condition_gap, label_shares
from benchmarks.cmc_bench.sources.cmc_source_row import OWN_ROWS
from benchmarks.failure_table import failures_table
from benchmarks.stats.intervals import DIFFERENCE, INTERVALS, SHARE
from benchmarks.tables.declared_tables import Column, Grid, Layout, Row, Sheets
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Cell, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

Runs = Mapping[str, Answers]
_Row = tuple[str, tuple[Cell, ...]]

VIEWS = (
    *PAPER_CONDITIONS,
    "image-only, right image",
    "image-only, wrong image",
    "text-only, gold passage",
    "text-only, contradicting passage",
)
"""The four conditions and the single sources, split by the displayed source."""

_SINGLE = {
    ("image-only", True): VIEWS[4],
    ("image-only", False): VIEWS[5],
    ("text-only", True): VIEWS[6],
    ("text-only", False): VIEWS[7],
}
_SOURCES_SHOWN = {
    "image-correct": ("image-only, right image", "text-only, contradicting passage"),
    "text-correct": ("image-only, wrong image", "text-only, gold passage"),
    "both-wrong": ("image-only, wrong image", "text-only, contradicting passage"),
}
_BEGINNING = 200
_ORIGIN_NAMES = (AS_FOUND, CONSTRUCTED)
_FOUR = slice(len(PAPER_CONDITIONS))
_ACCURACY_OF = dict(zip(MAIN_METRICS, PAPER_CONDITIONS, strict=False))
_IMAGE, _TEXT = LABELS.index("IMAGE"), LABELS.index("TEXT")
_PAIR = [PAPER_CONDITIONS.index(condition) for condition in ("image-correct", "text-correct")]

NOTE_WRONG_IMAGE = (
    "The image reference of a wrong image is the gold answer of the example it belongs to (our choice): it answers another "
    "question, so reading a wrong image mostly becomes NEITHER."
)
"""A note on wrong images of all sources but a user's own rows, whose wrong images answer the question."""


def origins(answers: Answers) -> Mapping[str, Callable[[AnswerKind], bool]]:
    """Return tests for conflicts as found and for constructed ones, where both stand beside each other; else none."""
    present = {kind.strata.get(ORIGIN) for kind in answers.kinds}
    return {name: _is_of_origin(name) for name in _ORIGIN_NAMES} if present.issuperset(_ORIGIN_NAMES) else {}


def view_of(kind: AnswerKind) -> str:
    """Return the item of ``VIEWS`` that a record belongs to; empty for a condition that CMC-Bench does not have."""
    if kind.condition in PAPER_CONDITIONS:
        return kind.condition
    return _SINGLE.get((kind.condition, kind.strata.get("correct") != "none"), "")


def _places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    if view := view_of(kind):
        yield from ((VIEWS.index(view), LABELS.index(label)) for label in labels)


GRID = Grid((len(VIEWS), len(LABELS)), _places)
"""The labels in each view."""


def _main_column(name: str) -> Column:
    """Return a column of Table 3."""
    needed = (
        [_ACCURACY_OF[name]] if name in _ACCURACY_OF else PAPER_CONDITIONS if name == "ΔAcc" else CONFLICT_CONDITIONS
    )
    conditions = [PAPER_CONDITIONS.index(condition) for condition in needed]
    labels = [_IMAGE, _TEXT] if name.startswith("MPB") else [*range(len(LABELS))]

    def reason(totals: NDArray[np.float64]) -> str:
        return _without_label(conditions, totals) or "no conflict answer is labelled IMAGE or TEXT"

    within = DIFFERENCE if name == "ΔAcc" else SHARE
    return Column(MAIN_METRICS[name], lambda totals: totals[np.ix_(conditions, labels)].sum(), reason, within)


def _without_label(conditions: Sequence[int], totals: NDArray[np.float64]) -> str:
    empty = [PAPER_CONDITIONS[place] for place in conditions if not totals[place].any()]
    return f"no labelled answer under {', '.join(empty)}" if empty else ""


def share_columns(reason: str = "no labelled answer") -> dict[str, Column]:
    """Return a column for the share of each label in counts of labels."""

    def column(place: int) -> Column:
        return Column(lambda counts: label_shares(counts)[..., place], reason=lambda totals: reason)

    return {label: column(place) for place, label in enumerate(LABELS)}


@cache
def _is_of_type(name: str) -> Callable[[AnswerKind], bool]:
    return lambda kind: kind.strata.get("type") == name


@cache
def _is_of_origin(name: str) -> Callable[[AnswerKind], bool]:
    return lambda kind: kind.strata.get(ORIGIN) == name


def _by_origin(answers: Answers) -> list[Row]:
    return [Row(f" / {name}", _FOUR, _is_of_origin(name)) for name in _ORIGIN_NAMES]


def _by_type(answers: Answers) -> list[Row]:
    present = answers.count(lambda kind: kind.strata.get("type", ""))
    return [
        Row(f" / {name}", _FOUR, None if [*present] == [name] else _is_of_type(name))
        for name in TYPES
        if name in present
    ]


_MAIN = {name: _main_column(name) for name in MAIN_METRICS}
_GAP = Column(
    condition_gap, lambda totals: totals[_PAIR].sum(), lambda totals: _without_label(_PAIR, totals), DIFFERENCE
)
_ORIGINS = Layout("by-origin", "Main results by where a conflict comes from", GRID, _MAIN, _by_origin)
"""A table of builds of a user's own rows with conflicts as found."""

_LAYOUTS = (
    Layout(
        "main",
        "Main results (Table 3)",
        GRID,
        _MAIN,
        lambda answers: [Row("", _FOUR)],
        (INTERVALS, NOTE_WRONG_IMAGE),
    ),
    Layout("by-type", "Main results by conflict type", GRID, _MAIN, _by_type),
    Layout(
        "labels",
        "Label proportions by condition (Figure 3)",
        GRID,
        share_columns(),
        lambda answers: [Row(f" / {view}", place) for place, view in enumerate(VIEWS)],
        (
            "Shares of the labels in each condition, and from each source alone (Figure 3, all conditions). The column ABSTAIN "
            "is the CDR per condition, the column IMAGE the rate of following the image.",
            NOTE_WRONG_IMAGE,
        ),
        chart="stacked",
    ),
    Layout(
        "gap",
        "Accuracy gap between text-correct and image-correct (section 5.2)",
        GRID,
        {"Txt-Cor less Img-Cor": _GAP},
        lambda answers: [Row("", _FOUR)],
        (
            "Above 0: the accuracy is higher where the text alone is right (section 5.2 prints no sign).",
            INTERVALS,
        ),
    ),
)


def tables(benchmark: Benchmark, runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill: main, by-type, labels, gap, arbitration, failures, both-audit.

    Where conflicts as found stand beside constructed ones, by-origin is another.
    """
    sheets = Sheets(benchmark, runs, judge, resamples, seed)
    every = [
        *map(sheets.table, _LAYOUTS),
        *([sheets.table(_ORIGINS)] if any(map(origins, runs.values())) else []),
        _arbitration(sheets),
        failures_table(runs, judge, benchmark.conditions),
        _both_audit(runs, judge),
    ]
    if any(kind.strata.get("source") != OWN_ROWS for answers in runs.values() for kind in answers.kinds):
        return every
    return [replace(table, notes=tuple(note for note in table.notes if note != NOTE_WRONG_IMAGE)) for table in every]


def _arbitration(sheets: Sheets) -> Table:
    rows: list[_Row] = []
    for run in sheets.runs:
        every, cluster = sheets.by_example(run, GRID)
        for condition in CONFLICT_CONDITIONS:
            shown, image, text = (every[:, VIEWS.index(view)] for view in (condition, *_SOURCES_SHOWN[condition]))
            known = shown.any(-1) & image.any(-1) & text.any(-1)
            able = known & (image[:, _IMAGE] > 0) & (text[:, _TEXT] > 0)
            reason = "no example has labelled answers under this condition and for both its sources alone"
            if known.any():
                reason = "no example's two sources are both read correctly alone"
            sheet = sheets.of_examples(shown[able], cluster[able], sheets.sheet(run, GRID).distinct)
            shares = sheet.cells(share_columns(reason).values())
            rows.append((f"{run} / {condition}", (int(known.sum()), int(able.sum()), *shares)))
    note = (
        "Label shares among the examples whose image (image-only: IMAGE) and passage (text-only: TEXT) the model reads "
        "correctly one at a time; `examples` counts those for which that is known."
    )
    columns = ("examples", "both read", *LABELS)
    return sheets.finish("arbitration", "Arbitration given competence", columns, rows, note, NOTE_WRONG_IMAGE)


def _both_audit(runs: Runs, judge: str) -> Table:
    def to_check(kind: AnswerKind) -> bool:
        return (
            kind.condition in CONFLICT_CONDITIONS and kind.outcome(judge) == "labelled" and kind.label(judge) == "BOTH"
        )

    rows: list[_Row] = []
    for run, answers in runs.items():
        for record in answers.read(np.flatnonzero(answers.mask(to_check)).tolist()):
            references = ("; ".join(record.instance.references.get(source, ())) for source in ("image", "text"))
            text = record.answer.text if record.answer else ""
            beginning = " ".join(visible_answer(text)[:_BEGINNING].split())
            rows.append((record.instance.id, (run, *references, beginning)))
    notes = ("Under conflict the two references differ, so BOTH should not occur (section 5.3): check these by hand.",)
    columns = ("run", "image reference", "text reference", "answer begins")
    return Table("both-audit", "Answers labelled BOTH under conflict", columns, tuple(rows), notes)
