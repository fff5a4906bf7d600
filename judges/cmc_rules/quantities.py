"""Quantities in running text: ``1.2 million``, ``$5``, ``64 percent``, ``a dozen``, ``3/4``, ``9,8``, ``the 1950s``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from judges.cmc_rules.compounds import Kind, Quantity, join_parts
from judges.cmc_rules.lazy_pattern import lazy
from judges.cmc_rules.units import (
    CENTURIES,
    DECADES,
    DENOMINATORS,
    MAGNITUDE_SUFFIXES,
    MAGNITUDES,
    NUMBER_WORDS,
    ORDINALS,
    PER,
    PERIODS,
    SCALES,
    canonical_unit,
    convert_temperature,
    unit_size,
)

_LONGEST_NUMBER = 64
_TELLING_DIGITS = 100
"""The least multiple of its last digit's unit for a number to have three significant digits."""

_WORD = "|".join(sorted((*NUMBER_WORDS, *SCALES, "dozen"), key=len, reverse=True))
_SCALE = "|".join((*SCALES, "dozen"))
_DENOMINATOR = "|".join(sorted(DENOMINATORS.keys() - {"half"}))
_FACTOR = r"(?:(?:square|cubic|sq\.?|cu\.?)[ ])?[a-zµω]+(?:\^?-?[0-9](?![0-9])|[ ](?:squared|cubed)(?![a-z]))?"
_RATE = (
    rf"(?:[/·*]{_FACTOR}|[ ]/[ ](?:{'|'.join(PER)})|[ ]per[ ](?:(?:square|cubic)[ ])?(?:{'|'.join(PER)})s?)(?![a-z])"
)
_CODES = {"usd": "$", "us$": "$", "eur": "€", "gbp": "£", "jpy": "¥", "inr": "₹", "rs.": "₹", "rs": "₹"}
_NUMBER = rf"""
    10(?:\^|\*\*)\(?(?P<ten>[-+]?[0-9]{{1,2}})\)?(?![0-9]|\.[0-9])
  |    (?P<numerator>[0-9]{{1,3}})[ ]?/[ ]?(?P<denominator>[0-9]{{1,3}})(?![0-9]|[.,/][0-9])
  | (?P<digits>[0-9]{{1,3}}(?:[ ][0-9]{{3}})+(?:\.[0-9]{{1,2}})?(?![0-9,]|\.[0-9])|[0-9]+(?:[.,'][0-9]+)*|\.[0-9]+)
    (?:[ ]?(?:[x×*·][ ]?10(?:\^|\*\*)\(?(?P<power>[-+]?[0-9]{{1,3}})\)?|e(?P<exponent>[-+]?[0-9]{{1,3}})(?![a-z0-9])))?
    (?P<suffix>st|nd|rd|th|'?s(?![a-z0-9/]))?
  | (?:(?:an?|one|(?P<count>two|three|four|five|seven|nine|[0-9]))[ ](?P<part>half|{_DENOMINATOR})|half)s?
    (?:[ ](?:of[ ])?an?(?=[ ](?:{"|".join(PER)})(?![a-z])))?(?![a-z0-9])
  | (?P<single>an?)(?=[ ](?:{"|".join(PER)})[ ]and[ ]a[ ](?:half|quarter)(?![a-z]))
  | (?:(?P<century>{"|".join(CENTURIES)})[ -])?(?P<decade>{"|".join(DECADES)})(?![a-z0-9])
  | (?P<ordinal>{"|".join(sorted(ORDINALS, key=len, reverse=True))})(?![a-z0-9])
  | (?P<above>one|two|three|four)[ ](?:in|out[ ]of)[ ](?:every[ ])?(?P<below>{"|".join(NUMBER_WORDS)})(?![a-z0-9])
  | (?P<words>(?:an?[ ](?={_SCALE}))?(?:{_WORD})(?:(?:[ -]|(?<=hundred)[ ]and[ ]|(?<=thousand)[ ]and[ ])(?:{_WORD}))*+)
    (?![a-z0-9])
"""
_QUANTITY = lazy(
    rf"""
    (?<![a-z0-9_.,^\\])
    (?P<sign>(?<![\w)%\]])[-+]|(?:minus|negative)[ ])?
    (?:(?:us|a|c)?(?P<currency>[$€£¥₹])[ ]?|(?P<code>usd|eur|gbp|jpy|inr|rs\.?)[ ](?=[0-9]))?
    (?:{_NUMBER})
    (?:(?P<tight>{"|".join(MAGNITUDE_SUFFIXES)})(?![a-z0-9/²³^])
      |(?:[ -]|[ ]an?[ ])?(?P<magnitude>{"|".join(MAGNITUDES)})(?:s|en|es)?(?![a-z0-9]))?
    (?:[ -]?(?:us[ ]|of[ ]a[ ]|degrees?[ ]|(?P<per>per[ ])(?=cent\b))?
       (?P<unit>%|°[ ]?[cf](?![a-z])|°|[€£$¥₹]|[a-z]*watt[ -]hours?|{_FACTOR}(?:{_RATE}){{0,3}})(?![a-z0-9]))?
    """,
    re.VERBOSE,
)
_RATE_AFTER = lazy(rf"\s?(?:per|/|an?|each|every)\s?({'|'.join(PERIODS)})(?![a-z])")
_MAGNITUDE_IN_QUESTION = lazy(rf"(?<![a-z])({'|'.join(SCALES)}|lakh|crore)s?(?![a-z])")


