"""Number words, magnitudes and units, as an answer may write them."""

from __future__ import annotations

_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL = "first second third fourth fifth sixth seventh eighth ninth tenth"
_DECADE = "twenties thirties forties fifties sixties seventies eighties nineties"

NUMBER_WORDS: dict[str, float] = {"none": 0.0, "nil": 0.0}
NUMBER_WORDS.update({word: float(i) for i, word in enumerate(_ONES.split())})
NUMBER_WORDS.update({word: 10.0 * i for i, word in enumerate(_TENS.split(), 2)})
CENTURIES = {word: 1000.0 + 100.0 * (value - 10.0) for word, value in NUMBER_WORDS.items() if 13 <= value <= 20}
ORDINALS = {word: float(i) for i, word in enumerate(_ORDINAL.split(), 1)}
DECADES = {word: 10.0 * i for i, word in enumerate(_DECADE.split(), 2)}
DENOMINATORS = {"half": 2.0, "quarter": 4.0} | {word: value for word, value in ORDINALS.items() if value >= 3.0}

SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
MAGNITUDE_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9}
"""One-letter magnitudes directly after the digits."""
MAGNITUDES = SCALES | {"lakh": 1e5, "crore": 1e7, "dozen": 12.0, "milliard": 1e9}
MAGNITUDES |= {"mn": 1e6, "mio": 1e6, "bn": 1e9, "tn": 1e12}

# Dimension, then each unit with its size relative to the dimension's unit of size 1.
_UNITS = """
length: mm 1e-3 millimeter 1e-3 cm 1e-2 centimeter 1e-2 m 1 meter 1 km 1e3 kilometer 1e3 mile 1609.344 mi 1609.344
length: ft 0.3048 feet 0.3048 foot 0.3048 inch 0.0254 yard 0.9144 nm 1e-9 nanometer 1e-9 µm 1e-6 micrometer 1e-6
mass: mg 1e-6 milligram 1e-6 g 1e-3 gram 1e-3 kg 1 kilogram 1 kilo 1 ton 1e3 tonne 1e3 t 1e3 lb 0.45359237
time: ms 1e-3 millisecond 1e-3 s 1 sec 1 second 1 min 60 minute 60 h 3600 hr 3600 hour 3600 day 86400 week 604800
time: month 2629800 year 31557600 yr 31557600 decade 315576000
volume: ml 1e-3 milliliter 1e-3 cl 1e-2 l 1 liter 1 hl 100
speed: m/s 1 km/h 0.2777777777777778 kph 0.2777777777777778 mph 0.44704
acceleration: m/s^2 1 m/s2 1
voltage: mv 1e-3 v 1 volt 1 kv 1e3
current: ma 1e-3 milliamp 1e-3 amp 1 ampere 1
resistance: ω 1 ohm 1 kω 1e3 kohm 1e3
power: w 1 watt 1 kw 1e3 kilowatt 1e3 mw 1e6 megawatt 1e6 gw 1e9 gigawatt 1e9
energy: j 1 joule 1 kj 1e3 kilojoule 1e3 kwh 3.6e6 mwh 3.6e9 gwh 3.6e12 twh 3.6e15
force: n 1 newton 1 kn 1e3
frequency: hz 1 hertz 1 khz 1e3 mhz 1e6 ghz 1e9
pressure: pa 1 pascal 1 hpa 100 kpa 1e3 mpa 1e6 bar 1e5
area: m^2 1 m2 1 sqm 1 ha 1e4 hectare 1e4 km^2 1e6 km2 1e6 acre 4046.8564224
data: kb 1e3 mb 1e6 gb 1e9 tb 1e12 megabyte 1e6 gigabyte 1e9 terabyte 1e12
dollar: $ 1 dollar 1 usd 1 buck 1 cent 0.01
euro: € 1 euro 1 eur 1
sterling: £ 1 pound 1 gbp 1 pence 0.01
yen: ¥ 1 yen 1
rupee: ₹ 1 rupee 1 inr 1
celsius: °c 1 celsius 1
fahrenheit: °f 1 fahrenheit 1
percent: % 1 percent 1 percentage 1 pct 1 prozent 1 pourcent 1
"""


def _sizes(line: str) -> dict[str, tuple[str, float]]:
    dimension, _, rest = line.partition(":")
    words = rest.split()
    return {unit: (dimension, float(size)) for unit, size in zip(words[::2], words[1::2], strict=True)}


UNITS = {unit: size for line in _UNITS.strip().split("\n") for unit, size in _sizes(line).items()}
"""The dimension and size of each unit. Units of one dimension convert; a unit not listed here conflicts with none."""


def canonical_unit(written: str) -> str:
    """Return the spelling of a unit in ``UNITS``, or the word unchanged."""
    unit = written.replace("metre", "meter").replace("litre", "liter")
    if unit not in UNITS and len(unit) > 2 and unit.endswith("s") and unit[:-1] in UNITS:
        return unit[:-1]
    return unit
