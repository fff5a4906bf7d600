"""Text as values are read from it: one spelling of dashes, quotes and blanks, no LaTeX, no invisible characters, case kept."""

from __future__ import annotations

import re
import unicodedata

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹣－"), "-")
_QUOTES = {**dict.fromkeys(map(ord, "‘’‚‛`´′"), "'"), **dict.fromkeys(map(ord, "“”„‟«»″「」"), '"')}
_STOPS = {ord("。"): ". ", ord("，"): ", ", ord("："): ": ", ord("；"): "; ", ord("、"): ", "}
# NFKC alone would make 31/2 of 3½ and 102 of 10².
_FRACTIONS = {ord(c): " " + unicodedata.normalize("NFKC", c).replace("⁄", "/") for c in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
_SUPERSCRIPT = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_CHARACTERS = {**_DASHES, **_QUOTES, **_STOPS, **_FRACTIONS, ord("⁄"): "/", ord("×"): "x", ord("·"): "·"}
_BLANKS = re.compile(r"[^\S\n]+")

_FEET = re.compile(r"(?<![\w.])([0-9])' ?([0-9]{1,2}(?:\.[0-9])?)(?:\"|'')")

_AND_A_HALF = re.compile(
    r"\b(an?|one|two|three|four|[0-9]+) ((?:hour|year|month|week|day|minute)s?) and a half\b", re.IGNORECASE
)

_GROUP = r"\{([^{}]{0,400})\}"
_LATEX = (
    (re.compile(r"\{([,.])\}"), r"\1"),
    (re.compile(r"\\(?:times|cdot)(?![a-zA-Z])"), "x"),
    (re.compile(r"\\(?:approx|simeq|sim)(?![a-zA-Z])"), "≈"),
    (re.compile(r"\^?\{?\\circ(?![a-zA-Z])\}?"), "°"),
    (re.compile(r"\\(?:left|right|displaystyle|quad|qquad)(?![a-zA-Z])|\\[,;!:()\[\]]|\\(?=\s)"), " "),
    (re.compile(r"\\([%$&#_{}])"), r"\1"),
)
_LATEX_FRACTION = re.compile(r"\\[dtc]?frac" + _GROUP + _GROUP)
_LATEX_GROUPS = (
    (
        re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit|operatorname|mbox|rm|underline|boxed|fbox)\s?" + _GROUP),
        r"\1",
    ),
    (re.compile(r"\^\s?" + _GROUP), r"^\1"),
)
_SIMPLE = re.compile(r"[\w.,]*")

_INLINE_MATH = re.compile(r"\${1,2}(?=\S)([^$]{1,400}?)(?<=\S)\${1,2}(?![0-9])|\${1,2}(\s[^$]{0,400}?\s)\${1,2}")


def clean(text: str) -> str:
    """Return ``text`` in one spelling, with its case and its lines; time is linear in its length.

    Full-width and other compatibility forms are NFKC, superscripts are ``^2``, fractions ``1/2``, formulas are without LaTeX.
    """
    if "\\" in text or "{" in text:
        text = _without_latex(text)
    if "$" in text:
        text = _INLINE_MATH.sub(lambda m: m[1] or m[2] or "", text)
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda m: "^" + unicodedata.normalize("NFKC", m[0]).replace("−", "-"), text)
        text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).translate(_CHARACTERS)
        text = text.translate({ord(character): _visible(character) for character in set(text)})
    if "half" in text:
        text = _AND_A_HALF.sub(lambda m: f"{'1' if m[1][0] in 'aA' else m[1]} 1/2 {m[2]}", text)
    return _BLANKS.sub(" ", _FEET.sub(r"\1 ft \2 in", text))


def fold(text: str) -> str:
    """Return a cleaned text in folded case."""
    return text.casefold()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cf", "Cs", "Co", "Cn"):
        return ""
    return str(unicodedata.digit(character)) if category == "Nd" else character


def _without_latex(text: str) -> str:
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    for _ in range(3):
        text = _LATEX_FRACTION.sub(_fraction, text)
        for pattern, replacement in _LATEX_GROUPS:
            text = pattern.sub(replacement, text)
    return text


def _fraction(match: re.Match[str]) -> str:
    simple = all(_SIMPLE.fullmatch(match[place].strip()) for place in (1, 2))
    return f" {match[1]}/{match[2]} " if simple else f"({match[1]})/({match[2]})"
