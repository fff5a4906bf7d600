"""Units: pint knows what is measured, Babel what is money. Both are loaded when the first unit is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from benchmarks.values.name_words import word_set

Kind = Literal["percent", "money", "measure", "temperature"]


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


_MEASURED = word_set("""
    meter gram second minute hour day week month year decade liter newton joule watt pascal bar hertz volt ampere ohm mole byte
    bit inch foot yard mile acre hectare gallon ounce pound ton metric_ton calorie electron_volt knot mile_per_hour
    kilometer_per_hour revolutions_per_minute pound_force_per_square_inch standard_atmosphere millimeter_Hg horsepower cup
    pint tablespoon teaspoon decibel micron nautical_mile light_year astronomical_unit degree_Celsius degree_Fahrenheit kelvin
    watt_hour ampere_hour lumen lux candela tesla sievert becquerel gray farad henry siemens molar
""")
"""Pint's names of the units that are read as such; it knows more, such as points, hands and marks, which answers count."""

_NO_PLURAL = frozenset({"bar", "kelvin", "gray"})
_PLURAL = frozenset({"lbs", "ozs", "yds"})
_SYMBOLS = _pairs("""
    t:metric_ton ton:metric_ton tons:metric_ton kilo:kilogram cc:milliliter sqm:meter^2 sqft:foot^2 kmh:kph
    hr:hour hrs:hour mins:minute secs:second in:inch jahre:year jahr:year stunden:hour std:hour tage:day uhr: a: as: at:
    degc:degree_Celsius celsius:degree_Celsius centigrade:degree_Celsius degcelsius:degree_Celsius
    degcentigrade:degree_Celsius degf:degree_Fahrenheit fahrenheit:degree_Fahrenheit degfahrenheit:degree_Fahrenheit
""")
"""Units that pint does not know or reads as others, by folded word; "" is none."""
_POWERS = {"square": "^2", "sq": "^2", "squared": "^2", "cubic": "^3", "cu": "^3", "cubed": "^3"}
_POWER_WORDS = re.compile(r"\b(square|sq|cubic|cu)\b\.? ?([^\W\d_]+)|([^\W\d_]+) (squared|cubed)\b", re.IGNORECASE)
_FACTOR = re.compile(r"([^\W\d_]+)(?:\^?(-?[1-4]))?")
_BITS = re.compile("[kKMGT]b")
_OPERATOR = re.compile(r" ?(/|·|\*|\bper\b) ?", re.IGNORECASE)
_TEMPERATURES = {"degree_Celsius", "degree_Fahrenheit", "kelvin"}
_ZERO_CELSIUS, _FAHRENHEIT = Fraction("273.15"), Fraction(5, 9)
_DEGREES = re.compile(r"^(?:degrees?|°) ?(?=[A-Za-z])|(?<=[ /])°")
_CANDIDATE = re.compile(
    r"((?:[A-Z]{1,2})?[$€£¥₹₩₽₺₪฿₫¢]|°? ?[^\W\d_]+\.?(?:\^?-?[1-4](?![0-9]))?)"
    r"(?:(?: ?[/·*] ?| per | )[^\W\d_]+(?:\^?-?[1-4](?![0-9]))?){0,2}"
)
_PART_END = re.compile(r"[ /·*]")

MONEY_SIGNS = _pairs("""
    $:$ US$:USD A$:AUD AU$:AUD C$:CAD CA$:CAD HK$:HKD NZ$:NZD R$:BRL €:EUR £:GBP ¥:¥ ₹:INR ₩:KRW ₽:RUB ₺:TRY ₪:ILS ฿:THB ₫:VND
    Rs:INR Rs.:INR zł:PLN ¢:cent
""")
_MONEY_WORDS = _pairs("""
    dollar:$ buck:$ euro:EUR pound:pound sterling:GBP yen:JPY yuan:CNY renminbi:CNY rupee:INR cent:cent pence:penny penny:penny
    p:penny franc:franc
""")
_HUNDREDTHS = {"cent": "$", "penny": "GBP"}


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as it was read: ``name`` is a code of money or pint's expression, ``size`` in pint's base units."""

    kind: Kind
    name: str
    size: float = 1.0
    dimension: str = ""


PERCENT = Unit("percent", "%", 0.01, "dimensionless")
_PERCENT_WORDS = re.compile(r"(?:%|(?:per ?cent|pct|prozent|pour ?cent|por ?ciento)(?![^\W_]))+", re.IGNORECASE)


@lru_cache(maxsize=2048)
def unit_at_start(text: str) -> tuple[Unit, int] | None:
    """Return the unit that the beginning of a cleaned text is, and its number of characters; None if it is none."""
    if match := _PERCENT_WORDS.match(text):
        return PERCENT, match.end()
    if match := _CANDIDATE.match(text):
        ends = {match.end(), match.end(1), *(m.start() for m in _PART_END.finditer(match[0]))}
        for end in sorted(ends, reverse=True):
            written = text[:end].rstrip(" .")
            if unit := money(written) or _measure(written):
                return unit, len(written)
    return None


def money(written: str) -> Unit | None:
    """Return the unit of a currency's sign, code or name."""
    is_code = written.isupper() and len(written) == 3 and written in _codes()
    code = written if is_code else MONEY_SIGNS.get(written, "")
    if not code:
        words = written.casefold().split()
        last = words[-1] if words else ""
        code = _MONEY_WORDS.get(last) or _MONEY_WORDS.get(last.removesuffix("s"), "")
        if code and len(words) > 1:
            code = _named(" ".join(words)) if code not in _HUNDREDTHS else ""
    if not code:
        return None
    whole = _HUNDREDTHS.get(code, code)
    return Unit("money", whole, 0.01 if whole != code else 1.0)


