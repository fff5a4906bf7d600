"""Label counts: the label of each example under each condition and from each single source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.cmc_bench.constants import LABELS, PAPER_CONDITIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

VIEWS = (
    *PAPER_CONDITIONS,
    "image-only, right image",
    "image-only, wrong image",
    "text-only, gold passage",
    "text-only, contradicting passage",
)
"""The four conditions and the single sources, split by the displayed source."""

NO_LABEL = -1

_SINGLE = {
    ("image-only", True): VIEWS[4],
    ("image-only", False): VIEWS[5],
    ("text-only", True): VIEWS[6],
    ("text-only", False): VIEWS[7],
}


@dataclass(frozen=True)
class CMCCounts:
    """The labelled answers of a run, or of one conflict type of it.

    ``labels`` has shape (examples, views): the index in ``LABELS`` of the example's label in that view, or NO_LABEL
    where there is no labelled answer.
    """

    labels: NDArray[np.int8]

    def counts(self) -> NDArray[np.int32]:
        """One-hot counts of shape (examples, views, labels)."""
        hot: NDArray[np.int32] = (self.labels[:, :, None] == np.arange(len(LABELS))).astype(np.int32)
        return hot


def view_of(kind: AnswerKind) -> str:
    """Return the item of ``VIEWS`` that a record belongs to; empty for a condition that CMC-Bench does not have."""
    if kind.condition in PAPER_CONDITIONS:
        return kind.condition
    return _SINGLE.get((kind.condition, kind.strata.get("correct") != "none"), "")


def tally(answers: Answers, judge: str, of: Callable[[AnswerKind], bool] = lambda kind: True) -> CMCCounts:
    """Return the labels of ``judge`` on the answers ``of`` some kinds; pending, failed and unparsed answers have none."""

    def place(kind: AnswerKind) -> int:
        if not of(kind) or kind.outcome(judge) != "labelled":
            return NO_LABEL
        view = view_of(kind)
        if not view:
            return NO_LABEL
        return VIEWS.index(view) * len(LABELS) + LABELS.index(kind.label(judge))

    places = answers.codes(place)
    labelled = places != NO_LABEL
    examples, rows = number_groups(answers.group[labelled])
    views, codes = np.divmod(places[labelled], len(LABELS))
    labels = np.full((examples, len(VIEWS)), NO_LABEL, dtype=np.int8)
    labels[rows, views] = codes
    return CMCCounts(labels)
