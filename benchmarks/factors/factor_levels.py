"""Factors and their levels, as they are named on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.varied_names import FACTOR_NAMES

Part = Literal["image", "text", "both"]

NONE = "none"
REGION = "region"
BUILT = "built"
IMAGE_FIRST, TEXT_FIRST = "image-first", "text-first"

_LONGEST_STATEMENT = 80
_MOST_LEVELS = 50

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class FactorKind:
    """A factor that can be varied.

    Attributes:
        part: The part of a prompt that it changes; an instance without that part is the same at all levels.
        levels: Its levels, as the documentation and error messages describe them.
        parse: Returns a level in its only spelling. It raises ValueError for anything else.
        is_log: Flag for doses that are compared by their ratios.
        unit: The unit of its doses.
    """

    part: Part
    levels: str
    parse: Callable[[str], str]
    is_log: bool = False
    unit: str = ""


def dose_of(level: str) -> float | None:
    """Return the dose that a level states; None if it is no number."""
    try:
        dose = float(level)
    except ValueError:
        return None
    return dose if math.isfinite(dose) else None


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor with the levels of a design; the first one is what the others are compared with."""

    name: str
    levels: tuple[str, ...]

    @property
    def kind(self) -> FactorKind:
        """The factor's kind."""
        return KINDS[self.name]


def parse_factor(text: str) -> Factor:
    """Return the factor of ``NAME=LEVEL,LEVEL,...``; a backslash before a comma keeps it in the level. Raises SpecError."""
    name, equals, rest = text.partition("=")
    name = name.strip()
    if name not in KINDS:
        raise SpecError(f"there is no factor {name[:40]!r}; {did_you_mean(name, KINDS)}")
    kind = KINDS[name]
    words = [word.strip() for word in _split(rest)] if equals else []
    if len(words) < 2:
        raise SpecError(f"{name} needs two levels or more, separated by commas: {name}=LEVEL,LEVEL, {kind.levels}.")
    if len(words) > _MOST_LEVELS:
        raise SpecError(f"{name} has {len(words)} levels; {_MOST_LEVELS} are the most.")
    levels = []
    for word in words:
        try:
            levels.append(kind.parse(word))
        except ValueError as error:
            raise SpecError(f"{name} has no level {word[:80]!r}; it takes {kind.levels}.") from error
    repeated = next((level for place, level in enumerate(levels) if level in levels[:place]), None)
    if repeated is not None:
        raise SpecError(f"{name} names the level {repeated!r} twice; name each level once.")
    return Factor(name, tuple(levels))


def parse_factors(texts: Sequence[str]) -> tuple[Factor, ...]:
    """Return the factors of a design, in the order in which they are applied. Raises SpecError."""
    factors = [parse_factor(text) for text in texts]
    names = [factor.name for factor in factors]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise SpecError(f"the factor {repeated} is named twice; give all its levels at once.")
    if not factors:
        raise SpecError(f"name a factor and its levels, as in --factor blur=0,2,4; {did_you_mean('', KINDS)}")
    return tuple(sorted(factors, key=lambda factor: FACTOR_NAMES.index(factor.name)))


def parse_box(text: str) -> Box:
    """Return a box ``X0:Y0:X1:Y1`` in shares of the width and the height. Raises ValueError if it is not in the image."""
    x0, y0, x1, y1 = (float(piece) for piece in text.split(":"))
    if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise ValueError(text)
    return x0, y0, x1, y1


def _split(text: str) -> list[str]:
    pieces, escaped = [""], False
    for character in text:
        if escaped or character not in ",\\":
            pieces[-1] += character
            escaped = False
        elif character == ",":
            pieces.append("")
        else:
            escaped = True
    return pieces


def _number(low: float, high: float, *, open_low: bool = False, words: Sequence[str] = ()) -> Callable[[str], str]:
    """Return a parser of the numbers from ``low`` to ``high``, and of ``words``."""

    def parse(text: str) -> str:
        if text in words:
            return text
        value = float(text)
        if not low <= value <= high or (open_low and value == low):
            raise ValueError(text)
        return f"{value:.12g}"

    return parse


def _whole(low: int, high: int, *, words: Sequence[str] = ()) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text in words:
            return text
        if not low <= int(text) <= high:
            raise ValueError(text)
        return str(int(text))

    return parse


def _crop(text: str) -> str:
    if text in (NONE, REGION):
        return text
    return ":".join(f"{edge:.12g}" for edge in parse_box(text))


def _order(text: str) -> str:
    if text not in (IMAGE_FIRST, TEXT_FIRST):
        raise ValueError(text)
    return text


def _statement(text: str) -> str:
    if not text or len(text) > _LONGEST_STATEMENT or not text.isprintable():
        raise ValueError(text)
    return text


_SOURCE = f"a few words on who wrote it, up to {_LONGEST_STATEMENT} characters, or none"
_DATE = f"a date, up to {_LONGEST_STATEMENT} characters, or none"

KINDS: Mapping[str, FactorKind] = {
    "crop": FactorKind(
        "image", "none, region (the decisive one), or a box X0:Y0:X1:Y1 in shares from 0 to 1 of the image", _crop
    ),
    "cover": FactorKind("image", "shares from 0 to 1 of the decisive region that are covered", _number(0, 1)),
    "resolution": FactorKind(
        "image",
        "shares of the width and height above 0, up to 1",
        _number(0, 1, open_low=True),
        is_log=True,
        unit="share of the width",
    ),
    "blur": FactorKind("image", "radii in pixels, from 0 to 500", _number(0, 500), unit="pixels"),
    "jpeg": FactorKind("image", "qualities from 1 to 95, or none", _whole(1, 95, words=(NONE,)), unit="quality"),
    "distance": FactorKind(
        "text",
        "relative distances from the right value, above 0 and up to 1000, or built (the build's own value)",
        _number(0, 1000, open_low=True, words=(BUILT,)),
        is_log=True,
        unit="share of the right value",
    ),
    "text-source": FactorKind("text", _SOURCE, _statement),
    "text-date": FactorKind("text", _DATE, _statement),
    "length": FactorKind("text", "words that are added, from 0 to 20000", _whole(0, 20_000), unit="words"),
    "image-source": FactorKind("image", _SOURCE, _statement),
    "image-date": FactorKind("image", _DATE, _statement),
    "order": FactorKind("both", f"{IMAGE_FIRST} and {TEXT_FIRST}", _order),
}
"""The factors by name, in the order of ``FACTOR_NAMES``."""
