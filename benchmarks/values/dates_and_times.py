"""Dates, quarters, decades and times of day. The names of months are Babel's, in the languages that answers are in."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["date", "quarter", "decade", "time"]
Parts = tuple[int | None, ...]
"""Year, month and day of a date; year and quarter; century's first year and decade; hour and minute. None is not given."""

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")
_DECADES = ["twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties"]
_ORDER = "first|second|third|fourth|1st|2nd|3rd|4th"
_QUARTER_OF = {"first": 1, "second": 2, "third": 3, "fourth": 4}

_ISO = re.compile(r"(?<![\w.,-])([12][0-9]{3})([-/.])(0?[1-9]|1[0-2])(?:\2([0-2]?[0-9]|3[01]))?(?![\w]|[-/.,][0-9])")
_FIGURES = re.compile(
    r"(?<![\w.,/-])([0-3]?[0-9])([-/.]) ?([0-3]?[0-9])\2 ?([12][0-9]{3}|[0-9]{2})(?![\w]|[-/.,][0-9])"
)
_DAY_MONTH = re.compile(r"(?<![\w.,/-])(0[1-9]|[12][0-9]|3[01])/(0[1-9])(?![\w]|[-/.,][0-9])")
_MONTH_YEAR = re.compile(r"(?<![\w.,/-])(0?[1-9]|1[0-2])[/.]((?:19|20)[0-9]{2})(?![\w]|[-/.,][0-9])")
_CHINESE = re.compile(
    r"([12][0-9]{3})年(?:(1[0-2]|0?[1-9])月(?:([0-3]?[0-9])[日号])?)?|(?<![0-9])(1[0-2]|0?[1-9])月([0-3]?[0-9])[日号]"
)
_QUARTER = re.compile(
    rf"(?<![\w])(?:(?P<y1>[12][0-9]{{3}})[ -]?)?(?:q(?P<q1>[1-4])|(?P<q2>{_ORDER}) quarter|(?P<q3>[1-4])\. quartal)"
    r"(?:(?: of| in|,)? ?(?:fy ?)?(?P<y2>[12][0-9]{3}))?(?![\w])"
)
_HALF = re.compile(
    r"(?<![\w])(?:(?P<y1>[12][0-9]{3})[ -]?)?(?:h(?P<q1>[12])|(?P<q2>first|second) half)"
    r"(?:(?: of| in)? ?(?P<y2>[12][0-9]{3}))?(?![\w])"
)
_DECADE = re.compile(
    rf"(?<![\w.,])(?:(?P<year>[12][0-9]{{2}}0)|'?(?P<short>[0-9]0))'?s(?![\w])|(?<!\w)(?:(?P<century>nineteen|eighteen)[ -])?"
    rf"(?P<word>{'|'.join(_DECADES)})(?!\w)"
)
_WHEN = r"(?: in the (?P<when>morning|afternoon|evening)|(?P<night> at night))?"
_CLOCK = re.compile(
    r"(?<![\w.,:])(?P<hour>[01]?[0-9]|2[0-4])(?:[:h.](?P<minute>[0-5][0-9])(?::[0-5][0-9])?)?(?:(?: ?(?P<half>[ap])\.?m\b\.?)|"
    r"(?P<uhr> ?(?:uhr|o'clock|hrs|h(?=$|[\s.,]))(?: (?P<after>[0-5][0-9])(?![0-9]))?))?"
    rf"{_WHEN}(?![\w:]|[.,][0-9])"
)
_CJK_TIME = re.compile(
    r"(?P<half>午前|上午|早上|午後|下午|晚上)?(?P<hour>[0-9]{1,2})[時时点](?:(?P<minute>[0-5]?[0-9])分?|(?P<thirty>半))?"
)
_NAMED_TIMES = {"noon": (12, 0), "midday": (12, 0), "midnight": (0, 0)}
_NAMED_TIME = re.compile(r"(?<!\w)(?:12 )?(noon|midday|midnight)(?!\w)")
_HOURS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_MINUTES = {"five": 5, "ten": 10, "quarter": 15, "twenty": 20, "twenty-five": 25, "half": 30}
_PAST = re.compile(
    r"(?<!\w)(?P<part>half|(?:a )?quarter|(?:[0-9]{1,2}|five|ten|twenty|twenty-five)(?: minutes)?) (?P<side>past|to) "
    rf"(?P<hour>[0-9]{{1,2}}|{'|'.join(_HOURS)})(?: ?(?P<half>[ap])\.?m\b\.?)?{_WHEN}(?!\w)"
)
_ALSO_WORDS = frozenset({"may", "march", "mar", "set", "ago", "out", "mai", "abr", "dec", "jan", "nov"})
"""Names of months that a sentence may hold as other words."""
_DAY = r"(?P<{0}>[0-3]?[0-9])(?:st|nd|rd|th|\.|er|º)?"


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time of day, from ``start`` to ``end`` of a text; several ``readings`` where only context can tell."""

    start: int
    end: int
    kind: Kind
    readings: tuple[Parts, ...]


def find_moments(folded: str) -> list[Moment]:
    """Return the dates and times of a cleaned and folded text, in order and without overlap.

    A day that does not exist is none.
    """
    candidates = [m for find in (_dates, _periods, _times) for m in find(folded)]
    moments: list[Moment] = []
    for moment in sorted(candidates, key=lambda m: (m.start, m.start - m.end)):
        if not moments or moment.start >= moments[-1].end:
            moments.append(moment)
    return moments


def _dates(text: str) -> Iterator[Moment]:
    for match, readings in (*_numeric_dates(text), *_named_dates(text)):
        if existing := tuple(dict.fromkeys(parts for parts in readings if _exists(*parts))):
            yield Moment(*match.span(), "date", existing)


def _numeric_dates(text: str) -> Iterator[tuple[re.Match[str], list[Parts]]]:
    for match in _ISO.finditer(text):
        # "2014.5" and "2014-5" are no dates, "2014-03", "2014/03" and "2014.03.05" are.
        if match[4] or (match[2] in "-/" and len(match[3]) == 2):
            yield match, [(int(match[1]), int(match[3]), _integer(match[4]))]
    for match in _FIGURES.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        year += 0 if year >= 100 else 2000 if year < 70 else 1900
        yield match, [(year, second, first)] if match[2] == "." else [(year, second, first), (year, first, second)]
    for match in _DAY_MONTH.finditer(text):
        first, second = int(match[1]), int(match[2])
        yield match, [(None, second, first), (None, first, second)]
    for match in _MONTH_YEAR.finditer(text):
        yield match, [(int(match[2]), int(match[1]), None)]
    for match in _CHINESE.finditer(text):
        yield match, [(_integer(match[1]), _integer(match[2] or match[4]), _integer(match[3] or match[5]))]


def _named_dates(text: str) -> Iterator[tuple[re.Match[str], list[Parts]]]:
    pattern, months = _named_months()
    for match in pattern.finditer(text):
        month, day = months[(match["m1"] or match["m2"]).rstrip(".")], match["d1"] or match["d2"]
        year = match["y1"] or match["y3"] or (f"20{match['y2']}" if match["y2"] else "")
        if day or year or match[0] not in _ALSO_WORDS or len(text.split()) <= 3:
            yield match, [(_integer(year), month, _integer(day))]


def _integer(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _periods(text: str) -> Iterator[Moment]:
    for pattern, length in ((_QUARTER, 4), (_HALF, 2)):
        for match in pattern.finditer(text):
            number = match["q1"] or match["q2"] or (match["q3"] if length == 4 else "")
            year = match["y1"] or match["y2"]
            place = int(number) if number.isdigit() else _QUARTER_OF.get(number) or int(number[0])
            if match["q2"] and length == 2 and not year:
                continue  # the first half of a match
            yield Moment(*match.span(), "quarter", ((_integer(year), length, place),))
    for match in _DECADE.finditer(text):
        if match["year"]:
            parts: Parts = (int(match["year"][:2]), int(match["year"][2:]))
        elif match["short"]:
            parts = (None, int(match["short"]))
        else:
            century = {"nineteen": 19, "eighteen": 18}.get(match["century"] or "")
            parts = (century, 10 * (_DECADES.index(match["word"]) + 2))
        yield Moment(*match.span(), "decade", (parts,))


def _times(text: str) -> Iterator[Moment]:
    for match in _NAMED_TIME.finditer(text):
        yield Moment(*match.span(), "time", (_NAMED_TIMES[match[1]],))
    yield from _times_past_an_hour(text)
    yield from _cjk_times(text)
    yield from _clock_times(text)


def _times_past_an_hour(text: str) -> Iterator[Moment]:
    """Yield the times such as half past six."""
    for match in _PAST.finditer(text):
        hour = _HOURS.index(match["hour"]) + 1 if match["hour"] in _HOURS else int(match["hour"])
        part = match["part"].split()
        minutes = _MINUTES[part[-1]] if part[-1] in _MINUTES else _MINUTES.get(part[0]) or int(part[0])
        if not 1 <= hour <= 12 or minutes >= 60:
            continue
        total = hour * 60 + (minutes if match["side"] == "past" else -minutes)
        yield Moment(*match.span(), "time", _halves(total // 60 % 12 or 12, total % 60, _half(match)))


def _cjk_times(text: str) -> Iterator[Moment]:
    for match in _CJK_TIME.finditer(text):
        hour, minutes = int(match["hour"]), 30 if match["thirty"] else int(match["minute"] or 0)
        half = match["half"] and ("a" if match["half"] in ("午前", "上午", "早上") else "p")
        if hour <= 24 and minutes < 60 and not (half and not 1 <= hour <= 12):
            readings = _halves(hour, minutes, half) if half else ((hour % 24, minutes),)
            yield Moment(*match.span(), "time", readings)


def _clock_times(text: str) -> Iterator[Moment]:
    """Yield the times such as 6:30, 6 pm and 18 Uhr."""
    for match in _CLOCK.finditer(text):
        minute, half, uhr = match["minute"], _half(match), match["uhr"] or ""
        if not half and not uhr and not (minute and match[0][len(match["hour"])] in ":h"):
            continue
        hour, minutes = int(match["hour"]), int(minute or match["after"] or 0)
        if (uhr.strip() == "h" and not minute) or (half and not 1 <= hour <= 12):
            continue  # 5 h is a duration
        of_24 = (uhr and "clock" not in uhr) or hour > 12 or (len(match["hour"]) == 2 and hour < 10)
        readings = ((hour % 24, minutes),) if of_24 and not half else _halves(hour, minutes, half)
        yield Moment(*match.span(), "time", readings)


def _half(match: re.Match[str]) -> str | None:
    """Return "a" or "p" where a time says which half of the day it is in."""
    return match["half"] or ("a" if match["when"] == "morning" else "p" if match["when"] or match["night"] else None)


def _halves(hour: int, minute: int, half: str | None) -> tuple[Parts, ...]:
    """Return the times of day that an hour of twelve can be."""
    if hour > 12 or hour == 0:
        return ((hour % 24, minute),)
    readings = {"a": ((hour % 12, minute),), "p": ((hour % 12 + 12, minute),)}
    return readings[half] if half else readings["a"] + readings["p"]


def _exists(year: int | None, month: int | None, day: int | None) -> bool:
    if month is not None and not 1 <= month <= 12:
        return False
    return day is None or (month is not None and 1 <= day <= monthrange(year or 2000, month)[1])


@lru_cache(maxsize=1)
def _named_months() -> tuple[re.Pattern[str], dict[str, int]]:
    from babel import Locale

    months = {"sept": 9}
    for language in reversed(LANGUAGES):
        for width in ("wide", "abbreviated"):
            for context in ("format", "stand-alone"):
                for number, name in Locale(language).months[context][width].items():
                    if len(name) > 2 and not name.isdigit():
                        months[name.casefold().rstrip(".")] = number
    name = "|".join(sorted(map(re.escape, months), key=len, reverse=True))
    pattern = re.compile(
        rf"(?<![\w.,])(?:(?P<y3>[12][0-9]{{3}})[ ,-]+)?(?:(?:the )?{_DAY.format('d1')}[ -](?:of |de )?(?P<m1>{name})\b\.?"
        rf"|(?P<m2>{name})\b\.?(?:[ -](?:the )?{_DAY.format('d2')}(?![\w:]|[.,/][0-9]))?)"
        r"(?:(?:,|, | of | de | del | |-|/)(?P<y1>[12][0-9]{3})|[ -]?'(?P<y2>[0-9]{2}))?(?![\w])"
    )
    return pattern, months
