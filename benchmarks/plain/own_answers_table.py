"""Answers under conflict, compared with the model's own answers to each source alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import Answers
from benchmarks.hash_collections import hash64
from benchmarks.stats.intervals import INTERVALS, ratio
from benchmarks.stats.repeated_answers import distinct_share
from benchmarks.tables.declared_tables import Column, Sheets
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Cell, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.plain.plain_declaration import Declaration

NAME = "own-answers"
OWN = ("IMAGE", "TEXT", "BOTH", "NEITHER")
"""The own answers that an answer under conflict equals: that to the image alone, that to the text alone, both, or neither."""

_ALONE = ("image-only", "text-only")
_OF_PLACE = np.array([OWN.index(name) for name in ("NEITHER", "IMAGE", "TEXT", "BOTH")])
"""The index in OWN by whether the image's answer is equal (1) plus whether the text's is (2)."""


def own_answers_table(
    data_set: Declaration, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int
) -> Table:
    """Return the paper's metrics of own answers, and the share of each of OWN.

    No judge labels these answers: two of them are equal if :meth:`Declaration.compared` makes the same text of them.
    """
    sheets = Sheets(data_set, runs, judge, resamples, seed)
    metrics = {name: ((counted,), among) for name, (counted, among) in data_set.own_metrics.items()}
    metrics |= {name: ((name,), OWN) for name in OWN}
    columns = {name: _column(*metric) for name, metric in metrics.items()}
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        codes, asked = _compare(data_set, answers)
        compared = codes >= 0
        clusters = answers.clusters.at(compared)
        distinct = distinct_share(clusters, codes[compared]) if answers.is_repeated else 1.0
        sheet = sheets.of_examples(np.eye(len(OWN), dtype=np.int64)[codes[compared]], clusters.own, distinct)
        rows.append((run, (asked, int(compared.sum()), *sheet.cells(columns.values()))))
    formulas = [
        f"{name}: {counted} / ({' + '.join(among)})." for name, (counted, among) in data_set.own_metrics.items()
    ]
    notes = (
        *formulas,
        "An answer under conflict is IMAGE if it equals the model's own answer to the image alone, TEXT if it equals that to the "
        "text alone, BOTH if it equals both, and else NEITHER. `compared` counts those for which all three answers are there.",
        INTERVALS,
    )
    title = "Under conflict, compared with the model's own answers to each source"
    return Table(NAME, title, ("answers", "compared", *columns), tuple(rows), notes, judges=())


def _column(counted: tuple[str, ...], among: tuple[str, ...]) -> Column:
    of_counted, of_among = ([OWN.index(name) for name in names] for names in (counted, among))
    return Column(
        lambda counts: ratio(counts[..., of_counted].sum(-1), counts[..., of_among].sum(-1)),
        lambda totals: totals[of_among].sum(),
        lambda totals: f"no answer is {' or '.join(among)}",
    )


def _compare(data_set: Declaration, answers: Answers) -> tuple[NDArray[np.int64], int]:
    """Return the index in OWN of each record, shape (records,), and the number of answers under conflict.

    The index is -1 for other records, and where one of the three answers is missing, empty or in error.
    """
    conditions = (data_set.conflicts[0], *_ALONE)
    under = answers.codes(lambda kind: conditions.index(kind.condition) if kind.condition in conditions else -1)
    usable = answers.mask(lambda kind: kind.is_answered and not kind.is_empty)
    positions = np.flatnonzero((under >= 0) & usable)
    digests = np.zeros((int(answers.group.max(initial=-1)) + 1, len(conditions)), dtype=np.uint64)
    is_there = np.zeros(digests.shape, dtype=np.bool_)
    places = answers.group[positions], under[positions]
    for group, condition, record in zip(*places, answers.read(positions.tolist()), strict=True):
        assert record.answer is not None
        digests[group, condition] = hash64(data_set.compared(visible_answer(record.answer.text)))
        is_there[group, condition] = True
    equal = digests[:, :1] == digests[:, 1:]
    own = np.where(is_there.all(-1), _OF_PLACE[equal @ (1, 2)], -1)
    codes: NDArray[np.int64] = np.where((under == 0) & usable, own[answers.group], -1)
    return codes, int(((under == 0) & usable).sum())
