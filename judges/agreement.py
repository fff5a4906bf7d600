"""How far judges agree: figures of counts of their labels, and how those are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.base import Record
from benchmarks.stats.intervals import diagonal, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_UNKNOWN = "not a label of this benchmark"


def raw_agreement(counts: Array) -> Array:
    """The share of answers with one label by both judges; counts of shape (..., labels, labels) give shape (...)."""
    agreed: Array = ratio(diagonal(counts).sum(-1), counts.sum((-1, -2)))
    return agreed


def positive_agreement(counts: Array) -> Array:
    """For each label 2a / (2a + b + c), with a answers that both give it and b + c that only one does (Dice 1945).

    Counts of shape (..., labels, labels) give shape (..., labels); nan for a label that neither gives.
    """
    return ratio(2 * diagonal(counts), counts.sum(-1) + counts.sum(-2))


def label_kappa(counts: Array) -> Array:
    """For each label Cohen's kappa of it against all others; shapes as in :func:`positive_agreement`."""
    n = counts.sum((-1, -2))[..., None]
    both, a, b = diagonal(counts), counts.sum(-1), counts.sum(-2)
    by_chance = a * b + (n - a) * (n - b)
    return ratio(n * (n - a - b + 2 * both) - by_chance, n * n - by_chance)


def fleiss_kappa(counts: Array) -> float:
    """Fleiss' kappa (Fleiss 1971, equation 7) of counts of shape (answers, labels): how many judges gave which label.

    Every answer has the same number of judges, two at least. nan where only one label occurs or there is no answer.
    """
    judges = int(counts[0].sum()) if len(counts) else 2
    return float(fleiss(fleiss_sums(counts).sum(0), judges)[1])


def fleiss_sums(counts: Array) -> Array:
    """Of each answer the sum of squared counts, 1, and its counts; shape (answers, 2 + labels)."""
    import numpy as np

    return np.column_stack([(counts**2).sum(-1), np.ones(len(counts)), counts])


def fleiss(sums: Array, judges: int) -> tuple[Array, Array]:
    """The mean agreement of pairs of judges, and kappa, from summed :func:`fleiss_sums` of shape (..., 2 + labels)."""
    squares, answers, totals = sums[..., 0], sums[..., 1], sums[..., 2:]
    given, pairs = answers * judges, answers * judges * (judges - 1)
    by_chance = (totals**2).sum(-1)
    agreed, agreed_pairs = ratio(squares - given, pairs), (squares - given) * given * given
    return agreed, ratio(agreed_pairs - by_chance * pairs, (given * given - by_chance) * pairs)


@dataclass(frozen=True, slots=True)
class LabelPairs:
    """What two judges say of the answers that both have judged.

    ``counts`` has shape (groups, labels, labels): the first judge's label, the second's. ``left_out`` are, for each of
    them, the answers without a label, by why.
    """

    counts: Array
    left_out: tuple[Counter[str], Counter[str]]


def pairs(records: Sequence[Record], a: str, b: str, labels: Sequence[str]) -> LabelPairs:
    """What the judges ``a`` and ``b`` say of the records' answers, group by group."""
    import numpy as np

    code = {label: i for i, label in enumerate(labels)}
    left_out: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    groups: dict[str, int] = {}
    found: list[tuple[int, int, int]] = []
    for record in records:
        said = _said(record, a, code), _said(record, b, code)
        if None in said:
            continue
        for why, outcome in zip(left_out, said, strict=True):
            if isinstance(outcome, str):
                why[outcome] += 1
        if isinstance(said[0], int) and isinstance(said[1], int):
            found.append((groups.setdefault(record.instance.group, len(groups)), said[0], said[1]))
    counts = np.zeros((len(groups), len(labels), len(labels)))
    if found:
        np.add.at(counts, tuple(np.array(found).T), 1)
    return LabelPairs(counts, left_out)


def confusion(records: Sequence[Record], a: str, b: str, labels: Sequence[str]) -> Array:
    """How often ``a`` gave the row's label where ``b`` gave the column's; shape (labels, labels)."""
    counts: Array = pairs(records, a, b, labels).counts.sum(0)
    return counts


def _said(record: Record, judge: str, code: Mapping[str, int]) -> int | str | None:
    """The label's index, or why there is none; None where the judge has not judged the answer, or there is none."""
    outcome = record.outcome(judge)
    if outcome in ("pending", "error"):
        return None
    return outcome if outcome != "labelled" else code.get(str(record.verdicts[judge].label), _UNKNOWN)


def group_sums(records: Sequence[Record], judges: Sequence[str], labels: Sequence[str]) -> Array:
    """:func:`fleiss_sums` summed group by group; shape (groups, 2 + labels)."""
    import numpy as np

    code = {label: i for i, label in enumerate(labels)}
    groups: dict[str, int] = {}
    counts: list[Array] = []
    rows: list[int] = []
    for record in records:
        said = [_said(record, judge, code) for judge in judges]
        given = [index for index in said if isinstance(index, int)]
        if len(given) == len(judges):
            rows.append(groups.setdefault(record.instance.group, len(groups)))
            counts.append(np.bincount(given, minlength=len(labels)).astype(np.float64))
    sums = np.zeros((len(groups), 2 + len(labels)))
    if rows:
        np.add.at(sums, rows, fleiss_sums(np.stack(counts)))
    return sums
