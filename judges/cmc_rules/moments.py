"""The dates and times of day of an answer, compared with the references that are dates or times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from judges.cmc_rules.clauses import moment_mark
from judges.cmc_rules.clock_times import find_times
from judges.cmc_rules.dates import Moment, find_dates, same_date

_MONTH_WITH_POINT = re.compile(r"(?<![0-9.,$€£¥₹])([12][0-9]{3})\.(0[1-9]|1[0-2])(?![0-9]|[.,][0-9]|%)")
_DATE_QUESTION = re.compile(r"\b(?:date|month|when|expir\w*|deadline|due|valid until)\b")
_MOST = 1_000
"""The number of moments that have a mark; the others of a text stay as they are."""


@dataclass(frozen=True, slots=True)
class MarkedMoment:
    """A date or a time of day as the answer writes it, with the number of the reference it states; None if none."""

    text: str
    reference: int | None


def parse_moment(folded: str, question: str) -> Moment | None:
    """Return the date or the time that a folded reference is, or None if it is something else.

    "2026.08" is a month if the folded question asks for a date, otherwise a number.
    """
    folded = _MONTH_WITH_POINT.sub(r"\1-\2", folded) if _DATE_QUESTION.search(question) else folded
    return next((m for m in _find_moments(folded) if (m.start, m.end) == (0, len(folded))), None)


def mark_moments(
    folded: str, references: Sequence[tuple[int, str, Moment]], question: str
) -> tuple[str, tuple[MarkedMoment, ...]]:
    """Return a folded answer with its dates and times replaced by their marks, ``moment_mark(i)``, and what they stand for.

    Nothing is marked unless a reference, given by its number, source and moment, is a date or a time. A moment that fits
    the references of two sources, or repeats the question, is not marked either.
    """
    kinds = {moment.kind for _, _, moment in references}
    if not kinds:
        return folded, ()
    if "date" in kinds:
        folded = _MONTH_WITH_POINT.sub(r"\1-\2", folded)
    asked = _find_moments(question)
    asked_readings = {reading for m in asked for reading in m.readings}
    asked_years = frozenset(year for m in asked if m.kind == "date" for year, _, _ in m.readings if year)
    pieces, marked, end = list[str](), list[MarkedMoment](), 0
    for moment in _find_moments(folded):
        if moment.kind not in kinds or moment.start < end or len(marked) == _MOST:
            continue
        fits = [(i, name) for i, name, ref in references if _agrees(ref, moment, asked_years)]
        if len({name for _, name in fits}) > 1 or (not fits and not _competes(moment, references, asked_readings)):
            continue
        pieces += [folded[end : moment.start], moment_mark(len(marked))]
        marked.append(MarkedMoment(folded[moment.start : moment.end], fits[0][0] if fits else None))
        end = moment.end
    return "".join([*pieces, folded[end:]]), tuple(marked)


def _find_moments(text: str) -> list[Moment]:
    return sorted(find_dates(text) + find_times(text), key=lambda m: m.start)


def _agrees(reference: Moment, moment: Moment, asked_years: frozenset[int]) -> bool:
    if reference.kind != moment.kind:
        return False
    if moment.kind == "time":
        return not set(reference.readings).isdisjoint(moment.readings)
    readings, own_readings = reference.readings, moment.readings
    if _has_both_orders(reference) and _has_both_orders(moment):
        readings, own_readings = readings[::2], own_readings[::2]  # two dates in figures have the same order
    return any(same_date(r, own, asked_years) for r in readings for own in own_readings)


def _has_both_orders(moment: Moment) -> bool:
    return any(month != day and (year, day, month) in moment.readings for year, month, day in moment.readings)


def _competes(moment: Moment, references: Sequence[tuple[int, str, Moment]], asked: set[tuple[int, int, int]]) -> bool:
    """Return whether a moment of no reference can be the answer: it states as much as they do, and is not the question's."""
    day_stated = all(moment.readings[0][2] or not ref.readings[0][2] for _, _, ref in references)
    return asked.isdisjoint(moment.readings) and (moment.kind == "time" or day_stated)