def find_quantities(text: str) -> tuple[Quantity, ...]:
    """Return the quantities of a folded text, in order; time is linear in its length."""
    quantities = (q for q in map(_quantity, _QUANTITY.finditer(text)) if q is not None)
    return join_parts(text, [_with_period(q, text) for q in quantities])


def question_magnitude(question: str) -> float | None:
    """Return the magnitude a folded question asks in ("in million euros"), or None."""
    match = _MAGNITUDE_IN_QUESTION.search(question)
    return MAGNITUDES[match[1]] if match else None


# --- reading -------------------------------------------------------------------------------------


def _quantity(match: re.Match[str]) -> Quantity | None:
    groups = match.groupdict()
    start, end = match.span()
    unit, length = ("percent", None) if groups["per"] else _known_unit(groups["unit"] or "")
    if length == 0 and groups["unit"]:
        end = start + len(match.string[start : match.start("unit")].rstrip(" -"))
    elif length:
        end = match.start("unit") + length
    unit = groups["currency"] or _CODES.get(groups["code"] or "", unit)
    magnitude = MAGNITUDES.get(groups["magnitude"] or "", 1.0)
    if groups["tight"] == "m" and not groups["currency"]:
        unit = "m"
    elif groups["tight"]:
        magnitude = MAGNITUDE_SUFFIXES[groups["tight"]]
    sign = -1.0 if groups["sign"] and groups["sign"] != "+" else 1.0
    if groups["ten"]:
        value = 10.0 ** int(groups["ten"])
        return Quantity(start, end, sign * value, value, magnitude, unit)
    if groups["single"]:
        return Quantity(start, end, 1.0, 1.0, magnitude, unit, spelled=True)
    if groups["digits"]:
        return _parse_digits(groups, (start, end), sign, magnitude, unit)
    if groups["decade"]:
        value = CENTURIES.get(groups["century"] or "", 0.0) + DECADES[groups["decade"]]
        return Quantity(start, end, value, 10.0, kind="decade", spelled=True)
    if groups["ordinal"]:
        return Quantity(start, end, ORDINALS[groups["ordinal"]], 1.0, kind="ordinal", spelled=True)
    if groups["words"]:
        spoken = _parse_words(groups["words"])
        step = _step(f"{spoken:.0f}") if spoken is not None else 1.0
        return None if spoken is None else Quantity(start, end, sign * spoken, step, magnitude, unit, spelled=True)
    above, below = _fraction(groups)
    spelled = not groups["numerator"]
    return (
        Quantity(start, end, sign * above / below, 0.0, magnitude, unit, "fraction", None, spelled) if below else None
    )


def _with_period(quantity: Quantity, text: str) -> Quantity:
    rate = _RATE_AFTER.match(text, quantity.end)
    return replace(quantity, period=rate[1]) if rate and quantity.dimension != "time" else quantity


def _known_unit(written: str) -> tuple[str, int]:
    """Return the unit and the number of its characters, 0 if it is unknown: "liters per person" gives "liter" and 6."""
    first = re.split(r"[ /·*]", written, maxsplit=1)[0]
    for text in (written, first):
        unit = canonical_unit(text.replace("° ", "°").replace("watt-hour", "watthour").replace("watt hour", "watthour"))
        if unit_size(unit) is not None:
            return unit, len(text)
    return canonical_unit(first), 0


