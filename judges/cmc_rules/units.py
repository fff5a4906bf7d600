"""Number words, magnitudes and units, as an answer may write them."""

from __future__ import annotations

import re
from functools import lru_cache

_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth
seventeenth eighteenth nineteenth
"""
_DECADE = "twenties thirties forties fifties sixties seventies eighties nineties"

NUMBER_WORDS: dict[str, float] = {"none": 0.0, "nil": 0.0}
NUMBER_WORDS.update({word: float(i) for i, word in enumerate(_ONES.split())})
NUMBER_WORDS.update({word: 10.0 * i for i, word in enumerate(_TENS.split(), 2)})
CENTURIES = {word: 1000.0 + 100.0 * (value - 10.0) for word, value in NUMBER_WORDS.items() if 13 <= value <= 20}
ORDINALS = {word: float(i) for i, word in enumerate(_ORDINAL.split(), 1)}
ORDINALS |= {"twentieth": 20.0, "thirtieth": 30.0}
ORDINALS |= {
    f"{tens}{dash}{word}": n + i
    for tens, n in (("twenty", 20.0), ("thirty", 30.0))
    for dash in "- "
    for i, word in enumerate(_ORDINAL.split()[:9], 1)
}
DECADES = {word: 10.0 * i for i, word in enumerate(_DECADE.split(), 2)}
DENOMINATORS = {"half": 2.0, "quarter": 4.0} | {word: value for word, value in ORDINALS.items() if 3.0 <= value <= 10.0}

SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
MAGNITUDE_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9}
"""One-letter magnitudes directly after the digits."""
MAGNITUDES = SCALES | {"lakh": 1e5, "crore": 1e7, "dozen": 12.0, "milliard": 1e9}
MAGNITUDES |= {"mn": 1e6, "mln": 1e6, "mio": 1e6, "bn": 1e9, "bln": 1e9, "tn": 1e12, "trn": 1e12}

# Dimension, then each unit with its size relative to the dimension's unit of size 1.
_UNITS = """
length: mm 1e-3 cm 1e-2 dm 0.1 m 1 km 1e3 mile 1609.344 mi 1609.344 nm 1e-9 µm 1e-6 micron 1e-6
length: ft 0.3048 feet 0.3048 foot 0.3048 inch 0.0254 yard 0.9144 yd 0.9144
mass: mg 1e-6 g 1e-3 kg 1 kilo 1 ton 1e3 tonne 1e3 t 1e3 lb 0.45359237 oz 0.028349523125 ounce 0.028349523125
time: ms 1e-3 µs 1e-6 ns 1e-9 s 1 sec 1 min 60 minute 60 h 3600 hr 3600 hour 3600 day 86400 week 604800
time: month 2629800 year 31557600 yr 31557600 decade 315576000
length^3: ml 1e-6 cl 1e-5 dl 1e-4 l 1e-3 hl 0.1 cc 1e-6 gallon 3.785411784e-3 gal 3.785411784e-3
length time^-1: kph 0.2777777777777778 kmh 0.2777777777777778 mph 0.44704 knot 0.5144444444444445
length mass time^-2: n 1 kn 1e3
length^2 mass time^-2: j 1 kj 1e3 mj 1e6 kwh 3.6e6 mwh 3.6e9 gwh 3.6e12 twh 3.6e15 wh 3.6e3
length^2 mass time^-3: w 1 kw 1e3 mw 1e6 gw 1e9 tw 1e12 hp 745.7 horsepower 745.7
length^-1 mass time^-2: pa 1 hpa 100 kpa 1e3 mpa 1e6 bar 1e5 mbar 100 atm 101325 psi 6894.757
time^-1: hz 1 khz 1e3 mhz 1e6 ghz 1e9 rpm 0.016666666666666666
voltage: mv 1e-3 v 1 kv 1e3
current: ma 1e-3 amp 1
resistance: ω 1 kω 1e3 kohm 1e3
amount: mol 1 mmol 1e-3
length^2: sqm 1 sqft 0.09290304 ha 1e4 hectare 1e4 acre 4046.8564224
data: kb 1e3 mb 1e6 gb 1e9 tb 1e12
dollar: $ 1 dollar 1 usd 1 buck 1 cent 0.01
euro: € 1 euro 1 eur 1
sterling: £ 1 pound 1 gbp 1 pence 0.01
yen: ¥ 1 yen 1 jpy 1
rupee: ₹ 1 rupee 1 inr 1
temperature: °c 1 celsius 1 centigrade 1 °f 1 fahrenheit 1 kelvin 1
percent: % 1 percent 1 percentage 1 pct 1 prozent 1 pourcent 1
"""
# Names that take the prefixes of the SI.
_PREFIXABLE = """
length: meter 1
mass: gram 1e-3
time: second 1
length^3: liter 1e-3
length mass time^-2: newton 1
length^2 mass time^-2: joule 1 watthour 3600
length^2 mass time^-3: watt 1
length^-1 mass time^-2: pascal 1
time^-1: hertz 1
voltage: volt 1
current: ampere 1 amp 1
resistance: ohm 1
amount: mole 1
data: byte 1
"""
_PREFIXES = {"": 1.0, "nano": 1e-9, "micro": 1e-6, "milli": 1e-3, "centi": 1e-2, "deci": 0.1, "hecto": 1e2, "kilo": 1e3}
_PREFIXES |= {"mega": 1e6, "giga": 1e9, "tera": 1e12}
_POINTS = {"°c": (0.0, 100.0), "°f": (32.0, 212.0), "kelvin": (273.15, 373.15)}
"""The readings of each temperature scale where water freezes and boils."""
_SCALE_OF = {"celsius": "°c", "centigrade": "°c", "fahrenheit": "°f"}
_PHYSICAL = frozenset({"length", "mass", "time", "voltage", "current", "resistance", "amount", "data"})
_FACTOR = re.compile(r"(square|sq|cubic|cu)?[ .]?([^\W\d_]+?)(?:\^?(-?[0-9])|[ ](squared|cubed))?")
_OPERATOR = re.compile(r"\s?(/|·|\*|×|\bper\b)\s?")
_OPERATORS = frozenset({"/", "·", "*", "×", "per"})
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}


def _sizes(line: str) -> dict[str, tuple[str, float]]:
    dimension, _, rest = line.partition(":")
    words = rest.split()
    return {unit: (dimension, float(size)) for unit, size in zip(words[::2], words[1::2], strict=True)}


UNITS = {unit: size for line in _UNITS.strip().split("\n") for unit, size in _sizes(line).items()}
"""The dimension and size of each unit. Units of one dimension convert; a unit not listed here conflicts with none."""
UNITS |= {
    prefix + unit: (dimension, size * factor)
    for line in _PREFIXABLE.strip().split("\n")
    for unit, (dimension, size) in _sizes(line).items()
    for prefix, factor in _PREFIXES.items()
}

_SLOW = frozenset({"day", "week", "month", "year", "yr", "decade"})
PER = sorted(u for u, (d, _) in UNITS.items() if d.split("^")[0].split(" ")[0] in _PHYSICAL and u not in _SLOW)
"""The units that may follow "per" within a unit; "per person" is no unit, and "per year" a period."""
PERIODS = {"hour": 1 / 24, "hr": 1 / 24, "day": 1.0, "week": 7.0, "month": 365.25 / 12, "mo": 365.25 / 12}
PERIODS |= {"year": 365.25, "yr": 365.25, "annum": 365.25, "decade": 3652.5}
"""The days of the periods of a rate."""


def canonical_unit(written: str) -> str:
    """Return the spelling of a unit in ``UNITS``, or the word unchanged."""
    unit = written.replace("metre", "meter").replace("litre", "liter")
    singulars = [unit.removesuffix(ending) for ending in ("s", "es") if len(unit) > 2 and unit.endswith(ending)]
    return unit if unit in UNITS else next((singular for singular in singulars if singular in UNITS), unit)


@lru_cache(maxsize=1024)
def unit_size(unit: str) -> tuple[str, float] | None:
    """Return the dimension and the size of a unit, also of a product or quotient of units, or None if it is unknown.

    A rate per day or longer ("20 km per week") has the dimension of what is counted.
    """
    if canonical_unit(unit) in UNITS:
        return UNITS[canonical_unit(unit)]
    exponents, size, sign = dict[str, int](), 1.0, 1
    for part in _OPERATOR.split(unit):
        if part in _OPERATORS:
            sign = -1 if part in ("/", "per") else 1
            continue
        factor = _FACTOR.fullmatch(part)
        known = UNITS.get(canonical_unit(factor[2])) if factor else None
        if not factor or not known:
            return None
        if sign < 0 and canonical_unit(factor[2]) in _SLOW:
            continue
        power = sign * (int(factor[3]) if factor[3] else _POWERS.get(factor[1] or factor[4], 1))
        size *= known[1] ** power
        for term in known[0].split(" "):
            base, exponent = _base(term)
            exponents[base] = exponents.get(base, 0) + exponent * power
    if not exponents or not exponents.keys() <= _PHYSICAL:
        return None
    return " ".join(b if e == 1 else f"{b}^{e}" for b, e in sorted(exponents.items()) if e), size


def convert_temperature(value: float, unit: str, other: str) -> float | None:
    """Return a temperature on another scale, or None if a unit is no temperature scale."""
    scale, other_scale = _POINTS.get(_SCALE_OF.get(unit, unit)), _POINTS.get(_SCALE_OF.get(other, other))
    if scale is None or other_scale is None:
        return None
    (freezing, boiling), (other_freezing, other_boiling) = scale, other_scale
    return other_freezing + (value - freezing) * (other_boiling - other_freezing) / (boiling - freezing)


def _base(part: str) -> tuple[str, int]:
    base, _, exponent = part.partition("^")
    return base, int(exponent or 1)
