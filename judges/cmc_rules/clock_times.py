"""Times of day in running text: ``3:30 pm``, ``15:30``, ``3 o'clock``, ``half past three``, ``noon``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from judges.cmc_rules.dates import Moment, Reading

_HOURS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_HOUR_OF = {word: hour for hour, word in enumerate(_HOURS, 1)}
_MINUTES_OF = {"half": 30, "a quarter": 15, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}

_WORD, _OFFSET = "|".join(_HOURS), "|".join(sorted(_MINUTES_OF, key=len, reverse=True))


def _part(name: str) -> str:
    """Return the pattern of a part of the day as a group of that name."""
    return rf"(?P<{name}>[ap]\.?\ ?m(?![a-z])\.?|in\ the\ (?:early\ |late\ )?(?:morning|afternoon|evening))"


_TIME = re.compile(
    rf"""
    (?<![\w.:/-])
    (?: (?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])(?::[0-5][0-9])?(?:\ ?{_part("part")})?
      | (?P<point_hour>[01]?[0-9])\.(?P<point_minute>[0-5][0-9])\ ?{_part("point_part")}
      | (?P<whole>[01]?[0-9]|{_WORD})\ ?(?:o'clock(?:\ {_part("clock_part")})?|{_part("whole_part")})
      | (?P<offset>{_OFFSET})(?:\ minutes)?\ (?P<side>past|to)\ (?P<base>{_WORD}|1?[0-9])(?:\ ?{_part("side_part")})?
      | (?P<noon>(?:12\ )?(?:noon|midday))
      | (?P<midnight>(?:12\ )?midnight)
    )
    (?![\w:/]|[.][0-9])
    """,
    re.VERBOSE,
)


def find_times(text: str) -> list[Moment]:
    """Return the times of day of a folded text, in order; time is linear in its length.

    A time without "am" or "pm" before 13 o'clock has both readings.
    """
    matches = ((m, tuple(_readings(m))) for m in _TIME.finditer(text))
    return [Moment("time", *m.span(), readings) for m, readings in matches if readings]


def _readings(match: re.Match[str]) -> Iterator[Reading]:
    """Yield the possible (hour, minute, 0) of a time as written, with the hour from 0 to 23."""
    group = match.groupdict()
    if group["noon"] or group["midnight"]:
        yield (12 if group["noon"] else 0), 0, 0
        return
    written = group["hour"] or group["point_hour"] or group["whole"] or group["base"]
    hour, minute = _HOUR_OF.get(written) or int(written), int(group["minute"] or group["point_minute"] or 0)
    if group["side"]:
        minute = _MINUTES_OF[group["offset"]]
        if group["side"] == "to":
            hour, minute = hour - 1 or 12, 60 - minute
    part = next((group[name] for name in group if name.endswith("part") and group[name]), "")
    if hour > 12 or (written.startswith("0") and not part):
        yield hour % 24, minute, 0
        return
    morning = part.startswith("a") or "morning" in part
    if morning or not part:
        yield hour % 12, minute, 0
    if not morning:
        yield hour % 12 + 12, minute, 0