def _fraction(groups: Mapping[str, str | None]) -> tuple[float, float]:
    if groups["numerator"]:
        return float(groups["numerator"]), float(groups["denominator"] or 0)
    if groups["above"]:
        return NUMBER_WORDS[groups["above"]], NUMBER_WORDS[groups["below"] or ""]
    count = groups["count"] or "one"
    return NUMBER_WORDS[count] if count in NUMBER_WORDS else float(count), DENOMINATORS[groups["part"] or "half"]


def _parse_digits(
    groups: Mapping[str, str | None], span: tuple[int, int], sign: float, magnitude: float, unit: str
) -> Quantity | None:
    digits, suffix = groups["digits"] or "", groups["suffix"] or ""
    value, step, other = _read_digits(digits)
    if value is None:
        return None
    power = int(groups["power"] or groups["exponent"] or 0)
    scale = sign * 10.0**power if abs(power) < 200 else sign
    kind: Kind = "ordinal" if suffix in ("st", "nd", "rd", "th") else "number"
    if suffix.endswith("s") and digits.endswith("0") and len(digits) in (2, 4):
        kind = "decade"
    elif suffix == "s":
        unit = "s"
    other = None if other is None else other * scale
    return Quantity(*span, value * scale, step * abs(scale), magnitude, unit, kind, other)


def _step(digits: str) -> float:
    integer, _, fraction = digits.partition(".")
    if fraction:
        return 10.0 ** -len(fraction)
    zeros = len(integer) - len(integer.rstrip("0"))
    return 10.0**zeros if zeros < len(integer) else 1.0


