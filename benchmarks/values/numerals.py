"""Numbers in a text: digits with any usual separators, words, fractions, shares, magnitudes, several parts of one amount."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from benchmarks.values.units import MONEY_SIGNS, Unit, money, unit_at_start

_LONGEST = 420
"""Digits of a number; a longer one is text."""

_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = {word: n for n, word in enumerate(_ONES.split())} | {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
WORDS |= {"fourty": 40, "nil": 0}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_POWERS_OF_TEN = """
3 tsd tausend mille 千|4 万 萬|5 lakh|6 mn mln mio millione millionen millones millón|7 crore|8 亿 億|12 tn trn
9 bn bln mrd milliard milliarde milliarden
"""
_OTHER_SCALES = (entry.split() for entry in _POWERS_OF_TEN.strip().replace("\n", "|").split("|"))
MAGNITUDES = _SCALES | {"dozen": 12} | {word: 10 ** int(power) for power, *words in _OTHER_SCALES for word in words}
_LETTERS = {"k": 10**3, "K": 10**3, "M": 10**6, "m": 10**6, "B": 10**9, "b": 10**9, "T": 10**12}
_ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth
seventeenth eighteenth nineteenth twentieth
"""
ORDINALS = {word: n for n, word in enumerate(_ORDINALS.split(), 1)}
_PARTS = {"half": 2, "halves": 2, "quarter": 4} | {word: n for word, n in ORDINALS.items() if 3 <= n <= 12}

