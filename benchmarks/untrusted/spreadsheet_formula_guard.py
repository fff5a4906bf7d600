"""Lines of CSV files without formulas, whatever delimiter the spreadsheet program splits lines at.

Many programs split at the list separator of the user's locale, which is a semicolon where the comma is the decimal mark.
Quotes inside a line then have no meaning, and the text after a semicolon, tab, bar or line break starts a new cell. Programs
of East Asia also take the wide and the small forms of the signs that begin a formula.

Every CSV file that this project writes passes :func:`csv_line`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"
"""The characters that begin a formula: four signs with their wide and their small forms."""

_SIGN = re.escape(SIGNS)
_STARTS = re.compile(rf"\A(?=[{_SIGN}\t\r\n])|(?<=[;|\t\r\n])\"*(?=[{_SIGN}])")
_GUARDED = re.compile(rf"(\A|[;|\t\r\n]\"*)'(?=[{_SIGN}\t\r\n])")


def csv_line(cells: Iterable[object], guard: Callable[[str], str] | None = None) -> str:
    """Return a line of a CSV file with its line feed. Texts pass ``guard``, by default :func:`guard_formulas`."""
    line, guard = io.StringIO(), guard or guard_formulas
    csv.writer(line, lineterminator="\n").writerow(guard(cell) if isinstance(cell, str) else cell for cell in cells)
    return line.getvalue()


def guard_formulas(text: str) -> str:
    """Return ``text`` with an apostrophe before each part that a spreadsheet could evaluate as a formula."""
    return _STARTS.sub(lambda start: f"{start[0]}'", text)


def unguard_formulas(cell: str) -> str:
    """Return the text from which :func:`guard_formulas` made ``cell``."""
    return _GUARDED.sub(r"\1", cell)
