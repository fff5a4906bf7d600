"""The paper's words: data sets, sub-types, settings, conditions, labels, and the keys of an instance's references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dataset = Literal["ER", "EK", "VS"]
Form = Literal["mc", "open"]

DATASETS: tuple[Dataset, ...] = ("ER", "EK", "VS")
"""Entity recognition, entity knowledge and visual semantic conflicts (section 3.2), in the columns' order."""

WEIGHTS = {"ER": 757, "EK": 669, "VS": 147}
"""The instances of each data set (Table 1), by which the averages of Tables 2 to 4 are weighted."""


@dataclass(frozen=True, slots=True)
class FactType:
    """One of the three facts of a person or a logo, which make the sub-types of entity knowledge (Tables 5 and 6).

    ``name`` is what its fields end in (``mcq_query_temporal``), ``edits`` the field of ``mis_knowledge`` with the texts in
    which it alone is altered.
    """

    name: str
    edits: str


PEOPLE = {
    "PT": FactType("temporal", "Temporal_error"),
    "PL": FactType("location", "location_error"),
    "PC": FactType("Career", "Career_error"),
}
LOGOS = {
    "LT": FactType("time", "time_error"),
    "LC": FactType("creator", "creator_error"),
    "LO": FactType("content", "content_error"),
}
FACTS = PEOPLE | LOGOS

TYPES = ("ER", *FACTS, "VS")
"""What a row is of: its data set or, for entity knowledge, its sub-type."""

FILES: dict[str, tuple[str, ...]] = {
    "ER": ("ER",),
    "people_knowledge": tuple(PEOPLE),
    "logo_knowledge": tuple(LOGOS),
    "IS": ("VS",),
}
"""The published files without ``.json``, and what their rows are of."""


def dataset_of(kind: str) -> Dataset:
    """The data set that one of ``TYPES`` belongs to."""
    return "ER" if kind == "ER" else "VS" if kind == "VS" else "EK"


ORIGINAL = ("original-mc", "original-open")
CONTEXT_MEMORY = ("context-memory-mc", "context-memory-open")
INTER_CONTEXT = ("inter-context-mc", "inter-context-open")
CONFLICT = (*CONTEXT_MEMORY, *INTER_CONTEXT)
COARSE = ("coarse-non-conflict", "coarse-conflict")
FINE = ("fine-non-conflict", "fine-conflict")
DETECTION = (*COARSE, *FINE)

CONDITIONS = (*ORIGINAL, *CONFLICT, *DETECTION)
"""A setting and the question's format (section 5.1), or a level of detection with and without a conflict. The original
setting comes first, since the answers given there decide what the others are."""

BASIS = {condition: f"original-{condition.rpartition('-')[2]}" for condition in CONFLICT}
"""The condition whose answer is the model's own, for each in which it is shown conflicting evidence."""

LABELS = ("ORIGINAL", "COUNTER", "IRRELEVANT", "CORRECT", "WRONG")
"""The three kinds of answer of section 5.1, and the two of detection."""

RATES = {"ORIGINAL": "OAR", "COUNTER": "CAR", "IRRELEVANT": "IAR"}

LETTERS = ("A", "B", "C", "D")

IMAGE = "image"
TEXT = "text"
DISTRACTOR = "distractor"
ANSWER = "answer"
"""Keys of ``Instance.references``: what is true of the image (the model's own knowledge, if it has it), what the shown
evidence says instead, what neither does, and whether a document agrees with what is true."""


def form_of(condition: str) -> Form:
    """The format of a question's condition."""
    return "mc" if condition.endswith("-mc") else "open"


def letter_key(source: str) -> str:
    """The key of ``Instance.references`` with the letters of a source's options; only multiple choice has it."""
    return f"{source} letter"