_WORD = "|".join(sorted((*WORDS, *_SCALES, "dozen"), key=len, reverse=True))
_PART = "|".join(sorted(_PARTS, key=len, reverse=True))
_SIGN = "|".join(map(re.escape, sorted(MONEY_SIGNS, key=len, reverse=True)))
_MAGNITUDE = "|".join(sorted(MAGNITUDES, key=len, reverse=True))
_DIGITS = r"[0-9]{1,3}(?:[ '][0-9]{3})+(?:[.,][0-9]+)?(?![0-9])|[0-9]+(?:[.,][0-9]+)*|[.][0-9]+"
_NUMBER = re.compile(
    rf"""
    (?<![^\W\u3040-\u9fff])(?<![.,^]) (?P<sign>(?<![\w)%\]][ ])(?<![\w)%\]])[-+]|(?:minus|negative)[ ])?
    (?:(?P<before>{_SIGN}|[A-Z]{{3}}(?=[ ]?[0-9]))[ ]?(?P<inner>-)?)?
    (?:
      (?P<above>[0-9]{{1,4}})[ ]?/[ ]?(?P<below>[0-9]{{1,4}})(?![0-9]|[.,/][0-9])
    | (?P<digits>{_DIGITS})
      (?:[ ]?(?:[x*][ ]?10(?:\^|\*\*)?\(?(?P<power>[-+]?[0-9]{{1,3}})\)?|[eE](?P<exponent>[-+]?[0-9]{{1,3}})(?!\w)))?
      (?P<ordinal>st|nd|rd|th)?(?P<decade>'?s(?![\w/]))?
    | (?:(?P<count>an?|one|two|three|four|five|six|seven|eight|nine|[0-9]{{1,2}})[ -])?(?P<part>{_PART})s?(?!\w)
    | (?P<words>(?:an?[ ](?=(?:hundred|thousand|million|billion|trillion|dozen)))?(?:{_WORD})
      (?:(?:[ -]|[ ]and[ ])(?:{_WORD}))*)(?!\w)
    | (?P<place>{"|".join(sorted(ORDINALS, key=len, reverse=True))})(?!\w)
    )
    (?:(?P<letter>(?-i:[kKmMbBT]))(?![\w/²³^])|[ -]?(?:an?[ ])?(?P<magnitude>{_MAGNITUDE})(?:s|en|es)?\.?(?![^\W\u2e80-\u9fff]))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TURKISH_I = frozenset("ıİ")
"""They match an "i" whatever the case, and are none."""
_SHARE = re.compile(r"\s?(?:out of|of|in|from|sur|von)\s(?:every |the |all )?$", re.IGNORECASE)
_PREPOSITION = re.compile(r"(?:in|a|as|at|to|on|of|for|is)\b(?=\s+\S)", re.IGNORECASE)
_JOINED = re.compile(r",? ?(?:and )?")
_OF = re.compile(r" (?:d'|de |of )(?=\w)")
_MONEY_AFTER = re.compile(rf" ?(?:{_SIGN}|EUR|USD|euros?|dollars?)(?!\w)")
_BREAK = re.compile(r"[\n,;:!?()\[\]{}|\"=]|(?<![A-Za-z])\.|\.(?=\s|$)")
_WORD_BREAK = re.compile(r"[ -]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a numeral: its value, and the value of one in its last significant digit (0 if it is exact)."""

    value: Fraction
    step: Fraction


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text, from ``start`` to ``end``, with its unit.

    ``readings`` are several where only context can tell, as for "13.500". ``form`` is "share" for 3/4 and 3 of 4, "ordinal",
    "decade", "year" for four bare digits between 1000 and 2100, otherwise "".
    """

    start: int
    end: int
    readings: tuple[Reading, ...]
    unit: Unit | None = None
    form: str = ""
    spelled: bool = False
    scaled: bool = False
    """The number has a magnitude, such as million."""
    count: Fraction | None = None
    """The 12 of "12 of 30", whose value is 0.4."""

    @property
    def value(self) -> Fraction:
        """The value of the first reading."""
        return self.readings[0].value


def find_numbers(text: str) -> list[Number]:
    """Return the numbers of a cleaned text, in order; time is linear in its length."""
    numbers: list[Number] = []
    for match in _NUMBER.finditer(text):
        if (number := _read(match, text)) is None:
            continue
        if numbers and numbers[-1].end > number.start:  # 3 $5: the sign is that of the second
            last = numbers[-1]
            end = last.start + len(text[last.start : number.start].rstrip())
            numbers[-1] = replace(last, end=end, unit=None)
        numbers.append(number)
    return list(_join(text, numbers))


def _read(match: re.Match[str], text: str) -> Number | None:
    if not _TURKISH_I.isdisjoint(match[0]):
        return None
    groups = {name: value or "" for name, value in match.groupdict().items()}
    unit = _money_before(groups["before"])
    is_money = unit is not None or _MONEY_AFTER.match(text[match.end() : match.end() + 12]) is not None
    readings, form = _digits(groups, is_money=is_money) if groups["digits"] else _words(groups)
    return _with_unit(match, text, groups, readings, unit, form) if readings else None


def _with_unit(
    match: re.Match[str], text: str, groups: Mapping[str, str], readings: list[Reading], unit: Unit | None, form: str
) -> Number:
    """Return the number of these readings, with its sign, its magnitude and the unit before or behind it."""
    start, end = match.span()
    digits = "digits" if groups["digits"] else "above" if groups["above"] else ""
    if groups["before"] and unit is None and digits:
        start = match.start(digits)
    if groups["decade"] and form != "decade":
        end = match.start("decade")
    scale = MAGNITUDES.get(groups["magnitude"].casefold()) or _LETTERS.get(groups["letter"], 1)
    if groups["letter"] == "m" and unit is None and (metres := unit_at_start(text[match.start("letter") :])):
        unit, end, scale = metres[0], match.start("letter") + metres[1], 1  # 324m
    sign = -1 if groups["sign"].casefold() in ("-", "minus ", "negative ") or groups["inner"] else 1
    if unit is None and form not in ("ordinal", "decade"):
        unit, end = _unit_after(text, end)
    if form == "year" and (unit or sign < 0):
        form = ""
    scaled = tuple(Reading(r.value * scale * sign, r.step * scale) for r in readings)
    return Number(start, end, scaled, unit, form, not digits, scale != 1)


def _money_before(sign: str) -> Unit | None:
    return money(sign.upper() if sign.isalpha() else sign) if sign else None


def _is_year(groups: Mapping[str, str]) -> bool:
    digits = groups["digits"]
    plain = digits.isdigit() and len(digits) == 4 and not (groups["letter"] or groups["magnitude"])
    return plain and 1000 <= int(digits) <= 2100 and not int(groups["power"] or groups["exponent"] or 0)


def _digits(groups: Mapping[str, str], *, is_money: bool) -> tuple[list[Reading], str]:
    """Return the readings of a number in digits, none if it is too large, and its form."""
    digits, power = groups["digits"], int(groups["power"] or groups["exponent"] or 0)
    factor = Fraction(10) ** power if abs(power) <= 300 else Fraction(0)
    readings = [Reading(r.value * factor, r.step * factor) for r in _read_digits(digits, is_money=is_money) if factor]
    if groups["decade"]:
        return readings, "decade" if digits.endswith("0") and len(digits) in (2, 4) else ""
    return readings, "ordinal" if groups["ordinal"] else "year" if _is_year(groups) else ""


def _words(groups: Mapping[str, str]) -> tuple[list[Reading], str]:
    """Return the readings of a fraction or of a number in words, none if it is no number, and its form."""
    part, place, count = (groups[name].casefold() for name in ("part", "place", "count"))
    value: Fraction | int | None
    if groups["above"]:
        below = int(groups["below"])
        value, form = Fraction(int(groups["above"]), below) if below else None, "share"
    elif part and (count or part in ("half", "halves")):
        value, form = Fraction(int(count) if count.isdigit() else WORDS.get(count, 1), _PARTS[part]), "share"
    elif part or place:
        value, form = ORDINALS.get(part or place), "ordinal"
    else:
        value, form = _read_words(groups["words"]), ""
    return [] if value is None else [Reading(Fraction(value), Fraction(0))], form


def _unit_after(text: str, end: int) -> tuple[Unit | None, int]:
    """Return the unit behind a number that ends at ``end``, and where the unit ends."""
    rest = text[end : end + 60]
    if of := _OF.match(rest):
        unit = unit_at_start(_until_break(rest[of.end() :]))
        if unit and unit[0].kind == "money":
            return unit[0], end + of.end() + unit[1]
    gap = len(rest) - len(rest.lstrip(" -")) if rest[:1] in " -" and rest[1:2].strip(" -") else 0
    unit = None if _PREPOSITION.match(rest, gap) else unit_at_start(_until_break(rest[gap:]))
    return (unit[0], end + gap + unit[1]) if unit else (None, end)


def _until_break(text: str) -> str:
    return _BREAK.split(text, maxsplit=1)[0]


def _read_digits(digits: str, *, is_money: bool) -> list[Reading]:
    """Return the readings of a numeral: "1,204.5" and "1.204,5" have one, "13.500" two unless it is an amount of money."""
    if digits.count(" ") > 2 and len(set(digits.split())) == 1:
        digits = digits.split()[0]  # 128 128 128 128
    text = digits.replace("'", "").replace(" ", "")
    if len(text) > _LONGEST:
        return []
    points, commas = text.count("."), text.count(",")
    if points and commas:
        sign = "." if text.rfind(".") > text.rfind(",") else ","
        text = text.replace("," if sign == "." else ".", "").replace(sign, ".")
        return [_exact(text)] if text.count(".") == 1 else []
    if not points and not commas:
        return [_exact(text)]
    sign = "." if points else ","
    groups = text.split(sign)
    whole = "".join(groups)
    thousands = _are_thousands(groups)
    if len(groups) > 2:
        return [_exact(whole)] if thousands or (sign == "," and _are_lakhs(groups)) else []
    if thousands and (sign == "," or is_money):
        return [_exact(whole)]
    decimal = _exact(".".join(groups))
    return [decimal, _exact(whole)] if thousands else [decimal]


def _are_thousands(groups: Sequence[str]) -> bool:
    return 0 < len(groups[0]) <= 3 and groups[0][0] != "0" and {*map(len, groups[1:])} == {3}


def _are_lakhs(groups: Sequence[str]) -> bool:
    return len(groups[0]) <= 2 and len(groups[-1]) == 3 and {*map(len, groups[1:-1])} == {2}


def _exact(text: str) -> Reading:
    integer, _, fraction = text.partition(".")
    if fraction:
        return Reading(Fraction(text if integer else "0" + text), Fraction(1, 10 ** len(fraction)))
    zeros = len(integer) - len(integer.rstrip("0"))
    # 12,500 may be rounded to hundreds; of 300 or 320 nobody can tell.
    return Reading(Fraction(integer), Fraction(10**zeros if len(integer) - zeros >= 3 else 1))


def _read_words(words: str) -> int | None:
    parts = [w for w in _WORD_BREAK.split(words.casefold()) if w not in ("and", "a", "an")]
    if len(parts) > 1 and WORDS.get(parts[0], 0) in range(13, 21) and WORDS.get(parts[1], 0) >= 10:
        rest = _read_words(" ".join(parts[1:])) if len(parts) <= 3 else None  # nineteen eighty-four
        return WORDS[parts[0]] * 100 + rest if rest is not None and rest < 100 else None
    total = current = 0
    last: float = float("inf")
    for word in parts:
        if word in WORDS:
            if WORDS[word] >= last or last < 20:
                return None
            current, last = current + WORDS[word], WORDS[word] or 1
        else:
            current, last = (current or 1) * MAGNITUDES[word], float("inf")
            if MAGNITUDES[word] >= 1000:
                total, current = total + current, 0
    return total + current


def _join(text: str, numbers: Sequence[Number]) -> Iterator[Number]:
    """Yield the numbers with the parts of one amount joined: 3 1/2, 12 of 30, 1 h 30 min."""
    held: Number | None = None
    for number in numbers:
        joined = _joined(text, held, number) if held else None
        if joined is None and held is not None:
            yield held
        held = joined or number
    if held is not None:
        yield held


def _joined(text: str, first: Number, second: Number) -> Number | None:
    between = text[first.end : second.start]
    a, b = first.readings[0], second.readings[0]
    if first.form not in ("", "year") or first.scaled or a.value < 0:
        return None
    if second.form == "share" and 0 < b.value < 1 and a.value.denominator == 1 and between in (" ", " and "):
        whole = (Reading(a.value + b.value, Fraction(0)),)
        return replace(second, start=first.start, readings=whole, form="") if first.unit is None else None
    if first.unit is None:
        return _share(first, second, between)
    if first.unit.kind == "money" and second.spelled and not second.unit and between == " " and b.value < 100:
        fifty = (Reading(a.value + b.value / 100, Fraction(0)),)  # four pounds fifty
        return replace(first, end=second.end, readings=fifty)
    return _in_two_units(first, first.unit, second) if _JOINED.fullmatch(between) else None


def _share(first: Number, second: Number, between: str) -> Number | None:
    """Return the share that two numbers without a unit are, such as 3 of 4; None if they are none."""
    a, b = first.readings[0].value, second.readings[0].value
    if second.scaled or second.unit is not None or not 0 <= a <= b or not b or not _SHARE.fullmatch(between):
        return None
    if not _is_share(first, second, between):
        return None
    return replace(second, start=first.start, readings=(Reading(a / b, Fraction(0)),), form="share", count=a)


def _in_two_units(first: Number, larger: Unit, second: Number) -> Number | None:
    """Return the amount that is written in two units, such as 5 feet 3 inches; None if the units do not fit."""
    smaller = second.unit
    if (
        smaller is None
        or smaller.dimension != larger.dimension
        or not larger.kind == smaller.kind in ("measure", "money")
    ):
        return None
    if larger.kind == "money" and larger.name != smaller.name:
        return None
    a, b = first.readings[0], second.readings[0]
    share_of_larger = Fraction(smaller.size / larger.size).limit_denominator(10**9)
    if share_of_larger >= 1 or not 0 <= b.value * share_of_larger < 1:
        return None
    whole = (Reading(a.value + b.value * share_of_larger, b.step * share_of_larger),)
    return replace(first, end=second.end, readings=whole)


def _is_share(first: Number, second: Number, between: str) -> bool:
    """Return whether the first number counts a part of the second: 3 of 4, but not 3 in 2014."""
    if second.value >= 2 and "in" not in between and second.form != "year":
        return True
    return first.form == second.form == "" and first.value < second.value <= 1000
