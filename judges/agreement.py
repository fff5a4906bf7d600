"""Agreement between judges: metrics of counts of their labels, and the counting of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.stats.intervals import diagonal, ratio
from benchmarks.vocabulary import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_UNKNOWN = "not a label of this benchmark"


def raw_agreement(counts: Array) -> Array:
    """Return the share of answers with the same label from both judges.

    Counts of shape (..., labels, labels) give shape (...).
    """
    agreed: Array = ratio(diagonal(counts).sum(-1), counts.sum((-1, -2)))
    return agreed


def positive_agreement(counts: Array) -> Array:
    """Return 2a / (2a + b + c) per label, for a answers with the label from both judges and b + c from only one (Dice 1945).

    Counts of shape (..., labels, labels) give shape (..., labels); nan for a label that neither gives.
    """
    return ratio(2 * diagonal(counts), counts.sum(-1) + counts.sum(-2))


def label_kappa(counts: Array) -> Array:
    """Return Cohen's kappa of each label against all others; shapes as in :func:`positive_agreement`."""
    n = counts.sum((-1, -2))[..., None]
    agreed, a, b = diagonal(counts), counts.sum(-1), counts.sum(-2)
    by_chance = a * b + (n - a) * (n - b)
    return ratio(n * (n - a - b + 2 * agreed) - by_chance, n * n - by_chance)


def fleiss_kappa(counts: Array) -> float:
    """Return Fleiss' kappa (Fleiss 1971, equation 7) of ``counts``, the number of judges per answer and label.

    ``counts`` has shape (answers, labels). Every answer has the same number of judges, at least two. nan if only one
    label occurs or there is no answer.
    """
    judges = int(counts[0].sum()) if len(counts) else 2
    return float(fleiss_from_sums(fleiss_sums(counts).sum(0), judges)[1])


def fleiss_sums(counts: Array) -> Array:
    """Return, for each answer, the sum of squared counts, 1, and its counts; shape (answers, 2 + labels)."""
    import numpy as np

    return np.column_stack([(counts**2).sum(-1), np.ones(len(counts)), counts])


def fleiss_from_sums(sums: Array, judges: int) -> tuple[Array, Array]:
    """Return the mean agreement of pairs of judges, and kappa, from summed :func:`fleiss_sums` of shape (..., 2 + labels)."""
    squares, answers, totals = sums[..., 0], sums[..., 1], sums[..., 2:]
    labels, pairs = answers * judges, answers * judges * (judges - 1)
    by_chance = (totals**2).sum(-1)
    agreed, agreed_pairs = ratio(squares - labels, pairs), (squares - labels) * labels * labels
    return agreed, ratio(agreed_pairs - by_chance * pairs, (labels * labels - by_chance) * pairs)


@dataclass(frozen=True, slots=True)
class LabelPairs:
    """The labels of two judges on the answers that both have judged.

    ``counts`` has shape (groups, labels, labels): the first judge's label, then the second's. ``left_out`` counts, for
    each judge, the answers without a label by reason.
    """

    counts: Array
    left_out: tuple[Counter[str], Counter[str]]


def count_label_pairs(records: Sequence[Record], a: str, b: str, labels: Sequence[str]) -> LabelPairs:
    """Return the pairs of labels that the judges ``a`` and ``b`` give the records' answers, by group."""
    import numpy as np

    code = {label: i for i, label in enumerate(labels)}
    left_out: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    groups: dict[str, int] = {}
    label_pairs: list[tuple[int, int, int]] = []
    for record in records:
        outcomes = _label_index(record, a, code), _label_index(record, b, code)
        if None in outcomes:
            continue
        for reasons, outcome in zip(left_out, outcomes, strict=True):
            if isinstance(outcome, str):
                reasons[outcome] += 1
        if isinstance(outcomes[0], int) and isinstance(outcomes[1], int):
            label_pairs.append((groups.setdefault(record.instance.group, len(groups)), outcomes[0], outcomes[1]))
    counts = np.zeros((len(groups), len(labels), len(labels)))
    if label_pairs:
        np.add.at(counts, tuple(np.array(label_pairs).T), 1)
    return LabelPairs(counts, left_out)


def confusion_matrix(records: Sequence[Record], a: str, b: str, labels: Sequence[str]) -> Array:
    """Return the counts of labels by ``a`` (rows) and ``b`` (columns); shape (labels, labels)."""
    counts: Array = count_label_pairs(records, a, b, labels).counts.sum(0)
    return counts


def _label_index(record: Record, judge: str, code: Mapping[str, int]) -> int | str | None:
    """Return the label's index, or the reason why there is none; None if the judge has not judged the answer."""
    outcome = record.outcome(judge)
    if outcome in ("pending", "error"):
        return None
    return outcome if outcome != "labelled" else code.get(str(record.verdicts[judge].label), _UNKNOWN)


def fleiss_group_sums(records: Sequence[Record], judges: Sequence[str], labels: Sequence[str]) -> Array:
    """Return :func:`fleiss_sums` summed by group; shape (groups, 2 + labels)."""
    import numpy as np

    code = {label: i for i, label in enumerate(labels)}
    groups: dict[str, int] = {}
    counts: list[Array] = []
    rows: list[int] = []
    for record in records:
        outcomes = [_label_index(record, judge, code) for judge in judges]
        indices = [index for index in outcomes if isinstance(index, int)]
        if len(indices) == len(judges):
            rows.append(groups.setdefault(record.instance.group, len(groups)))
            counts.append(np.bincount(indices, minlength=len(labels)).astype(np.float64))
    sums = np.zeros((len(groups), 2 + len(labels)))
    if rows:
        np.add.at(sums, rows, fleiss_sums(np.stack(counts)))
    return sums
