"""Agreement between judges: metrics of counts of their labels, and the counting of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.stats.intervals import Draws, diagonal, estimate, kappa_estimate, ratio
from benchmarks.vocabulary import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.integer] | NDArray[np.floating]

_UNKNOWN = "not a label of this benchmark"


def raw_agreement(counts: Array) -> Array:
    """Return the share of answers with the same label from both judges.

    Counts of shape (..., labels, labels) give shape (...).
    """
    agreed: Array = ratio(diagonal(counts).sum(-1), counts.sum((-1, -2)))
    return agreed


def agreement_and_kappa(counts: Counts, draws: Draws, none: str, one_label: str) -> tuple[Estimate, Estimate]:
    """Return raw agreement and Cohen's kappa of counts of shape (clusters, labels, labels), n/a with these reasons."""
    n = round(float(draws.totals.sum()))
    agreed = float(raw_agreement(draws.totals))
    return (
        estimate(agreed, draws.replicates(raw_agreement), n, clusters=len(counts), reason=none),
        kappa_estimate(counts, draws, one_label if n else none),
    )


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


def gwet_ac1(counts: Array) -> Array:
    """Return Gwet's AC1 of two judges (Gwet 2008, equation 2); shapes as in :func:`raw_agreement`.

    Agreement by chance is the sum of pi (1 - pi) over all q labels, divided by q - 1; pi is the mean of both judges' shares of
    a label. Labels that nobody gives count in q, since they were on offer.
    """
    n, labels = counts.sum((-1, -2)), counts.shape[-1]
    share = ratio(counts.sum(-1) + counts.sum(-2), 2 * n[..., None])
    return _beyond_chance(raw_agreement(counts), (share * (1 - share)).sum(-1) / (labels - 1))


def gwet_from_sums(sums: Array, judges: int) -> Array:
    """Return Gwet's AC1 of two or more judges, from summed :func:`fleiss_sums` of shape (..., 2 + labels)."""
    agreed, _ = fleiss_from_sums(sums, judges)
    answers, totals = sums[..., 1], sums[..., 2:]
    share = ratio(totals, answers[..., None] * judges)
    return _beyond_chance(agreed, (share * (1 - share)).sum(-1) / (totals.shape[-1] - 1))


def _beyond_chance(agreed: Array, by_chance: Array) -> Array:
    return ratio(agreed - by_chance, 1 - by_chance)


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

    counts: NDArray[np.int64]
    left_out: tuple[Counter[str], Counter[str]]


Selection = Callable[[AnswerKind], bool]
"""A function that selects kinds of answers."""


def _all(kind: AnswerKind) -> bool:
    return True


def count_label_pairs(answers: Answers, a: str, b: str, labels: Sequence[str], of: Selection = _all) -> LabelPairs:
    """Return the pairs of labels that the judges ``a`` and ``b`` give the answers ``of`` some kinds, by group."""
    code = {label: i for i, label in enumerate(labels)}
    left_out: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    cells: dict[int, tuple[int, int]] = {}
    for kind, size in zip(answers.kinds, answers.sizes.tolist(), strict=True):
        outcomes = _label_index(kind, a, code), _label_index(kind, b, code)
        if not size or not of(kind) or None in outcomes:
            continue
        for reasons, outcome in zip(left_out, outcomes, strict=True):
            if isinstance(outcome, str):
                reasons[outcome] += size
        if isinstance(outcomes[0], int) and isinstance(outcomes[1], int):
            cells[id(kind)] = outcomes[0], outcomes[1]
    counts = answers.cells((len(labels), len(labels)), lambda kind: cells.get(id(kind)))
    return LabelPairs(counts, left_out)


def _label_index(kind: AnswerKind, judge: str, code: Mapping[str, int]) -> int | str | None:
    """Return the label's index, or the reason why there is none; None if the judge has not judged the answer."""
    outcome = kind.outcome(judge)
    if outcome in ("pending", "error"):
        return None
    return outcome if outcome != "labelled" else code.get(kind.label(judge), _UNKNOWN)


def fleiss_group_sums(answers: Answers, judges: Sequence[str], labels: Sequence[str], of: Selection = _all) -> Array:
    """Return :func:`fleiss_sums` of the answers ``of`` some kinds summed by cluster; shape (clusters, 2 + labels)."""
    import numpy as np

    code = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(answers.kinds), len(labels)))
    counted = np.zeros(len(answers.kinds), dtype=np.bool_)
    for number, kind in enumerate(answers.kinds):
        indices = [index for judge in judges if isinstance(index := _label_index(kind, judge, code), int)]
        if of(kind) and len(indices) == len(judges):
            counted[number] = True
            counts[number] = np.bincount(indices, minlength=len(labels))
    chosen = counted[answers.kind]
    sums: Array = answers.clusters.at(chosen).sums(fleiss_sums(counts)[answers.kind[chosen]])
    return sums
