"""Label counts: the label of each example under each condition and from each single source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.cmc_bench.constants import LABELS, PAPER_CONDITIONS
from benchmarks.vocabulary import Record

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


def view_of(record: Record) -> str:
    """Return the item of ``VIEWS`` that a record belongs to."""
    condition = record.instance.condition
    if condition in PAPER_CONDITIONS:
        return condition
    return _SINGLE[condition, record.instance.strata.get("correct") != "none"]


def tally(records: Sequence[Record], judge: str) -> CMCCounts:
    """Return the labels of ``judge``; pending, failed, unparsed and unjudged answers have none."""
    examples: dict[str, int] = {}
    column = {view: i for i, view in enumerate(VIEWS)}
    code = {label: i for i, label in enumerate(LABELS)}
    cells = [
        (examples.setdefault(r.instance.group, len(examples)), column[view_of(r)], code[str(r.verdicts[judge].label)])
        for r in records
        if r.outcome(judge) == "labelled"
    ]
    labels = np.full((len(examples), len(VIEWS)), NO_LABEL, dtype=np.int8)
    if cells:
        rows, columns, codes = np.array(cells).T
        labels[rows, columns] = codes
    return CMCCounts(labels)
