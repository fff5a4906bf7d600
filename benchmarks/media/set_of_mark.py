"""Set-of-mark: boxes with their labels drawn on an image, to be legible on any background and at any size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from benchmarks.base import Mark

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage
    from PIL.ImageDraw import ImageDraw as Draw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels; x1 and y1 are the last ones that belong to it."""

_RED = (255, 45, 45)
_COLOURS = (_RED, (0, 200, 255), (255, 215, 0), (60, 220, 60), (255, 90, 230), (255, 140, 0))
"""Red first, as in Figure 8 of CrossCheck-Bench; all of them bright, so that black stands out on them and beside them."""

_BLACK = (0, 0, 0)
_SMALLEST_FONT = 8
_SHORTENED = "..."
_GRID = 12


def draw_marks(image: PILImage, marks: Sequence[Mark], width: int, height: int) -> PILImage:
    """A copy of the RGB ``image`` with ``marks``, whose boxes are in pixels of a ``width`` by ``height`` picture of it.

    Lines and labels grow with the image that is drawn on, so one that is scaled down is marked afterwards. A line is bright
    between two black ones. Labels stay inside the image; each is put where it covers no other label and, where there is such
    a place, no box; one that is too long for the image is shortened, and one that would cover half of it is left out, as is
    what of a box is outside the image.
    """
    from PIL import ImageDraw

    marked = image.copy()
    draw = ImageDraw.Draw(marked)
    mean = math.sqrt(image.width * image.height)
    line = max(1, round(min(mean / 250, min(image.size) / 12)))
    across, down = image.width / width, image.height / height
    boxes = [_scaled(mark.box, across, down, image.size) for mark in marks]
    for number, box in enumerate(boxes):
        _outline(draw, box, line, _COLOURS[number % len(_COLOURS)])
    taken: list[Box] = []
    for number, (mark, box) in enumerate(zip(marks, boxes, strict=True)):
        text, font, size = _fitted(draw, mark.label, max(_SMALLEST_FONT, round(mean / 28)), line, image.size)
        if 2 * size[0] * size[1] > image.width * image.height:
            continue
        where = _place(box, size, image.size, taken, boxes)
        taken.append(where)
        draw.rectangle(where, fill=_COLOURS[number % len(_COLOURS)], outline=_BLACK)
        left, top, *_ = draw.textbbox((0, 0), text, font=font)
        draw.text((where[0] + line + 1 - left, where[1] + line + 1 - top), text, fill=_BLACK, font=font)
    return marked


def _scaled(box: Sequence[float], across: float, down: float, size: tuple[int, int]) -> Box:
    last = size[0] - 1, size[1] - 1
    x0, x1 = (min(max(round(x * across), 0), last[0]) for x in (box[0], box[2]))
    y0, y1 = (min(max(round(y * down), 0), last[1]) for y in (box[1], box[3]))
    return x0, y0, max(x0, x1), max(y0, y1)


def _outline(draw: Draw, box: Box, line: int, colour: tuple[int, int, int]) -> None:
    edge = max(1, line // 3)
    x0, y0, x1, y1 = box
    around = (x0 - edge, y0 - edge, x1 + edge, y1 + edge)
    draw.rectangle(around, outline=_BLACK, width=line + 2 * edge)
    draw.rectangle(box, outline=colour, width=line)


def _fitted(draw: Draw, label: str, points: int, line: int, size: tuple[int, int]) -> tuple[str, Font, tuple[int, int]]:
    """The label as it can be written on an image of ``size``, with its font and the size of its plate."""
    from PIL import ImageFont

    def plate(text: str, font: Font) -> tuple[int, int]:
        left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
        return math.ceil(right - left) + 2 * line + 3, math.ceil(bottom - top) + 2 * line + 3

    def fits(text: str, font: Font) -> bool:
        wide, high = plate(text, font)
        return wide <= size[0] and high <= size[1]

    font: Font = ImageFont.load_default(points)
    while not fits(label, font) and points > _SMALLEST_FONT:
        points = max(_SMALLEST_FONT, points * 4 // 5)
        font = ImageFont.load_default(points)
    shorter = (label[:kept] + _SHORTENED for kept in range(len(label) - 1, 0, -1))
    text = label if fits(label, font) else next((text for text in shorter if fits(text, font)), label[:1])
    wide, high = plate(text, font)
    return text, font, (min(wide, size[0]), min(high, size[1]))


def _place(box: Box, size: tuple[int, int], image: tuple[int, int], taken: Sequence[Box], boxes: Sequence[Box]) -> Box:
    """Where the label of ``box`` covers least: of other labels first, then of boxes; of equal places the nearest."""

    def cost(at: Box) -> tuple[int, int]:
        return sum(_overlap(at, other) for other in taken), sum(_overlap(at, other) for other in boxes)

    return min(_places(box, size, image), key=cost)


def _places(box: Box, size: tuple[int, int], image: tuple[int, int]) -> Iterator[Box]:
    """The places for a label inside the image: above and below the box, within it, beside it, then anywhere."""
    (wide, high), (x0, y0, x1, y1) = size, box
    near = [
        *((x0, y0 - high), (x1 - wide + 1, y0 - high), (x0, y1 + 1), (x1 - wide + 1, y1 + 1)),
        *((x1 + 1, y0), (x0 - wide, y0), (x1 + 1, y1 - high + 1), (x0 - wide, y1 - high + 1)),
        *((x0, y0), (x1 - wide + 1, y0), (x0, y1 - high + 1), (x1 - wide + 1, y1 - high + 1)),
    ]
    right, bottom = image[0] - wide, image[1] - high
    steps = [(right * i // _GRID, bottom * j // _GRID) for i in range(_GRID + 1) for j in range(_GRID + 1)]
    steps.sort(key=lambda at: abs(at[0] - x0) + abs(at[1] - y0))
    for x, y in (*near, *steps):
        x, y = min(max(x, 0), right), min(max(y, 0), bottom)
        yield x, y, x + wide - 1, y + high - 1


def _overlap(one: Box, other: Box) -> int:
    wide = min(one[2], other[2]) - max(one[0], other[0]) + 1
    high = min(one[3], other[3]) - max(one[1], other[1]) + 1
    return max(0, wide) * max(0, high)
