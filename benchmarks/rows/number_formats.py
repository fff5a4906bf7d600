"""Numbers, dates and texts of a spreadsheet's cells as its owner sees them, by the cell's number format."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal

from benchmarks.values.name_words import word_set

_NUMBER_CODES = {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 48: "##0.0E+0"}
_DATE_CODES = {15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss"}
BUILT_IN: Mapping[int, str] = {
    **_NUMBER_CODES,
    **_DATE_CODES,
    **dict.fromkeys((5, 6, 37, 38, 41, 42), "#,##0;-#,##0"),
    **dict.fromkeys((7, 8, 39, 40, 43, 44), "#,##0.00;-#,##0.00"),
    12: "# ?/?",
    13: "# ??/??",
    45: "mm:ss",
    49: "@",
}
"""The codes of the formats that files name by number only; the currency of some is the locale's, which no file names."""

NOT_DISPLAYED = "#NUMBER FORMAT!"
"""The text of a cell whose display is uncertain."""

_SECTION = re.compile(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;])*')
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?[\d.]+)\]")
_HIDDEN = re.compile(r"\[(?!\$)[^\]]*\]|_.|\*.")
_CURRENCY = re.compile(r"\[\$([^\]-]*)(?:-[^\]]*)?\]")
_LOCALE = re.compile(r"\[\$-(?:[0-9a-f]*?([0-9a-f]{1,3})|([a-z]{2})(?:-\w+)*)(?:,\d+)?\]", re.IGNORECASE)
_COMMA = word_set("""
de fr it es nl pt pl cs da sv nb nn fi tr hu el ru uk ro sk hr bg sl
407 c07 40c 80c c0c 410 40a c0a 413 813 416 816 415 405 406 41d 414 814 40b 41f 40e 408 419 422 418 41b 41a 402 424
""")
"""The languages and regions whose numbers have a decimal comma, as formats name them."""
_LITERAL = re.compile(r'"([^"]*)"|\\(.)')
_NUMBER = re.compile(
    r"(?P<before>[^0#?]*)(?:(?P<general>General)|(?P<digits>[#0?][#0?,]*)(?:\.(?P<places>[0#?]*))?(?P<power>E[+-]0+)?"
    r"(?P<scale>,*))(?P<after>[^0#?]*)"
)
_FRACTION = re.compile(r"[#0?]*\s*(\?+|#+)/(\?+|#+)\s*")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
    "<=": operator.le,
    ">=": operator.ge,
    "<>": operator.ne,
}
_LARGEST = 1e15
"""The number above which a spreadsheet no longer knows all digits."""
_QUOTED = 0xE000
"""Where characters of a code's literals are moved to, so that they are no placeholders."""


