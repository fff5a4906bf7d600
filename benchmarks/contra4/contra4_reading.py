"""Reading of an answer and its references for Contra4's tables."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.contra4.contra4_balanced import balanced_test
from benchmarks.contra4.contra4_instances import GOLD_CAPTIONS, MODALITY_NAMES, PREDICTED
from benchmarks.contra4.contra4_parse_answer import contains_answer
from benchmarks.text.answer_text import answer_outcome
from benchmarks.vocabulary import Record


class Contra4Reading(NamedTuple):
    """The reading of a record.

    Attributes:
        official: True if the published evaluation counts the answer as right.
        balanced: True if the sample is in the balanced subset of the published test rows.
        captions: The modality, the predicted and the data set's caption of each scene that is shown by a predicted caption.
    """

    official: bool
    balanced: bool
    captions: tuple[tuple[str, str, str], ...]


def read(record: Record) -> Contra4Reading:
    """Return the reading of a record."""
    references = record.instance.references
    gold = (*references.get("gold", ()), "")[0]
    is_right = (
        record.answer is not None and answer_outcome(record) == "labelled" and contains_answer(record.answer.text, gold)
    )
    scenes = (references.get(name, ()) for name in (MODALITY_NAMES, PREDICTED, GOLD_CAPTIONS))
    is_balanced = record.instance.group in balanced_test()
    return Contra4Reading(is_right, is_balanced, tuple(zip(*scenes, strict=False)))
