"""Data sets, sub-types, settings, conditions and labels under the paper's names, and the keys of references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Dataset = str
"""One of ``DATASETS``, or the name of a file with a type that the paper does not name."""
Form = Literal["mc", "open"]

DATASETS: tuple[Dataset, ...] = ("ER", "EK", "VS")
"""Entity recognition, entity knowledge and visual semantic conflicts (section 3.2), in the order of the columns."""

PAPER_COUNTS = {"ER": 757, "EK": 669, "VS": 147}
"""The number of instances of each data set (Table 1), the weights of the averages in Tables 2 to 4."""


PAPER_TYPES = {"ER": 13, "EK": 6, "VS": 4}
"""The number of kinds of each data set (Table 1): kinds of entity, facts, and kinds of visual semantics."""

PAPER_IMAGES = {"ER": 2271, "EK": 669, "VS": 441}
"""The number of images of each data set (Table 1): three of each thing, which the three facts of EK share."""


@dataclass(frozen=True, slots=True)
class FactType:
    """One of the three facts about a person or a logo, the sub-types of entity knowledge (Tables 5 and 6).

    ``name`` is the suffix of its fields (``mcq_query_temporal``), ``edits`` the field of ``mis_knowledge`` that holds
    the texts in which only this fact is altered.
    """

    name: str
    edits: str


PERSON_FACTS = {
    "PT": FactType("temporal", "Temporal_error"),
    "PL": FactType("location", "location_error"),
    "PC": FactType("Career", "Career_error"),
}
LOGO_FACTS = {
    "LT": FactType("time", "time_error"),
    "LC": FactType("creator", "creator_error"),
    "LO": FactType("content", "content_error"),
}
FACT_TYPES = PERSON_FACTS | LOGO_FACTS

ROW_TYPES = ("ER", *FACT_TYPES, "VS")
"""The types of a row: its data set or, for entity knowledge, its sub-type."""

RELEASED_FILES: dict[str, tuple[str, ...]] = {
    "ER": ("ER",),
    "people_knowledge": tuple(PERSON_FACTS),
    "logo_knowledge": tuple(LOGO_FACTS),
    "IS": ("VS",),
}
"""The released files without ``.json``, and the types of their rows."""


def dataset_of(kind: str) -> Dataset:
    """Return the data set of a type: EK for the six facts, the type itself for all others."""
    return "EK" if kind in FACT_TYPES else kind


ORIGINAL_CONDITIONS = ("original-mc", "original-open")
CONTEXT_MEMORY = ("context-memory-mc", "context-memory-open")
INTER_CONTEXT = ("inter-context-mc", "inter-context-open")
CONFLICT_CONDITIONS = (*CONTEXT_MEMORY, *INTER_CONTEXT)
COARSE = ("coarse-non-conflict", "coarse-conflict")
FINE = ("fine-non-conflict", "fine-conflict")
WITHOUT_CONFLICT = (*ORIGINAL_CONDITIONS, COARSE[0], FINE[0])
DETECTION_CONDITIONS = (*COARSE, *FINE)

WITHOUT_SOURCES: Mapping[str, tuple[str, ...]] = {
    "original-mc-closed-book": ("original-mc",),
    "original-mc-options-only": ("original-mc",),
    "original-open-closed-book": ("original-open",),
    **{f"{condition}-text-only": (condition,) for condition in DETECTION_CONDITIONS},
}
"""The conditions that leave out the image, or the question, with those that they are compared with. Ours.

The answers to the first three are compared with what is true of the image, as the others are with what is true of a document."""

CONDITIONS = (*ORIGINAL_CONDITIONS, *CONFLICT_CONDITIONS, *DETECTION_CONDITIONS)
"""A setting and the format of the question (section 5.1), or a level of detection with and without a conflict.

The original setting comes first because its answers are the basis of the others' labels.
"""

BASIS = {condition: f"original-{condition.rpartition('-')[2]}" for condition in CONFLICT_CONDITIONS}
"""The condition whose answer is the model's own, for each condition with conflicting evidence."""

LABELS = ("ORIGINAL", "COUNTER", "IRRELEVANT", "CORRECT", "WRONG")
"""The three kinds of answer of section 5.1, and the two of detection."""

RATES = {"ORIGINAL": "OAR", "COUNTER": "CAR", "IRRELEVANT": "IAR"}

LETTERS = ("A", "B", "C", "D")

IMAGE = "image"
TEXT = "text"
DISTRACTOR = "distractor"
ANSWER = "answer"
"""Keys of ``Instance.references``.

``IMAGE`` is what is true of the image (the model's own knowledge, if it has it), ``TEXT`` what the given evidence says
instead, ``DISTRACTOR`` what neither does, and ``ANSWER`` whether a document agrees with the truth.
"""


def form_of(condition: str) -> Form:
    """Return the question format of a condition."""
    return "mc" if "-mc" in condition else "open"


def asks_for_agreement(condition: str) -> bool:
    """Return whether a condition asks if a document agrees with what the model remembers."""
    return condition.startswith(("coarse-", "fine-"))


def letter_key(source: str) -> str:
    """Return the key of ``Instance.references`` for the letters of a source's options; multiple choice only."""
    return f"{source} letter"


def truth_key(condition: str) -> str:
    """Return the key of ``Instance.references`` for what is true of the image, in the form that the condition asks for."""
    return letter_key(IMAGE) if form_of(condition) == "mc" else IMAGE
