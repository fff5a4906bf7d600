"""Making hostile text harmless: for a terminal, a spreadsheet, LaTeX and Markdown.

Everything a model, a data set, a file name or an exception says goes through one of these before it is shown or exported.
"""

from __future__ import annotations

import re
import unicodedata

_BIDI_AND_INVISIBLE = {
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0x061C,
    0xFEFF,
    0x00AD,
}
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
_FORMULA_START = ("=", "+", "-", "@", "\t", "\r", "\n")


def clean(text: str, *, newlines: bool = False) -> str:
    """``text`` with every character that could steer a terminal made a visible escape.

    That is C0 and C1 controls (so no escape sequence survives), lone surrogates, bidirectional and zero-width
    characters. Tabs become spaces; newlines stay only where ``newlines``.
    """
    return "".join(_visible(character, newlines) for character in text)


def _visible(character: str, newlines: bool) -> str:
    code = ord(character)
    if character == "\n" and newlines:
        return character
    if character == "\t":
        return "    "
    if code < 0x20 or 0x7F <= code < 0xA0 or code in _BIDI_AND_INVISIBLE or unicodedata.category(character) == "Cs":
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return character


def spreadsheet_cell(text: str) -> str:
    """``text`` so that no spreadsheet takes it for a formula: a leading ``= + - @`` tab or newline gets an apostrophe.

    Other control characters become visible escapes; newlines inside a cell stay.
    """
    return ("'" if text.startswith(_FORMULA_START) else "") + clean(text, newlines=True)


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
