"""Contexts in which a text spells a value without stating it: bounds, ranges, denials, changes, parts of other things."""

from __future__ import annotations

import re

from benchmarks.values.clean_text import clean
from benchmarks.values.dates_and_times import Moment
from benchmarks.values.name_words import word_set
from benchmarks.values.numerals import find_numbers
from benchmarks.values.parse_value import Amount, Polarity, Words, parse
from benchmarks.values.question_facts import read_question
from benchmarks.values.units import PERCENT, Unit, money_agrees, unit_at_start

BOUND = "which is only a bound"
RANGE = "which is one end of a range, or one of two values"
DENIED = "which it denies, or replaces by another value"
FORMER = "which is the value before a change, or of an earlier time"
CHANGE = "which is the size of a change"
SIGN = "which fell, so that the sign may differ"
PART = "which is part of another thing, such as a page number or a name"
OTHER_UNIT = "in another unit than the question asks for"
CASE = "which may be another word, by its capital letters"

_LONGEST_ACRONYM = 5
_AROUND = 80
"""The characters on each side of a value that its context is read from."""
_SIGN = r"[$€£¥]? ?"
_MORE_OR_LESS = re.compile(
    r"\b(?:over|under|above|below|(?:more|less|fewer|higher|lower|greater) than|at (?:least|most)|up to|almost|nearly|close to|"
    r"über|unter|mehr als|weniger als|mindestens|höchstens|maximal|bis zu|fast|beinahe|knapp)\s+" + _SIGN + r"$"
    r"|[<>≤≥]=?\s*" + _SIGN + "$",
    re.IGNORECASE,
)
_RANGE_AFTER = re.compile(r"\s?(?:[-–—]|\b(?:to|bis|or|oder)\b)\s?[$€£¥]?[0-9]", re.IGNORECASE)
_RANGE_BEFORE = re.compile(
    rf"(?<![^\W\d_])[0-9][^\s]{{0,6}}\s?(?:[-–—]|\b(?:to|bis|or|oder)\b)\s?{_SIGN}$"
    rf"|\b(?:between|zwischen)\s[^.;]{{0,24}}\b(?:and|und)\s{_SIGN}$|\b(?:between|zwischen)\s{_SIGN}$",
    re.IGNORECASE,
)
_FROM = re.compile(rf"\b(?:from|von)\s{_SIGN}$", re.IGNORECASE)
_FROM_BEFORE = re.compile(r"\b(?:from|von)\s(?:[^.;]|\.(?=[0-9])){0,40}$", re.IGNORECASE)
_TO = re.compile(r"(?:[^.;]|\.(?=[0-9])){0,40}?\b(?:to|auf|auf den)\s+[$€£¥]?[0-9]", re.IGNORECASE)
_MOVED = re.compile(
    r"\b(?:moved|postponed|delayed|changed|brought|verschoben|verlegt)\b[^.;]{0,20}\b(?:from|von|vom)\s$", re.IGNORECASE
)
_FORMER_BEFORE = re.compile(
    rf"\b(vorjahr\w*|previous(?:ly)?|formerly|früher|zuvor|last year)\W{{0,3}}(?:was|had|at|bei)?\s*{_SIGN}$",
    re.IGNORECASE,
)
_FORMER_AFTER = re.compile(
    r"[^.;,(\d]{0,24}\b((?:the )?(?:previous )?year (?:before|earlier)|last year|(?:im )?vorjahr)", re.IGNORECASE
)
_DENIAL = re.compile(
    r"(?:\b(?:not|never|nicht|nie|kein\w*|statt|instead of|rather than|no longer)|n't)\b[^.;:,\d]{0,20}$", re.IGNORECASE
)
_FORECAST = re.compile(
    r"\b(?:forecast|expected|projected|planned|budgeted|erwartet|geplant|prognos)\w*[^.;\d]{0,20}$", re.I
)
_CONTRAST = re.compile(r"[^.\d]{0,40}\b(?:but|however|yet|instead|aber|jedoch|sondern)\b", re.IGNORECASE)
_FALLS = (
    r"\b(?:f[ae]ll\w*|declin\w*|decreas\w*|drop\w*|lost|los(?:s|ses)|s[aiu]nk\w*|gesunken|down|shr[aiu]nk\w*|slump\w*|reduc\w*"
    r"|deficit|verlust\w*|rückgang\w*|gefallen|fiel\w*|minus|contract(?:ed|ion)|cut)\b"
)
_RISES = (
    r"\b(?:rose|ris\w+|gr[eo]w\w*|increas\w*|gain\w*|climb\w*|up|jump\w*|stieg\w*|gestiegen|wuchs|wachs\w*|zuwachs)\b"
)
_FALL = re.compile(_FALLS, re.IGNORECASE)
_FELL = re.compile(
    rf"{_FALLS}(?:\s+(?:was|is|of|by|lag|bei|betrug|um|von|about|some|a|rund|etwa)\b){{0,3}}\W{{0,2}}{_SIGN}$",
    re.IGNORECASE,
)
_BY = re.compile(rf"(?:{_FALLS}|{_RISES})[^.;\d]{{0,30}}\b(?:by|um)\s(?:\w+\s)?{_SIGN}$", re.IGNORECASE)
_ASKS_CHANGE = re.compile(
    rf"{_FALLS}|{_RISES}|\b(?:chang|differ|veränder|änder|improv|rate|more|less|wie viel mehr)", re.IGNORECASE
)
_LABEL = re.compile(
    r"(?<!\w)(pages?|pp?\.|tables?|fig(?:ure|\.)?|section|chapter|footnote|room|version|iso|din|no\.|nr\.|§|article|appendix"
    r"|seiten?|tab(?:elle|\.)|abb(?:ildung|\.)|kapitel|abschnitt|fußnote|raum|zimmer|artikel)\s*$",
    re.IGNORECASE,
)
_JOINED_BEFORE = re.compile(r"[^\W\d_]-$")
_JOINED_AFTER = re.compile(r"-[^\W\d_]+-[^\W\d_]+")
_YEAR = re.compile("(?:1[0-9]|20)[0-9]{2}")
_OPENING = re.compile(r"(?:^|[.!?\n]\s)([A-Z][^\W\d_]+) $")
_ENDS_NAME = re.compile(r" (?:was|had|has|war|hat|hatte)\b")
_NO_NAMES = word_set("in only about around some all exactly roughly and of by on at the just just rund etwa nur am im")
_NAMED = re.compile(r"[^\W\d_][\w.]*,? ([a-z]?[A-Z][\w-]*) $")
_POINTS = re.compile(
    r"[\s-]*(?:percentage[\s-]?points?|pp\b|prozentpunkt\w*|(?:%|per ?cent)[\s-]?(?:points?|punkte?))", re.IGNORECASE
)
_LIST_MARK = re.compile(r"(?:^|\n)\s*[(\[]?$")
_AFTER_LIST_MARK = re.compile(r"[.)\]]\s")
_HOW_MANY = re.compile(r"\b(?:how many|number of|wie viele|anzahl)\b(?! (?:percent|per cent|prozent))", re.IGNORECASE)
BEFORE_YEAR = re.compile(
    r"(?:^|[.!?:;(\n]|\b(?:in|im|of|for|für|since|seit|from|von|until|till|bis|by|end|ende|anfang|mid|mitte|vs\.?|and|und|to|fy"
    r"|year|jahre?s?|halbjahr|quartal|half|quarter))\s*$",
    re.IGNORECASE,
)
ASKS_WHEN = re.compile(r"\b(?:when|years?|wann|jahre?s?|quand|année|cuándo|año)\b")
_COUNTED = re.compile(r" (?:people|[a-z]{2,}(?<!i)(?<!u)s(?!\w)(?<!was)(?<!has)|[A-ZÄÖÜ][a-zäöüß]+(?!\w))")
_VERBS = word_set("was is were had has have and war waren hat hatte hatten ist und")
_OTHER_WORDS = word_set(
    "a i he it us who may will march no in on at an as be by do go if is me my of or so to up we am are"
)
"""Words that are names or letters as well, and nothing but words at the beginning of a sentence."""
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n]\s*)[\"'“„(]*$")
_NAME_ASKED = re.compile(
    r"\b(?:who|whom|wer|(?:country|city|name|month|person|company|party|state|team|agency|sector|land|stadt|monat|firma))\b",
    re.IGNORECASE,
)


