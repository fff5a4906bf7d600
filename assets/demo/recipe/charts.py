"""Small bar charts with named bars and printed values: 96 x 96 pixels, drawn with Pillow and its own font.

Everything is decided by the random generator that is handed in, so that one seed gives the same pixels everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

SIZE = 96
NAMES = ("kale", "corn", "beet", "leek", "peas", "okra", "plum", "lime", "figs", "pear", "kiwi", "date")
VALUES = range(10, 100)

_COLOURS = (
    (66, 114, 181),
    (221, 132, 82),
    (85, 168, 104),
    (196, 78, 82),
    (129, 114, 178),
    (147, 120, 96),
    (218, 139, 195),
    (140, 140, 140),
    (204, 185, 116),
    (100, 181, 205),
)
_HELD_OUT_SEED, _HELD_OUT_SHARE = 20261, 0.1

Bars = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart's RGB ``image``, its ``bars`` from top to bottom, the y of each bar's middle, and where each character is.

    ``glyphs`` are characters with the x and y of their centres, in pixels.
    """

    image: Any
    bars: Bars
    middles: tuple[float, ...]
    glyphs: tuple[tuple[str, float, float], ...]


@cache
def held_out_pairs() -> frozenset[tuple[str, int]]:
    """Return the tenth of all pairs of a name and a value that no training chart and no training passage shows."""
    pairs = [(name, value) for name in NAMES for value in VALUES]
    return frozenset(Random(_HELD_OUT_SEED).sample(pairs, round(_HELD_OUT_SHARE * len(pairs))))


def training_bars(random: Random, fewest: int = 3, most: int = 5) -> Bars:
    """Draw distinct names with distinct values, none of them a held-out pair."""
    names = random.sample(NAMES, random.randint(fewest, most))
    return valued(random, names)


def valued(random: Random, names: Sequence[str], fixed: Sequence[tuple[str, int]] = ()) -> Bars:
    """Return a bar for each of ``names``; ``fixed`` sets some values, the others are drawn from the pairs of the training."""
    values = dict(fixed)
    for name in names:
        while name not in values or list(values.values()).count(values[name]) > 1:
            value = random.choice(VALUES)
            if (name, value) not in held_out_pairs() and value not in values.values():
                values[name] = value
    return tuple((name, values[name]) for name in names)


def draw(bars: Bars, random: Random) -> Drawing:
    """Draw up to five horizontal bars, each with its name before it and its value behind it."""
    from PIL import Image, ImageDraw

    background = random.choice((255, 255, 250, 244))
    ink = (random.randint(0, 50),) * 3
    font = _font(random.choice((11, 12)))
    image = Image.new("RGB", (SIZE, SIZE), (background,) * 3)
    pen = ImageDraw.Draw(image)
    left, axis = random.randint(1, 2), random.randint(33, 34)
    longest = random.randint(34, 42)
    top, bottom = random.randint(1, 5), SIZE - random.randint(1, 5)
    pitch = (bottom - top) / len(bars)
    thickness = min(pitch, 22) * random.uniform(0.55, 0.85)
    unit = longest / (max(value for _, value in bars) * random.uniform(1, 1.15))
    first, varied = random.randrange(len(_COLOURS)), random.random() < 0.5
    middles: list[float] = []
    glyphs: list[tuple[str, float, float]] = []
    if random.random() < 0.7:
        pen.line((axis - 1, top, axis - 1, bottom), fill=ink)
    for number, (name, value) in enumerate(bars):
        middle = top + pitch * (number + 0.5)
        end = axis + round(unit * value)
        colour = _COLOURS[(first + number * varied) % len(_COLOURS)]
        pen.rectangle((axis, round(middle - thickness / 2), end, round(middle + thickness / 2)), fill=colour)
        middles.append(middle)
        for text, x in ((name, left), (str(value), end + 3)):
            baseline = round(middle) + 4
            pen.text((x, baseline), text, font=font, fill=ink, anchor="ls")
            glyphs += [(character, x + centre, baseline - 4) for character, centre in _centres(text, font)]
    return Drawing(image, bars, tuple(middles), tuple(glyphs))


def _centres(text: str, font: Any) -> Iterator[tuple[str, float]]:
    for i, character in enumerate(text):
        yield character, (font.getlength(text[:i]) + font.getlength(text[: i + 1])) / 2


@cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)
