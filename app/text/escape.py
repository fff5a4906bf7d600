"""Making hostile text harmless: for a terminal, a spreadsheet, LaTeX and Markdown.

Everything a model, a data set, a file name or an exception says goes through one of these before it is shown or exported.
"""

from __future__ import annotations

import re
import unicodedata

from benchmarks.rows.spreadsheet import guarded

_UNSEEN = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE0E), 0xFFA0} | {
    *range(0xFFF0, 0xFFF9),
    *range(0xE0000, 0xE1000),
}
"""What Unicode says is not shown (default-ignorable) and is no format character. The two selectors U+FE0E and U+FE0F are
not among them: they make an emoji of a letter or a letter of an emoji, as in ordinary answers."""
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
    "[": "{[}",  # after a line's end LaTeX would take it for an option
    "]": "{]}",
    "`": r"\textasciigrave{}",
    "Δ": r"$\Delta$",
    "±": r"$\pm$",
    "\n": " ",
}
_T1_LACKS = "\u00ad\u0110\u0111\u0126\u0127\u0138\u013f\u0140\u0149\u0166\u0167\u017f"
_LATEX_PRINTS = ({chr(code) for code in (*range(0x20, 0x7F), *range(0xA1, 0x180))} - set(_T1_LACKS)) | set(
    "–—‘’‚“”„†‡•…‰‹›€™"
)
"""What pdfLaTeX prints with the encoding T1 and nothing else; any other character would end it with an error."""


def clean(text: str, *, newlines: bool = False) -> str:
    """``text`` with every character that could steer a terminal, or hide something, made a visible escape.

    That is C0 and C1 controls (so no escape sequence survives), lone surrogates, line and paragraph separators, every format
    character (bidirectional, zero-width, tags) and whatever else is not shown. Tabs become spaces; newlines stay only where
    ``newlines``.
    """
    return "".join(_visible(character, newlines) for character in text)


def _visible(character: str, newlines: bool) -> str:
    code = ord(character)
    if 0x20 <= code < 0x7F or (character == "\n" and newlines):
        return character
    if character == "\t":
        return "    "
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or code in _UNSEEN:
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return character


def spreadsheet_cell(text: str) -> str:
    """Return ``text`` so that no spreadsheet takes any of it for a formula (:func:`benchmarks.rows.spreadsheet.guarded`).

    Other control characters become visible escapes; newlines inside a cell stay.
    """
    return ("'" if text.startswith(("\t", "\r")) else "") + guarded(clean(text, newlines=True))


def latex(text: str) -> str:
    """``text`` as LaTeX that prints it with any engine; what pdfLaTeX has no letter for is named, as ``U+4E2D``."""
    told = "".join(_latex_character(character) for character in clean(text, newlines=True))
    return re.sub("-(?=-)", "-{}", told)  # two would become a dash


def _latex_character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    return character if character in _LATEX_PRINTS else rf"\texttt{{U+{ord(character):04X}}}"


def markdown(text: str) -> str:
    """``text`` as it may stand in a Markdown table cell: nothing in it is markup, a link or HTML."""
    escaped = re.sub(r"([\\`*_{}\[\]<>()#+!|~&@]|:(?=//)|(?<=www)\.)", r"\\\1", clean(text, newlines=True))
    return escaped.replace("\n", "<br>")


def size(count: int) -> str:
    """Bytes in words: 3.1 GB, 748 kB."""
    unit, name = next(
        ((unit, name) for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")) if count >= unit), (1, "")
    )
    return f"{count / unit:,.1f} {name}" if name in ("GB", "MB") else f"{count / unit:,.0f} {name or 'bytes'}"
