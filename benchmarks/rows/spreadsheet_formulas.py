"""Protection against formulas in the cells of CSV files, whatever delimiter the spreadsheet program splits lines at.

Many programs split at the list separator of the user's locale, which is a semicolon where the comma is the decimal mark.
Quotes inside a line then have no meaning, and the text after a semicolon, tab, bar or line break starts a new cell.
"""

from __future__ import annotations

import re

_STARTS = re.compile(r"\A(?=[=+\-@\t\r\n])|(?<=[;|\t\r\n])\"*(?=[=+\-@])")
_GUARDED = re.compile(r"(\A|[;|\t\r\n]\"*)'(?=[=+\-@\t\r\n])")


def guard_formulas(text: str) -> str:
    """Return ``text`` with an apostrophe before each part that a spreadsheet could evaluate as a formula."""
    return _STARTS.sub(lambda start: f"{start[0]}'", text)


def unguard_formulas(cell: str) -> str:
    """Return the text from which :func:`guard_formulas` made ``cell``."""
    return _GUARDED.sub(r"\1", cell)