def money_agrees(a: str, b: str) -> bool | None:
    """Return whether two codes are one currency; None if only more context could tell ("$" and "CAD")."""
    if a == b or {a, b} in ({"$", "USD"}, {"pound", "GBP"}, {"¥", "JPY"}):
        return True
    if {a, b} == {"¥", "CNY"}:
        return None
    dollars = "$" in (a, b) and any(code.endswith("D") for code in (a, b))
    return None if dollars or ("franc" in (a, b) and any(code.endswith("F") for code in (a, b))) else False


@lru_cache(maxsize=4096)
def _measure(written: str) -> Unit | None:
    import pint

    expression = _expression(written)
    if expression in _TEMPERATURES:
        return Unit("temperature", expression)
    if not expression:
        return None
    try:
        base = _registry().Quantity(1, expression).to_base_units()
    except (ArithmeticError, pint.PintError):
        return None
    size, dimension = float(base.magnitude), str(base.units)
    if not 1e-150 < size < 1e150:
        return None
    return Unit("measure", expression, size, "data" if dimension == "bit" else dimension)


def convert_temperature(value: Fraction, unit: str, other: str) -> Fraction:
    """Return a temperature in pint's unit ``unit`` in the unit ``other``: kelvin, degree_Celsius or degree_Fahrenheit."""
    if unit != "kelvin":
        value = ((value - 32) * _FAHRENHEIT if unit == "degree_Fahrenheit" else value) + _ZERO_CELSIUS
    if other == "kelvin":
        return value
    value -= _ZERO_CELSIUS
    return value / _FAHRENHEIT + 32 if other == "degree_Fahrenheit" else value


def _expression(written: str) -> str:
    """Return pint's expression for a unit; "" if it is none that is read."""
    text = _DEGREES.sub("deg", written)
    text = _POWER_WORDS.sub(lambda m: (m[2] or m[3]) + _POWERS[(m[1] or m[4]).casefold()], text)
    parts = []
    for part in _OPERATOR.split(text):
        if part.casefold() in ("/", "·", "*", "per"):
            parts.append("*" if part in "·*" else "/")
            continue
        factor = _FACTOR.fullmatch(part.strip())
        name = _unit_name(factor[1]) if factor else ""
        if not factor or not name:
            return ""
        parts.append(f"({name})**{factor[2]}" if factor[2] else name)
    return " ".join(parts)


@lru_cache(maxsize=4096)
def _unit_name(word: str) -> str:
    """Return pint's name of a unit of one word, with its prefix; "" if it is none that is read."""
    lower = word.casefold()
    if word == "A":
        return "ampere"
    if lower in _SYMBOLS:
        return _SYMBOLS[lower]
    if len(word) > 24:
        return ""
    if _BITS.fullmatch(word):
        word = word[:-1].replace("K", "k") + "bit"
    for spelling in dict.fromkeys((word, lower, lower.capitalize(), lower.upper())):
        for prefix, name, plural in _registry().parse_unit_name(spelling):
            if name not in _MEASURED and prefix + name not in _MEASURED:
                continue
            if plural and (name in _NO_PLURAL or len(spelling) < 4) and spelling not in _PLURAL:
                continue
            return str(prefix + name)
    return ""


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()


@lru_cache(maxsize=1)
def _codes() -> frozenset[str]:
    from babel import Locale

    return frozenset(Locale("en").currencies)


@lru_cache(maxsize=256)
def _named(name: str) -> str:
    """Return the code of a currency by its name in full, such as "Swiss francs"."""
    from babel.numbers import get_currency_name

    name = name.replace("u.s.", "us")
    return next(
        (c for c in sorted(_codes()) if name.rstrip("s") == get_currency_name(c, locale="en").casefold().rstrip("s")),
        "",
    )
