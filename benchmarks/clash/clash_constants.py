"""The constants of the paper: conditions, labels, kinds of change, categories, keys of an instance's references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Task = Literal["mc", "open"]
Caption = Literal["conflicting", "original"]
Role = Literal["image", "text", "distractor", "conflict"]
ChangeType = Literal["object", "attribute", "spatial"]

CONDITIONS = ("mc-conflicting", "mc-original", "open-conflicting", "open-original")
"""The two tasks (section 3.1), each on the conflicting and on the original caption."""

MULTIPLE_CHOICE = ("mc-conflicting", "mc-original")
OPEN_ENDED = ("open-conflicting", "open-original")
CONFLICTING = ("mc-conflicting", "open-conflicting")

WITHOUT_SOURCES: Mapping[str, tuple[str, ...]] = {
    "mc-closed-book": MULTIPLE_CHOICE,
    "mc-options-only": MULTIPLE_CHOICE,
    "mc-image-only": MULTIPLE_CHOICE,
    **{f"{condition}-text-only": (condition,) for condition in MULTIPLE_CHOICE},
    "open-closed-book": OPEN_ENDED,
    "open-image-only": OPEN_ENDED,
    **{f"{condition}-text-only": (condition,) for condition in OPEN_ENDED},
}
"""The conditions that leave out the image, the caption or the question, with those that they are compared with. Ours.

Without a caption, one answer is compared with those under both."""

LABELS = ("CONFLICT", "IMAGE", "TEXT", "DISTRACTOR", "INCORRECT")
"""The columns of Table 1."""

CORRECT = {
    "mc-conflicting": "CONFLICT",
    "mc-original": "IMAGE",
    "open-conflicting": "CONFLICT",
    "open-original": "IMAGE",
}
"""The label that is correct under each condition (section 4.4, Appendix C.1)."""

IMAGE: Role = "image"
TEXT: Role = "text"
DISTRACTOR: Role = "distractor"
CONFLICT: Role = "conflict"
ROLES: tuple[Role, ...] = (IMAGE, TEXT, DISTRACTOR, CONFLICT)
"""Keys of ``Instance.references``: the answer that the image supports, that the conflicting caption supports, that neither
does, and the text of the conflict option. Every instance of a build has all four; a published open answer may lack the
distractor, which its file does not name."""

LABEL_OF_ROLE = {IMAGE: "IMAGE", TEXT: "TEXT", DISTRACTOR: "DISTRACTOR", CONFLICT: "CONFLICT"}

LETTERS = ("A", "B", "C", "D")


def is_multiple_choice(condition: str) -> bool:
    """Return whether a condition offers options."""
    return condition.startswith("mc-")


def letter_key(role: Role) -> str:
    """Return the key of ``Instance.references`` that holds the letter of a role's option (multiple choice only)."""
    return f"{role} letter"


CONFLICT_OPTION = "Conflicting information \N{EN DASH} cannot answer."
"""The text of the fourth option (Appendix B.3)."""

CHANGE_TYPES: tuple[ChangeType, ...] = ("object", "attribute", "spatial")

OBJECT_CATEGORIES = {
    "animals": "Animals",
    "transportation": "Vehicles",
    "food": "Food",
    "sports": "Sports",
    "household": "Household",
    "other": "Other",
}
"""The object categories, as the data names them, to the columns of Tables 8 and 12, in their order."""

ATTRIBUTE_CATEGORIES = {
    "colors": "Colors",
    "numbers": "Numbers",
    "materials": "Materials",
    "physical": "Physical",
    "environmental": "Environmental",
    "other": "Other",
}
"""The attribute categories, as the data names them, to the columns of Tables 9 and 13, in their order."""

OTHER = "other"

SEVERAL = "several"
"""The stratum ``category`` of a sample whose changed words share more than one category; in no column of those tables."""

RELATIONS = ("left-right", "above-below", "front-behind")
"""The relations of the spatial subset (Appendix C.1)."""