def displayed_number(value: float, code: str) -> str:
    """Return a number as the format ``code`` displays it, without separators of thousands.

    Decimals follow a point, or a comma where the format names a language that has one. A negative number keeps its sign where
    the format writes brackets. The result is empty where the format displays nothing, and ``NOT_DISPLAYED`` where it is not
    sure what it displays.
    """
    locale = _LOCALE.search(code)
    has_comma = locale is not None and not _COMMA.isdisjoint((part or "").lower() for part in locale.groups())
    section, is_negative = _section(value, code)
    if section is None:
        return NOT_DISPLAYED
    text = _CURRENCY.sub(lambda match: _moved(match[1]), section)
    text = _HIDDEN.sub("", _LITERAL.sub(lambda match: _moved(match[1] or match[2] or ""), text))
    if _FRACTION.fullmatch(text):
        return _fraction(value, largest=9 if text.count("?") < 4 else 99)
    if not re.search(r"[0#?]|General", text):
        # A date's letters are those of a number that is no date, which spreadsheets display as #####.
        return NOT_DISPLAYED if re.search("[@%ymdhs]", text, re.IGNORECASE) else _shown(text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        return NOT_DISPLAYED
    if abs(value) >= _LARGEST and not match["general"] and not match["power"]:
        return NOT_DISPLAYED
    before, after = match["before"], match["after"]
    number = _positive(abs(Decimal(f"{value:.15g}")) * 100 ** (before + after).count("%"), match, has_comma=has_comma)
    if is_negative and re.search("[1-9]", number):
        return _negative(before, number, after, code)
    return _shown(f"{before}{number}{after}")


def _negative(before: str, number: str, after: str, code: str) -> str:
    """Return a number with its sign in place of that of the format, and what the format writes beside it."""
    if "(" in before and ")" in after:
        before, after = before.replace("(", "", 1), after.replace(")", "", 1)
    elif "-" in _shown(before):
        before = before.replace("-", "", 1) if "-" in before else before.replace(_moved("-"), "", 1)
    elif ";" in code:
        return NOT_DISPLAYED  # in red, which a reader of the text does not see
    return _shown(f"{before if before.strip() else ''}-{number}{after}")


def _positive(value: Decimal, placeholders: re.Match[str], *, has_comma: bool) -> str:
    """Return a positive number as the placeholders of a format write it."""
    places = placeholders["places"] or ""
    if placeholders["general"]:
        return plain_number(float(value))
    if placeholders["power"]:
        return plain_number(float(f"{value:.{len(places)}e}"))
    digits = placeholders["digits"].rstrip(",")
    commas = len(placeholders["digits"]) - len(digits) + len(placeholders["scale"])
    number = _rounded(value / 1000**commas, digits, places)
    return number.replace(".", ",") if has_comma else number


def _fraction(value: float, *, largest: int) -> str:
    """Return a number that is displayed as a fraction, NOT_DISPLAYED if its denominator is beyond the ``largest``."""
    exact = any((value * part).is_integer() for part in range(1, largest + 1))
    return plain_number(value) if exact else NOT_DISPLAYED


def _section(value: float, code: str) -> tuple[str | None, bool]:
    """Return the part of a code that displays ``value``, None if that is uncertain, and whether the value is negative."""
    sections = _sections(code)
    conditions = [_CONDITION.search(section) for section in sections]
    if any(conditions):
        for section, condition in zip(sections, conditions, strict=True):
            if condition is None or _COMPARE[condition[1]](value, float(condition[2])):
                return (section, False) if value >= 0 else (None, True)
        return None, value < 0
    if value < 0 and len(sections) > 1:
        return sections[1], True
    if value == 0 and len(sections) > 2:
        return sections[2], False
    return sections[0], value < 0


def _sections(code: str) -> list[str]:
    sections, place = [], 0
    while match := _SECTION.match(code, place):
        sections.append(match[0])
        if match.end() >= len(code):
            break
        place = match.end() + 1
    return sections


def _rounded(value: Decimal, digits: str, places: str) -> str:
    """Return a positive number with the places of a format, rounded as spreadsheets do: halves away from zero."""
    number = f"{value.quantize(Decimal(1).scaleb(-min(len(places), 20)), ROUND_HALF_UP):f}"
    for _ in range(len(places) - len(places.rstrip("#?"))):
        number = number[:-1] if number.endswith("0") else number
    whole, point, fraction = (number.rstrip(".") if places else number).partition(".")
    return whole.zfill(digits.count("0")) + point + fraction


def _moved(literal: str) -> str:
    return "".join(chr(_QUOTED + ord(c)) if ord(c) < 128 else c for c in literal)


def _shown(text: str) -> str:
    shown = "".join(chr(ord(c) - _QUOTED) if _QUOTED <= ord(c) < _QUOTED + 128 else c for c in text)
    return " ".join(shown.split())


def displayed_text(text: str, code: str) -> str:
    """Return a text as the format ``code`` displays it: the fourth of its sections, or the only one with an at sign."""
    sections = _sections(code)
    section = sections[3] if len(sections) > 3 else next((part for part in sections if "@" in part), "@")
    parts = _HIDDEN.sub("", _LITERAL.sub(lambda match: _moved(match[1] or match[2] or ""), section))
    return text if parts == "@" else _shown(parts).replace("@", text)


def plain_number(value: float) -> str:
    """Return a number with the 15 digits that spreadsheets keep, without an exponent where that is short."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.15g}"
    return f"{value:.20f}".rstrip("0") if "e-" in text and abs(value) > 1e-9 else text


_TOKEN = re.compile(r'"([^"]*)"|\\(.)|\[[^\]]*\]|am/pm|a/p|y+|m+|d+|h+|s+|_.|\*.|.', re.IGNORECASE)
_PARTS = {
    "yy": "%y", "yyyy": "%Y", "mm": "%m", "mmm": "%b", "mmmm": "%B", "dd": "%d", "ddd": "%a", "dddd": "%A",
    "hh": "%H", "nn": "%M", "ss": "%S",
}  # fmt: skip


def displayed_moment(value: datetime.date | datetime.time | datetime.timedelta, code: str) -> str:
    """Return a date or time as exactly as the format ``code`` displays it.

    A full date is in ISO's order, and a time has 24 hours. A part of a date is as the format writes it, in English.
    """
    if isinstance(value, datetime.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    tokens, letters, has_text = _tokens(code)
    if isinstance(value, datetime.time):
        value = datetime.datetime.combine(datetime.date(2000, 1, 1), value)
        letters = letters & set("hns") or {"h", "n"} | ({"s"} if value.second else set())
    elif not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    letters = letters or {"y", "m", "d"} | ({"h"} if value.hour or value.minute else set())
    time = f"{value:%H:%M}" + (f":{value:%S}" if "s" in letters else "")
    dated = letters & {"y", "m", "d", "w"}
    if {"y", "m", "d"} <= dated:
        return f"{value:%Y-%m-%d} {time}" if "h" in letters else f"{value:%Y-%m-%d}"
    if not dated and {"h", "n"} <= letters:
        return time
    if not has_text and "h" not in letters and dated in ({"y", "m"}, {"m", "d"}, {"y"}):
        return f"{value:%B} {value.day}" if "d" in dated else f"{value:%B %Y}" if "m" in dated else str(value.year)
    return _shown("".join(_part(token, value, is_half_day="am/pm" in tokens) for token in tokens))


def _tokens(code: str) -> tuple[list[str], set[str], bool]:
    """Return the parts of a date's format, what they display, and whether texts with letters are among them.

    Of the letters, w is the name of a weekday and n are minutes, which formats write as they do months.
    """
    tokens: list[str] = []
    for match in _TOKEN.finditer("" if code == "General" else _sections(code)[0]):
        token = match[0].lower()
        if match[1] is not None or match[2] is not None:
            tokens.append(_moved(match[1] or match[2] or ""))
        elif not token.startswith(("[", "_", "*")):
            is_minute = token in ("m", "mm") and next((t for t in tokens[::-1] if t[0] in "ymdhs"), "").startswith("h")
            tokens.append("n" * len(token) if is_minute else token)
    _mark_minutes(tokens)
    letters = {"w" if token.startswith("ddd") else token[0] for token in tokens if token[:1] in tuple("ymdhns")}
    has_text = any(any(c.isalnum() for c in _shown(token)) for token in tokens if ord(token[:1] or " ") > 127)
    return tokens, letters, has_text


def _mark_minutes(tokens: list[str]) -> None:
    """Write the months before seconds as minutes, in place."""
    last = -1
    for place, token in enumerate(tokens):
        if token[:1] == "s" and last >= 0 and tokens[last] in ("m", "mm"):
            tokens[last] = "n" * len(tokens[last])
        if token[:1] in tuple("ymdhn"):
            last = place


def _part(token: str, value: datetime.datetime, *, is_half_day: bool) -> str:
    """Return what a part of a format displays of a moment."""
    if token in ("am/pm", "a/p"):
        return f"{value:%p}"
    if token[:1] == "h" and is_half_day:
        return str(value.hour % 12 or 12)
    plain = {"m": value.month, "d": value.day, "h": value.hour, "n": value.minute, "s": value.second}
    if token in plain:
        return str(plain[token])
    if token[:1] in tuple("ymdhns"):
        kind = token[0] * (4 if token[0] == "y" and len(token) > 2 else min(len(token), 4))
        return value.strftime(_PARTS.get(kind, "%Y"))
    return token
