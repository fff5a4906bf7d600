"""Numbers and dates of a spreadsheet's cells as its owner sees them, by the cell's number format."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from benchmarks.values.words import word_set

BUILT_IN: Mapping[int, str] = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    17: "mmm-yy",
    49: "@",
}
"""The codes of the formats that files name by number only and that matter here."""

_HIDDEN = re.compile(r"\[(?!\$)[^\]]*\]|\\(?=.)|_.|\*.")
_CURRENCY = re.compile(r"\[\$([^\]-]*)(?:-[^\]]*)?\]")
_LOCALE = re.compile(r"\[\$-(?:[0-9a-f]*?([0-9a-f]{1,3})|([a-z]{2})(?:-\w+)*)(?:,\d+)?\]", re.IGNORECASE)
_COMMA = word_set("""
de fr it es nl pt pl cs da sv nb nn fi tr hu el ru uk ro sk hr bg sl
407 c07 40c 80c c0c 410 40a c0a 413 813 416 816 415 405 406 41d 414 814 40b 41f 40e 408 419 422 418 41b 41a 402 424
""")
"""The languages and regions whose numbers have a decimal comma, as formats name them."""
_NUMBER = re.compile(r"(?P<before>[^0#?]*)(?P<digits>[#0?][#0?,]*)(?:\.(?P<places>[0#?]+))?(?P<after>[^0#?]*)")


def displayed_number(value: float, code: str) -> str:
    """Return a number as the format ``code`` displays it, without separators of thousands.

    Decimals follow a point, or a comma where the format names a language that has one. Formats that are not understood, such as
    fractions, give the plain number; percentages are always such.
    """
    locale = _LOCALE.search(code)
    mark = "," if locale and ({(locale[1] or "").lower(), (locale[2] or "").lower()} & _COMMA) else "."
    section = _HIDDEN.sub("", _CURRENCY.sub(r"\1", code.split(";")[0]))
    text = re.sub(r'"([^"]*)"', lambda m: m[1].translate({ord("%"): "\0"}), section)
    percent = "%" in text
    scaled = value * 100 if percent else value
    match = _NUMBER.fullmatch(text)
    if (
        match is None
        or match["digits"].endswith(",")
        or match["after"].startswith(",")
        or "E+" in section
        or re.search("[0-9]", match["before"])
    ):
        return plain_number(scaled) + "%" * percent
    places = match["places"] or ""
    number = f"{scaled:.{min(len(places), 20)}f}"
    optional = len(places) - len(places.rstrip("#?"))
    for _ in range(optional):
        number = number[:-1] if number.endswith("0") else number
    number = number.rstrip(".") if places else number
    whole, point, fraction = number.lstrip("-").partition(".")
    number = "-" * (scaled < 0) + whole.zfill(match["digits"].count("0")) + point.replace(".", mark) + fraction
    shown = f"{match['before']}{number}{match['after']}".replace("\0", "%")
    return " ".join(shown.split())


def plain_number(value: float) -> str:
    """Return a number with the 15 digits that spreadsheets keep, without an exponent where that is short."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.15g}"
    return f"{value:.20f}".rstrip("0") if "e-" in text and abs(value) > 1e-9 else text


def displayed_moment(value: datetime.date | datetime.time | datetime.timedelta, code: str) -> str:
    """Return a date or time in ISO's order, as exactly as the format ``code`` displays it: a year, a month, a day, or a time."""
    if isinstance(value, datetime.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    letters = re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", code.lower())
    if isinstance(value, datetime.time):
        return value.isoformat("seconds" if "s" in letters or value.second else "minutes")
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    has_time = "h" in letters
    day = re.split("h", letters)[0] if has_time else letters
    has_year, has_day = "y" in letters, "d" in letters
    has_month = "m" in day
    if not letters or not (has_year or has_month or has_day):
        has_year = has_month = has_day = True
        has_time = has_time or bool(value.hour or value.minute)
    date = f"{value:%B} {value.day}" if has_day and not has_year else ""
    date = date or (f"{value:%Y-%m-%d}" if has_day else f"{value:%B %Y}" if has_month and has_year else "")
    date = date or (str(value.year) if has_year else f"{value:%B}")
    return f"{date} {value:%H:%M}" if has_time else date
