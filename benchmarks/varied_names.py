"""Names in builds whose examples are repeated under levels of factors."""

from __future__ import annotations

from benchmarks.protocols.repeats import split_repeat

FACTOR_NAMES = (
    "crop",
    "cover",
    "resolution",
    "blur",
    "jpeg",
    "distance",
    "text-source",
    "text-date",
    "length",
    "image-source",
    "image-date",
    "order",
)
"""The factors, in the order in which they are applied. Each is a key of ``Instance.strata`` whose value is the level."""

MANIFEST_KEY = "factors"
"""The key of a build's manifest that holds its design, if it was made by repeating another build."""

_MARK = "~cell-"


def in_cell(name: str, cell: int) -> str:
    """Return the id of an instance or an example in the cell of a design with this number."""
    return f"{name}{_MARK}{cell}"


def example_of(group: str) -> str:
    """Return the id of the example of which ``group`` is a repetition; ``group`` itself where it is none."""
    group, _ = split_repeat(group)
    name, mark, cell = group.rpartition(_MARK)
    return name if mark and cell.isdecimal() else group