def doubt(text: str, start: int, end: int, answer: str, question: str = "") -> str:
    """Return why a span of ``text`` that spells a value of the ``answer``'s kind may not state it, as a phrase; "" if it does."""
    value = parse(answer)
    if isinstance(value, Polarity):
        return ""
    before, after = text[max(start - _AROUND, 0) : start], text[end : end + _AROUND]
    if _DENIAL.search(before) or (_FORECAST.search(before) and _CONTRAST.match(after)):
        return DENIED
    if isinstance(value, Moment) and _MOVED.search(before) and _TO.match(after):
        return FORMER
    if not isinstance(value, Amount):
        return "" if matches_case(text, start, end, answer, question) else CASE
    if is_part(text, start, end, question):
        return PART
    if value.number.form == "year":
        return PART if ASKS_WHEN.search(question.casefold()) and is_count(text, start, end) else ""
    return _number_doubt(before, text[start:end], after, value, question)


def _number_doubt(before: str, spelled: str, after: str, answer: Amount, question: str) -> str:
    if _MORE_OR_LESS.search(before):
        return BOUND
    if _is_former(before, after, question):
        return FORMER
    if _RANGE_AFTER.match(after) or (_RANGE_BEFORE.search(before) and not _FROM_BEFORE.search(before)):
        return RANGE
    if not _ASKS_CHANGE.search(question) and _BY.search(before):
        return CHANGE
    if answer.number.value > 0 and asks_change(question) and _FELL.search(before):
        return SIGN
    return OTHER_UNIT if answer.number.unit is None and _has_other_unit(spelled, after, question) else ""


