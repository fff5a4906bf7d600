"""Dates in running text: ``12 March 2021``, ``Mar. 12th, 2021``, ``2021-03-12``, ``12/3/21``, ``March 2021``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from judges.cmc_rules.lazy_pattern import lazy

Reading = tuple[int, int, int]
"""Year, month and day, each 0 if it is not stated; or hour, minute and 0."""

_MONTHS = """
january jan januar janvier enero gennaio
february feb februar février fevrier febrero febbraio
march mar märz maerz mars marzo
april apr avril abril aprile
may mai mayo maggio
june jun juni juin junio giugno
july jul juli juillet julio luglio
august aug août aout agosto
september sep sept septembre septiembre settembre
october oct oktober okt octobre octubre ottobre
november nov novembre noviembre
december dec dezember dez décembre decembre diciembre dicembre
"""
_NUMBER_OF = {name: number for number, line in enumerate(_MONTHS.strip().split("\n"), 1) for name in line.split()}
_DAYS_IN = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_NAME = "|".join(sorted(_NUMBER_OF, key=len, reverse=True))
_DAY = r"[0-9]{1,2}"
_YEAR = r"[12][0-9]{3}(?![0-9])"
_SHORT_YEAR = rf"(?:{_YEAR}|'[0-9]{{2}}(?![0-9]))"
_NO_RANGE = r"(?![0-9%:]|[.,][0-9]|\s?-\s?[0-9]{1,2}(?![0-9]))"
_WEEKDAY = r"(?:(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?\.?,?\s)?"
_DATE = lazy(
    rf"""
    (?<![\w./-]){_WEEKDAY}(?:the\s)?
    (?: (?P<iso_year>{_YEAR})(?P<iso>[-/.])(?P<iso_month>{_DAY})(?P=iso)(?P<iso_day>{_DAY})(?:t[0-9:.]{{1,15}}z?)?
      | (?P<first>{_DAY})(?P<mark>[-/.])(?P<second>{_DAY})(?P=mark)(?P<last_year>{_YEAR}|(?<!-)[0-9]{{2}})
      | (?P<month_year>[12][0-9]{{3}})[-/](?P<year_month>0[1-9]|1[0-2])
      | (?P<month_first>0[1-9]|1[0-2])/(?P<year_last>{_YEAR})
      | (?P<day>{_DAY})(?:st|nd|rd|th|\.)?(?:\s(?:day\s)?(?:of\s|de\s)?|-)(?P<month>{_NAME})(?![a-z])\.?
        (?:(?:,?\s(?:of\s|de\s)?|-|/)(?P<year>{_SHORT_YEAR})|-(?P<hyphen_year>[0-9]{{2}})(?![0-9]))?
      | (?P<name>{_NAME})\.?[\s-](?:the\s)?(?P<name_day>{_DAY})(?:st|nd|rd|th)?(?:,?\s|,|-|/)(?P<name_year>{_SHORT_YEAR})
      | (?P<bare_name>{_NAME})\.?[\s-](?:the\s)?(?P<bare_day>{_DAY})(?:st|nd|rd|th)?{_NO_RANGE}
      | (?P<only_name>{_NAME})\.?(?:,?\s(?:of\s|de\s)?|-|/)(?P<only_year>{_SHORT_YEAR})
    )
    (?![\w/]|[.-][0-9])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time of day in a text, with its possible readings."""

    kind: Literal["date", "time"]
    start: int
    end: int
    readings: tuple[Reading, ...]


def find_dates(text: str) -> list[Moment]:
    """Return the dates of a folded text that state a month and a day or a year, in order; time is linear in its length.

    "12/3/21" has the readings of both orders and both centuries; with points ("12.3.21"), the day is first.
    """
    matches = ((m, tuple(r for r in _readings(m) if _exists(r))) for m in _DATE.finditer(text))
    return [Moment("date", *m.span(), readings) for m, readings in matches if readings]


def same_date(reference: Reading, answer: Reading, asked_years: frozenset[int]) -> bool:
    """Return whether an answer's date is the reference's; parts are year, month and day, each 0 if it is not stated.

    The answer states every part of the reference, except a year beside a day. A year that only the answer states is one of
    the question's, if it names any.
    """
    (year, month, day), (own_year, own_month, own_day) = reference, answer
    if month != own_month or (day and day != own_day):
        return False
    if year and own_year:
        return year == own_year
    if year:
        return bool(day)
    return not own_year or not asked_years or own_year in asked_years


def _readings(match: re.Match[str]) -> Iterator[Reading]:
    """Yield the possible (year, month, day) of a date as written."""
    part = match.groupdict()
    if part["iso_year"]:
        yield int(part["iso_year"]), int(part["iso_month"]), int(part["iso_day"])
    elif part["first"]:
        first, second = int(part["first"]), int(part["second"])
        orders = [(second, first)] if part["mark"] == "." else list(dict.fromkeys([(second, first), (first, second)]))
        yield from ((year, *order) for year in _years(part["last_year"]) for order in orders)
    elif part["month_year"]:
        yield int(part["month_year"]), int(part["year_month"]), 0
    elif part["month_first"]:
        yield int(part["year_last"]), int(part["month_first"]), 0
    else:
        month = _NUMBER_OF[part["month"] or part["name"] or part["bare_name"] or part["only_name"]]
        day = int(part["day"] or part["name_day"] or part["bare_day"] or 0)
        written = part["year"] or part["hyphen_year"] or part["name_year"] or part["only_year"]
        yield from ((year, month, day) for year in _years(written))


def _years(written: str | None) -> tuple[int, ...]:
    """Return the years that the digits can mean: '21 is 1921 or 2021, and no digits are 0."""
    digits = (written or "0").lstrip("'")
    return (int(digits),) if len(digits) != 2 else (1900 + int(digits), 2000 + int(digits))


def _exists(reading: Reading) -> bool:
    _, month, day = reading
    return 1 <= month <= 12 and day <= _DAYS_IN[month - 1]
