"""Escaping of untrusted text for terminals, spreadsheets, LaTeX and Markdown; for HTML see ``app/exports/html_markup.py``.

Text from models, data sets, file names and exceptions passes through one of these functions before it is displayed or exported.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from benchmarks.untrusted.spreadsheet_formula_guard import csv_line, guard_formulas

_INVISIBLE = {
    0x034F,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    *range(0x180B, 0x1810),
    0x3164,
    *range(0xFE00, 0xFE0E),
    0xFFA0,
} | {
    *range(0xFFF0, 0xFFF9),
    *range(0xE0000, 0xE1000),
}
"""Default-ignorable code points of Unicode that are not format characters. U+FE0E and U+FE0F are not among them, because they
select the text or emoji form of a character in ordinary answers."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line break LaTeX would read an optional argument
    "]": "{]}",
    "`": r"\textasciigrave{}",
    "Δ": r"$\Delta$",
    "±": r"$\pm$",
    "\n": " ",
}
_T1_MISSING = "\u00ad\u0110\u0111\u0126\u0127\u0138\u013f\u0140\u0149\u0166\u0167\u017f"
_LATEX_PRINTABLE = ({chr(code) for code in (*range(0x20, 0x7F), *range(0xA1, 0x180))} - set(_T1_MISSING)) | set(
    "–—‘’‚“”„†‡•…‰‹›€™"
)
"""Characters that pdfLaTeX can print with the T1 encoding; any other would end it with an error."""


def clean(text: str, *, newlines: bool = False) -> str:
    """Return ``text`` with control and invisible characters replaced by visible escapes.

    These are C0 and C1 controls (so no escape sequence survives), lone surrogates, line and paragraph separators, format
    characters (bidirectional, zero-width, tags) and other invisible ones. Tabs become spaces; newlines stay only with
    ``newlines``.
    """
    if len(text) > _LONG:  # each character is looked at once
        return text.translate({ord(other): _visible(other, newlines) for other in set(text) if _NOT_PLAIN.match(other)})
    return _NOT_PLAIN.sub(lambda match: _visible(match[0], newlines), text)


_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")
_LONG = 20_000
_NOT_HARMLESS = re.compile(rf"{_NOT_PLAIN.pattern}|[=+\-@;|]")
"""The characters that a cell may have to be changed for; most cells have none."""


def _visible(character: str, newlines: bool) -> str:
    code = ord(character)
    if character == "\n" and newlines:
        return character
    if character == "\t":
        return "    "
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or code in _INVISIBLE:
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return character


def spreadsheet_line(cells: Iterable[object]) -> str:
    """Return a line of a CSV file, whose texts are escaped by :func:`spreadsheet_cell`."""
    return csv_line(cells, spreadsheet_cell)


def spreadsheet_cell(text: str) -> str:
    """Return ``text`` escaped so that no spreadsheet evaluates it as a formula.

    See :func:`benchmarks.untrusted.spreadsheet_formula_guard.guard_formulas`. Control characters become visible escapes; newlines
    inside a cell stay.
    """
    if not _NOT_HARMLESS.search(text):
        return text
    return ("'" if text.startswith(("\t", "\r")) else "") + guard_formulas(clean(text, newlines=True))


def latex(text: str) -> str:
    """Return ``text`` as LaTeX for any engine; characters that pdfLaTeX cannot print become code points, as ``U+4E2D``."""
    escaped = "".join(_latex_character(character) for character in clean(text, newlines=True))
    return re.sub("-(?=-)", "-{}", escaped)  # two hyphens would become a dash


def _latex_character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    return character if character in _LATEX_PRINTABLE else rf"\texttt{{U+{ord(character):04X}}}"


def markdown(text: str) -> str:
    """Return ``text`` escaped for a Markdown table cell, without markup, links and HTML."""
    escaped = re.sub(r"([\\`*_{}\[\]<>()#+!|~&@]|:(?=//)|(?<=www)\.)", r"\\\1", clean(text, newlines=True))
    return escaped.replace("\n", "<br>")


def size(count: int) -> str:
    """Return a number of bytes as text: 3.1 GB, 748 kB."""
    unit, name = next(
        ((unit, name) for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")) if count >= unit), (1, "")
    )
    return f"{count / unit:,.1f} {name}" if name in ("GB", "MB") else f"{count / unit:,.0f} {name or 'bytes'}"