def _is_former(before: str, after: str, question: str) -> bool:
    """Return whether a number is the value before a change, or of an earlier time that the question does not name."""
    if _FROM.search(before) and (_TO.match(after) or re.search(rf"[,(]|{_FALLS}|{_RISES}|revised", before[-24:], re.I)):
        return True
    former = _FORMER_BEFORE.search(before) or _FORMER_AFTER.match(after)
    return former is not None and former[1].casefold() not in question.casefold()


def _has_other_unit(spelled: str, after: str, question: str) -> bool:
    """Return whether a number is in another unit than the question asks for."""
    number = next(iter(find_numbers(clean(spelled + after[:16]))), None)
    if number is None:
        return False
    units, unit = read_question(question).units, number.unit
    if unit is None:
        return PERCENT in units and _COUNTED.match(after) is not None
    if units:
        return not any(_is_in(unit, asked) for asked in units)
    return _HOW_MANY.search(question) is not None and unit.kind in ("percent", "money")


def is_count(text: str, start: int, end: int) -> bool:
    """Return whether a number like a year counts what the next word names: 2015 tonnes, 1987 members."""
    is_counted = _COUNTED.match(text, end) or unit_at_start(text[end : end + 30].lstrip())
    return bool(is_counted) and not BEFORE_YEAR.search(text[max(start - 24, 0) : start])


def _is_in(unit: Unit, asked: Unit) -> bool:
    """Return whether a number with a unit answers a question in another: the same one, or the same per day or the like."""
    if unit.kind == asked.kind == "money":
        return money_agrees(unit.name, asked.name) is not False
    same = unit.dimension == asked.dimension and unit.size == asked.size
    return unit.kind == asked.kind and (same or unit.name.startswith(f"{asked.name} / "))


def asks_change(question: str) -> bool:
    """Return whether a question asks for a change that may be a fall, and does not itself say that it is one."""
    return _ASKS_CHANGE.search(question) is not None and not _FALL.search(question)


def is_fall(text: str, start: int, end: int) -> bool:
    """Return whether the words before a number, or brackets around it, give it a minus: "fell by 5%", "(12)"."""
    in_brackets = text[max(start - 1, 0) : start] == "(" and text[end : end + 1] == ")"
    return in_brackets or _FELL.search(text[max(start - _AROUND, 0) : start]) is not None


def is_part(text: str, start: int, end: int, question: str = "") -> bool:
    """Return whether a number is part of another thing: a page or room number, a list mark, a name, an address, points."""
    before = text[max(start - _AROUND, 0) : start]
    last_digit = max((i + 1 for i in range(start, end) if text[i].isdigit()), default=end)
    after = text[last_digit : last_digit + _AROUND]
    asked = question.casefold()
    if (label := _LABEL.search(before)) and label[1].casefold() not in asked:
        return True
    if _POINTS.match(after) and "point" not in asked and "punkt" not in asked:
        return True
    if _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after) or _is_in_address(before):
        return True
    if _LIST_MARK.search(before) and _AFTER_LIST_MARK.match(after) and (before.endswith("[") or "\n" in text):
        return True
    is_whole = end == last_digit and not _YEAR.fullmatch(text[start:end])
    return _opens_name(before, after, asked) or (is_whole and _ends_name(before, after, asked))


def _is_in_address(before: str) -> bool:
    token = before.split()[-1] if before and not before[-1].isspace() else ""
    return "://" in token or token.startswith("www.")


def _opens_name(before: str, after: str, asked: str) -> bool:
    """Return whether a number stands in a name that begins before it and ends behind it, and that the question does not have."""
    opening = _OPENING.search(before)
    if not opening or not _ENDS_NAME.match(after):
        return False
    word = opening[1].casefold()
    return word not in _NO_NAMES and word not in asked


def _ends_name(before: str, after: str, asked: str) -> bool:
    """Return whether a number ends a name that the question does not have, and counts nothing behind it."""
    name, next_word = _NAMED.search(before), re.match(r" ([^\W\d_]{3,})", after)
    is_counted = next_word is not None and next_word[1] not in _VERBS
    return name is not None and name[1].casefold() not in asked and not is_counted


def matches_case(text: str, start: int, end: int, answer: str, question: str = "") -> bool:
    """Return whether words that spell a name are that name: "us" is no US, nor is "turkey" a country."""
    spelled, answer = text[start:end], answer.strip()
    at_start = _SENTENCE_START.search(text[max(start - 8, 0) : start])
    next_word = re.match(r" ([a-z]+)", text[end : end + 20])
    if answer.casefold() in _OTHER_WORDS and at_start and next_word and next_word[1] not in _VERBS:
        return False
    if spelled == answer or not answer[:1].isupper():
        return True
    if answer.isupper() and len(answer) <= _LONGEST_ACRONYM:
        return spelled.isupper()
    value = parse(answer)
    is_name = _NAME_ASKED.search(question) or isinstance(value, Moment) or (isinstance(value, Words) and value.country)
    return not is_name or spelled[:1].isupper()