def _read_digits(digits: str) -> tuple[float | None, float, float | None]:
    """Return the value, the step, and the alternative reading of ``1.200``."""
    text = digits.replace("'", "").replace(" ", "")
    if len(text) > _LONGEST_NUMBER:
        return None, 1.0, None
    other = None
    points, commas = text.count("."), text.count(",")
    if points and commas:
        decimal = max(text.rfind("."), text.rfind(","))
        text = re.sub(r"[.,]", "", text[:decimal]) + "." + text[decimal + 1 :]
    elif commas:
        grouped = re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}", text) and not text.startswith("0,")
        text = text.replace(",", "") if grouped else text.replace(",", ".", 1)
    elif points and re.fullmatch(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+", text):
        other = float(text.replace(".", "")) if points == 1 else None
        text = text if points == 1 else text.replace(".", "")
    if not re.fullmatch(r"[0-9]*\.?[0-9]+", text):
        return None, 1.0, None
    return float(text), _step(text), other


def _parse_words(words: str) -> float | None:
    parts = [w for w in re.split(r"[ -]+", words) if w not in ("and", "a", "an")]
    if len(parts) > 1 and parts[0] in CENTURIES and NUMBER_WORDS.get(parts[1], 0.0) >= 10:
        rest = _parse_words(" ".join(parts[1:]))
        return None if rest is None or rest >= 100 else CENTURIES[parts[0]] + rest
    total, current, last = 0.0, 0.0, math.inf
    for word in parts:
        if word in NUMBER_WORDS:
            value = NUMBER_WORDS[word]
            if value >= last or last < 20:
                return None
            current, last = current + value, value or 1.0
        else:
            current, last = (current or 1.0) * MAGNITUDES[word], math.inf
            if MAGNITUDES[word] >= 1000:
                total, current = total + current, 0.0
    return total + current


# --- agreement -----------------------------------------------------------------------------------


def match_grade(
    reference: Quantity,
    quantity: Quantity,
    *,
    magnitude: float | None = None,
    approximate: bool = False,
    year: bool = False,
) -> int:
    """Return the grade of the match of ``quantity`` with ``reference``: 2 the same value, 1 a rounding of it, 0 another value.

    A rounding has fewer digits than the other and lies within 1%; one that the answer calls approximate, within 10%.
    Years are exact. ``magnitude`` is the magnitude the question asks in.
    """
    if "decade" in (reference.kind, quantity.kind):
        return 2 if reference.kind == quantity.kind and _same_decade(reference.value, quantity.value) else 0
    if "ordinal" in (reference.kind, quantity.kind):
        return 2 if reference.kind == quantity.kind and reference.value == quantity.value else 0
    if year:
        return (
            2 if quantity.magnitude == 1.0 and quantity.dimension is None and quantity.value == reference.value else 0
        )
    reference, quantity = _in_one_unit(reference, quantity)
    if reference.dimension and quantity.dimension and reference.dimension != quantity.dimension:
        return 0
    return max(
        _grade(a, b, approximate)
        for a in _readings(reference, magnitude, quantity)
        for b in _readings(quantity, magnitude, reference)
    )


def relative_distance(reference: Quantity, quantity: Quantity, *, magnitude: float | None = None) -> float:
    """Return the relative distance of ``quantity`` from ``reference`` in the readings that bring them nearest."""
    pairs = [
        (a, b)
        for a, _ in _readings(reference, magnitude, quantity)
        for b, _ in _readings(quantity, magnitude, reference)
    ]
    return min((abs(abs(a) - abs(b)) / abs(b) for a, b in pairs if b), default=math.inf)


def _in_one_unit(reference: Quantity, quantity: Quantity) -> tuple[Quantity, Quantity]:
    """Return the two with a temperature on the reference's scale, and with pounds as a mass beside a mass."""
    if reference.dimension == quantity.dimension == "temperature":
        value = convert_temperature(quantity.value, quantity.unit, reference.unit)
        return reference, quantity if value is None else replace(quantity, value=value, unit=reference.unit)
    if reference.unit == "pound" and quantity.dimension == "mass":
        return replace(reference, unit="lb"), quantity
    if quantity.unit == "pound" and reference.dimension == "mass":
        return reference, replace(quantity, unit="lb")
    return reference, quantity


def _same_decade(decade: float, other: float) -> bool:
    return decade == other or (min(decade, other) < 100 and decade % 100 == other % 100)


def _readings(quantity: Quantity, magnitude: float | None, other: Quantity) -> list[tuple[float, float]]:
    """Return the possible values of a quantity next to the other, each with its step.

    "42 million people" may answer a bare 42.
    """
    factor, share = 1.0, False
    plain = other.dimension is None and other.magnitude == 1.0
    if quantity.dimension and quantity.dimension == other.dimension:
        factor = (unit_size(quantity.unit) or ("", 1.0))[1]
    elif quantity.dimension == "percent":
        share = plain and 0.01 < abs(other.value) < 1
        factor = 0.01 if other.kind == "fraction" else 1.0
    if quantity.period and other.period:
        factor /= PERIODS[quantity.period]
    scale = quantity.magnitude * factor
    readings = [
        (value * scale, quantity.step * scale) for value in (quantity.value, quantity.alternative) if value is not None
    ]
    if quantity.magnitude != 1.0 and plain and magnitude in (None, quantity.magnitude):
        readings.append((quantity.value * factor, quantity.step * factor))
    digits = abs(quantity.value) / quantity.step if quantity.step else 0.0
    if plain and not magnitude and quantity.magnitude >= 1e6 and abs(other.value) >= 1e3 and digits >= _TELLING_DIGITS:
        # A chart in millions states 20,500 for "20.5 billion".
        readings.append((quantity.value * factor * 1e3, quantity.step * factor * 1e3))
    if share:
        readings.append((quantity.value / 100, quantity.step / 100))
    if quantity.magnitude == 1.0 and magnitude:
        readings.append((quantity.value * magnitude, quantity.step * magnitude))
    return readings


def _grade(reference: tuple[float, float], values: tuple[float, float], approximate: bool) -> int:
    (a, a_step), (b, b_step) = reference, values
    if math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300):
        return 2
    distance = abs(a - b) * (1 + 1e-9)
    relative = distance / abs(a) if a else math.inf
    if approximate and distance < b_step and relative <= 0.1:
        return 1
    if approximate and relative <= 0.01 and distance <= b_step * (1 + 1e-8) and abs(b) >= _TELLING_DIGITS * b_step:
        return 1
    # A decimal that the value rounds to is its rounding, unless a single digit is left of it.
    if b_step < 1.0 and a_step < b_step <= abs(b) / 10 * (1 + 1e-9) and distance <= b_step / 2 * (1 + 1e-9):
        return 1
    fewer_digits = not (a_step and b_step) or distance < max(a_step, b_step)
    return 1 if fewer_digits and relative <= 0.01 else 0
