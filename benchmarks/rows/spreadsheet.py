"""Text in the cells of CSV files: no formula in any program, whatever delimiter that program divides lines at.

Many spreadsheets divide at the list separator of the user's language, which is a semicolon where the comma is decimal. A quote
within a line then means nothing, and what stands behind a semicolon, tab, bar or line break of a text begins a cell.
"""

from __future__ import annotations

import re

_STARTS = re.compile(r"\A(?=[=+\-@\t\r\n])|(?<=[;|\t\r\n])\"*(?=[=+\-@])")
_GUARDED = re.compile(r"(\A|[;|\t\r\n]\"*)'(?=[=+\-@\t\r\n])")


def guarded(text: str) -> str:
    """Return ``text`` with an apostrophe before everything in it that a spreadsheet could take for a formula."""
    return _STARTS.sub(lambda start: f"{start[0]}'", text)


def unguarded(cell: str) -> str:
    """Return the text that :func:`guarded` made a cell of."""
    return _GUARDED.sub(r"\1", cell)
