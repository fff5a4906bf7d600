"""The tables of the paper, and those that it names as missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.cmc_bench.constants import CONDITIONS, CONFLICT_CONDITIONS, LABELS, PAPER_CONDITIONS, TYPES
from benchmarks.cmc_bench.counts import NO_LABEL, VIEWS, CMCCounts, tally
from benchmarks.cmc_bench.metrics import MAIN_METRICS, condition_gap, label_shares
from benchmarks.failure_table import failures_table
from benchmarks.stats.intervals import estimate, resample
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

Runs = Mapping[str, Answers]
_Row = tuple[str, tuple[Cell, ...]]

_BEGINNING = 200
_GAP = "Txt-Cor less Img-Cor"
_FOUR = slice(len(PAPER_CONDITIONS))
_ACCURACY_OF = dict(zip(MAIN_METRICS, PAPER_CONDITIONS, strict=False))

_SOURCES_SHOWN = {
    "image-correct": ("image-only, right image", "text-only, contradicting passage"),
    "text-correct": ("image-only, wrong image", "text-only, gold passage"),
    "both-wrong": ("image-only, wrong image", "text-only, contradicting passage"),
}

_NOTE_INTERVALS = "Intervals: 95%, percentile bootstrap over examples, so that an example's conditions stay together."
_NOTE_NO_WIDTH = "An interval of no width means that all answers agree, not that the figure is certain."
NOTE_WRONG_IMAGE = (
    "The image reference of a wrong image is the gold answer of the example it belongs to (our choice): it answers another "
    "question, so reading a wrong image mostly becomes NEITHER."
)


def tables(runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill: main, by-type, labels, gap, arbitration, failures, both-audit."""
    draw = _Drawn(resamples, seed)
    tallies = {run: tally(answers, judge) for run, answers in runs.items()}
    main = _main(tallies, draw)
    return [
        main,
        _by_type(runs, judge, draw, main),
        _labels(tallies, draw),
        _gap(tallies, draw),
        _arbitration(tallies, draw),
        failures_table(runs, judge, CONDITIONS),
        _both_audit(runs, judge),
    ]


