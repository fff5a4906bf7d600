"""Search for the header of a table that may have a title above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.errors import SourceError
from benchmarks.values.name_words import word_set

SEARCHED = 20
"""The maximum number of rows with content that are searched for the header."""

_USUAL_NAMES = word_set("""
image image_1 image_path img imgname picture page file question query prompt user_input answer answers label reference expected
ground_truth response passage context contexts options group subject document doc_id conflict trust id index
""")


def find_header(rows: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """Return how clear it is which of a table's first rows is its header (0 is clearest), and its place; None without content.

    It is the first row with two of the names that such tables usually have, or else the first with two cells, or with one.
    """
    filled = [[cell.strip().lower() for cell in row if cell.strip()] for row in rows]
    for rank, is_header in enumerate((are_usual_names, _has_two, bool)):
        for place, row in enumerate(filled):
            if is_header(row):
                return rank, place
    return None


def _has_two(row: Sequence[str]) -> bool:
    return len(row) > 1


def are_usual_names(names: Iterable[object]) -> bool:
    """Return whether two of the names are such as tables of questions usually have."""
    return len(_USUAL_NAMES.intersection(str(name).strip().lower() for name in names)) > 1


def column_names(cells: Iterable[str], file: str) -> list[str]:
    """Return the lower-case names of a table's columns. Raises SourceError if two are the same."""
    names = [cell.strip().lower() for cell in cells]
    repeated = next((name for name, count in Counter(filter(None, names)).items() if count > 1), None)
    if repeated is not None:
        raise SourceError(f"{file} has two columns called {repeated[:80]!r}; rename one.")
    return names
