"""Normal forms of short answers, as keys and as folded text; numbers and the coarse types of CMC-Bench (section 3.2).

Whether two answers are the same value is :func:`benchmarks.values.compare`'s to say; equal forms are not: ``$5`` and ``5%``
have the same one. The functions are pure, never fail on hostile text, and take time linear in its length.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

CoarseType = Literal["year", "number", "yes/no", "text"]

_LONGEST_NUMBER = 64
_LONGEST_CACHED = 200

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹣－"), "-")
# NFKC alone would make 102 of 10².
_SUPERSCRIPTS = {ord(c): f"^{digit}" for digit, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_QUOTES = {**dict.fromkeys(map(ord, "“”„‟«»"), '"'), **dict.fromkeys(map(ord, "‘’‚‛`´"), "'")}
_CHARACTERS = {**_DASHES, **_SUPERSCRIPTS, **_QUOTES}

_MARKS = r"\"',;:!?*_\[\](){}"
_LEADING = re.compile(rf"(?:[\s{_MARKS}]|\.(?![0-9])|(?:the|an?)(?=\s+\S))*+")
_TRAILING = f" .{_MARKS}".replace("\\", "")

_CURRENCY = r"(?:(?<![a-z0-9])(?:us|ca?|au?|nz|hk))?[$€£¥₹₩₽₺¢] ?"
_CURRENCY_OF_NUMBER = re.compile(rf"{_CURRENCY}(?=[-+.0-9])")
_OTHER_CURRENCY = re.compile(_CURRENCY)
_SHORT_MONEY = re.compile(rf"{_CURRENCY}([0-9][0-9.,]*+) ?([kmb])(?![^\W_])")
_SHORT_MAGNITUDE = {"k": "thousand", "m": "million", "b": "billion"}
_PERCENT_SIGN = re.compile(r"(?<=[0-9])(?: ?(?:%|(?:per ?cent|pct)(?![^\W_])))++")
_NUMBER = re.compile(r"(?<![0-9.,])(?:([0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)(\.[0-9]++)?|(\.[0-9]++))(?![.,]?[0-9])")

_MAGNITUDES = {
    **dict.fromkeys(("thousand", "thousands"), 1e3),
    **dict.fromkeys(("mn", "mln", "million", "millions"), 1e6),
    **dict.fromkeys(("bn", "billion", "billions"), 1e9),
    **dict.fromkeys(("tn", "trn", "trillion", "trillions"), 1e12),
}
_QUANTITY = re.compile(
    r"([+-]?[0-9]+(?:\.[0-9]+)?)"
    rf"(?:(k)(?![^\W_])| ?({'|'.join(sorted(_MAGNITUDES, key=len, reverse=True))})(?![^\W_]))?"
    r"( ?)((?:(?:us|metric|square|cubic|degrees) )?°?[^\W\d_][^\s,;:!?]*)?"
)
_ORDINALS = frozenset({"st", "nd", "rd", "th"})


def normalise(answer: str) -> str:
    """Return the normal form of a short answer; the function is idempotent, and only a blank answer's form is empty.

    The form ignores case, white space, Unicode compatibility forms (NFKC), surrounding quotes, brackets and punctuation, a
    leading article, thousands separators, currency signs, percent signs after a number, and trailing zeros of a fraction.
    """
    return _cached_normal_form(answer) if len(answer) <= _LONGEST_CACHED else _normal_form(answer)


def number(answer: str) -> float | None:
    """Return the value of an answer that is a single number, else None; built data rely on how it is read.

    The number may carry a currency, a percent sign, a magnitude (``1.4 billion`` is 1.4e9) and a unit of one word
    (``40 km/h`` is 40). Ranges, ordinals, decades (``1990s``) and numbers within a sentence are not numbers.
    """
    match = _QUANTITY.fullmatch(normalise(answer)) if len(answer) <= _LONGEST_NUMBER else None
    if match is None:
        return None
    digits, kilo, magnitude, space, unit = match.groups(default="")
    decade = unit == "s" and not space and digits.endswith("0")
    if decade or unit in _ORDINALS:
        return None
    return float(digits) * (1e3 if kilo else _MAGNITUDES.get(magnitude, 1.0))


def coarse_type(answer: str) -> CoarseType:
    """Return the coarse type of an answer (CMC-Bench, section 3.2); a year is four digits in [1900, 2100]."""
    text = _stripped(_folded(answer))
    if len(text) == 4 and text.isascii() and text.isdigit() and 1900 <= int(text) <= 2100:
        return "year"
    if text in ("yes", "no"):
        return "yes/no"
    return "text" if number(answer) is None else "number"


def _normal_form(answer: str) -> str:
    text = _folded(answer)
    # A combining accent may follow the "b" of "$2b" and must then join the "n" of "billion".
    text = unicodedata.normalize("NFKC", _SHORT_MONEY.sub(lambda m: f"{m[1]} {_SHORT_MAGNITUDE[m[2]]}", text))
    bare = _OTHER_CURRENCY.sub(" ", _CURRENCY_OF_NUMBER.sub("", text))
    text = _stripped(_PERCENT_SIGN.sub("", " ".join(bare.split()) or text))
    return _NUMBER.sub(_canonical, text)


# The same references are compared with every answer of their example.
_cached_normal_form = lru_cache(maxsize=4096)(_normal_form)


def _folded(answer: str) -> str:
    """Return the answer in NFKC and folded case, with plain dashes and quotes and single spaces."""
    visible = "".join(
        c for c in answer if unicodedata.category(c) not in ("Cf", "Cs") and (c.isspace() or c.isprintable())
    )
    text = unicodedata.normalize("NFKC", visible.translate(_CHARACTERS))
    # Case folding can produce text that NFKC changes, and vice versa.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.casefold())
    return " ".join(text.translate(_CHARACTERS).split())


def _stripped(text: str) -> str:
    """Return the text without surrounding punctuation and leading articles, unless nothing else remains."""
    leading = _LEADING.match(text)
    bare = text[leading.end() if leading else 0 :].rstrip(_TRAILING)
    return bare or text


def _canonical(match: re.Match[str]) -> str:
    """Return a number without thousands separators and trailing zeros of its fraction."""
    integer, fraction = (match[1] or "0").replace(",", ""), (match[2] or match[3] or "").rstrip("0").rstrip(".")
    return integer + fraction