class _Drawn:
    """Bootstrap draws with a fixed number of resamples and seed."""

    def __init__(self, resamples: int, seed: int) -> None:
        self._resamples = resamples
        self._seed = seed

    def __call__(self, counts: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the totals of ``counts`` over its first axis, and the resampled totals."""
        return counts.sum(0).astype(np.float64), resample(counts, self._resamples, self._seed)


def _main(tallies: Mapping[str, CMCCounts], draw: _Drawn) -> Table:
    rows = tuple((run, _main_cells(run_counts, draw)) for run, run_counts in tallies.items())
    notes = (_NOTE_INTERVALS, *_width_note(rows), NOTE_WRONG_IMAGE)
    return Table("main", "Main results (Table 3)", tuple(MAIN_METRICS), rows, notes)


def _by_type(runs: Runs, judge: str, draw: _Drawn, main: Table) -> Table:
    rows: list[_Row] = []
    for run, answers in runs.items():
        present = answers.count(lambda kind: kind.strata.get("type", ""))
        for name in TYPES:
            if [*present] == [name]:
                rows.append((f"{run} / {name}", dict(main.rows)[run]))
            elif name in present:
                counts = tally(answers, judge, partial(_is_of_type, name))
                rows.append((f"{run} / {name}", _main_cells(counts, draw)))
    notes = (_NOTE_INTERVALS, *_width_note(rows))
    return Table("by-type", "Main results by conflict type", tuple(MAIN_METRICS), tuple(rows), notes)


def _is_of_type(name: str, kind: AnswerKind) -> bool:
    return kind.strata.get("type") == name


def _main_cells(run_counts: CMCCounts, draw: _Drawn) -> tuple[Cell, ...]:
    totals, draws = draw(run_counts.counts()[:, _FOUR])
    return tuple(
        estimate(float(metric(totals)), metric(draws), _rests_on(name, totals), reason=_why_undefined(name, totals))
        for name, metric in MAIN_METRICS.items()
    )


def _gap(tallies: Mapping[str, CMCCounts], draw: _Drawn) -> Table:
    rows: list[_Row] = []
    for run, run_counts in tallies.items():
        totals, draws = draw(run_counts.counts()[:, _FOUR])
        pair = {condition: totals[PAPER_CONDITIONS.index(condition)] for condition in ("image-correct", "text-correct")}
        empty = [condition for condition, labels in pair.items() if not labels.any()]
        n = int(sum(labels.sum() for labels in pair.values()))
        reason = f"no labelled answer under {', '.join(empty)}"
        rows.append((run, (estimate(float(condition_gap(totals)), condition_gap(draws), n, reason=reason),)))
    notes = (
        "Above 0: the accuracy is higher where the text alone is right (section 5.2 prints no sign).",
        _NOTE_INTERVALS,
        *_width_note(rows),
    )
    title = "Accuracy gap between text-correct and image-correct (section 5.2)"
    return Table("gap", title, (_GAP,), tuple(rows), notes)


def _rests_on(name: str, totals: NDArray[np.float64]) -> int:
    """Return the number of labels behind a metric of Table 3."""
    if name in _ACCURACY_OF:
        return int(totals[PAPER_CONDITIONS.index(_ACCURACY_OF[name])].sum())
    if name.startswith("MPB"):
        return int(totals[1:, [LABELS.index("IMAGE"), LABELS.index("TEXT")]].sum())
    return int(totals.sum() if name == "ΔAcc" else totals[1:].sum())


def _why_undefined(name: str, totals: NDArray[np.float64]) -> str:
    needed = (
        [_ACCURACY_OF[name]] if name in _ACCURACY_OF else PAPER_CONDITIONS if name == "ΔAcc" else CONFLICT_CONDITIONS
    )
    empty = [condition for condition in needed if not totals[PAPER_CONDITIONS.index(condition)].any()]
    return f"no labelled answer under {', '.join(empty)}" if empty else "no conflict answer is labelled IMAGE or TEXT"


def _labels(tallies: Mapping[str, CMCCounts], draw: _Drawn) -> Table:
    rows: list[_Row] = []
    for run, run_counts in tallies.items():
        totals, draws = draw(run_counts.counts())
        for i, view in enumerate(VIEWS):
            rows.append((f"{run} / {view}", _share_cells(totals[i], draws[:, i], "no labelled answer")))
    notes = (
        "Shares of the labels in each condition, and from each source alone (Figure 3, all conditions). The column ABSTAIN "
        "is the CDR per condition, the column IMAGE the rate of following the image.",
        *_width_note(rows),
        NOTE_WRONG_IMAGE,
    )
    return Table("labels", "Label proportions by condition (Figure 3)", LABELS, tuple(rows), notes, chart="stacked")


def _arbitration(tallies: Mapping[str, CMCCounts], draw: _Drawn) -> Table:
    rows: list[_Row] = []
    for run, run_counts in tallies.items():
        for condition in CONFLICT_CONDITIONS:
            labels = [run_counts.labels[:, VIEWS.index(view)] for view in (condition, *_SOURCES_SHOWN[condition])]
            known = np.logical_and.reduce([column != NO_LABEL for column in labels])
            reads_image, reads_text = labels[1] == LABELS.index("IMAGE"), labels[2] == LABELS.index("TEXT")
            able = known & reads_image & reads_text
            counts = run_counts.counts()[able, VIEWS.index(condition)]
            reason = "no example has labelled answers under this condition and for both its sources alone"
            if known.any():
                reason = "no example's two sources are both read correctly alone"
            shares = _share_cells(*draw(counts), reason)
            rows.append((f"{run} / {condition}", (int(known.sum()), int(able.sum()), *shares)))
    notes = (
        "Label shares among the examples whose image (image-only: IMAGE) and passage (text-only: TEXT) the model reads "
        "correctly one at a time; `examples` counts those for which that is known.",
        *_width_note(rows),
        NOTE_WRONG_IMAGE,
    )
    columns = ("examples", "both read", *LABELS)
    return Table("arbitration", "Arbitration given competence", columns, tuple(rows), notes)


def _width_note(rows: Iterable[_Row]) -> tuple[str, ...]:
    cells = (cell for _, cells in rows for cell in cells if isinstance(cell, Estimate))
    return (_NOTE_NO_WIDTH,) if any(cell.low is not None and cell.low == cell.high for cell in cells) else ()


def _share_cells(totals: NDArray[np.float64], draws: NDArray[np.float64], reason: str) -> tuple[Estimate, ...]:
    shares, drawn_shares, n = label_shares(totals), label_shares(draws), int(totals.sum())
    return tuple(estimate(float(shares[i]), drawn_shares[:, i], n, reason=reason) for i in range(len(LABELS)))


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
