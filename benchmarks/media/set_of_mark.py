"""Set-of-mark: boxes with labels drawn on an image, legible on any background and at any size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from benchmarks.vocabulary import Mark

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage
    from PIL.ImageDraw import ImageDraw as Draw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, with x1 and y1 inclusive."""

_RED = (255, 45, 45)
_COLOURS = (_RED, (0, 200, 255), (255, 215, 0), (60, 220, 60), (255, 90, 230), (255, 140, 0))
"""Red first, as in Figure 8 of CrossCheck-Bench; all are bright, so that they contrast with black."""

_BLACK = (0, 0, 0)
_SMALLEST_FONT = 8
_ELLIPSIS = "..."
_GRID = 12


def draw_marks(image: PILImage, marks: Sequence[Mark], width: int, height: int) -> PILImage:
    """Return a copy of the RGB ``image`` with ``marks``, whose boxes are in pixels of its ``width`` by ``height`` original.

    Lines and labels are sized for ``image``, so an image should be scaled before it is marked. Each line is bright between
    two black ones. Labels stay inside the image and are placed so that they cover no other label and, if possible, no box. A
    label that is too long is shortened, and one that would cover half of the image is omitted. Boxes are clipped to the image.
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
    taken_boxes: list[Box] = []
    for number, (mark, box) in enumerate(zip(marks, boxes, strict=True)):
        text, font, size = _fitted(draw, mark.label, max(_SMALLEST_FONT, round(mean / 28)), line, image.size)
        if 2 * size[0] * size[1] > image.width * image.height:
            continue
        plate = _place(box, size, image.size, taken_boxes, boxes)
        taken_boxes.append(plate)
        draw.rectangle(plate, fill=_COLOURS[number % len(_COLOURS)], outline=_BLACK)
        left, top, *_ = draw.textbbox((0, 0), text, font=font)
        draw.text((plate[0] + line + 1 - left, plate[1] + line + 1 - top), text, fill=_BLACK, font=font)
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
    """Return the label shortened to fit an image of ``size``, its font and the size of its plate."""
    from PIL import ImageFont

    def plate(text: str, font: Font) -> tuple[int, int]:
        left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
        return math.ceil(right - left) + 2 * line + 3, math.ceil(bottom - top) + 2 * line + 3

    def fits(text: str, font: Font) -> bool:
        width, height = plate(text, font)
        return width <= size[0] and height <= size[1]

    font: Font = ImageFont.load_default(points)
    while not fits(label, font) and points > _SMALLEST_FONT:
        points = max(_SMALLEST_FONT, points * 4 // 5)
        font = ImageFont.load_default(points)
    shorter = (label[:length] + _ELLIPSIS for length in range(len(label) - 1, 0, -1))
    text = label if fits(label, font) else next((text for text in shorter if fits(text, font)), label[:1])
    width, height = plate(text, font)
    return text, font, (min(width, size[0]), min(height, size[1]))


def _place(box: Box, size: tuple[int, int], image: tuple[int, int], taken: Sequence[Box], boxes: Sequence[Box]) -> Box:
    """Return the place for the label of ``box`` that covers the least of other labels, then of boxes; the nearest of equals."""

    def cost(at: Box) -> tuple[int, int]:
        return sum(_overlap(at, other) for other in taken), sum(_overlap(at, other) for other in boxes)

    return min(_places(box, size, image), key=cost)


def _places(box: Box, size: tuple[int, int], image: tuple[int, int]) -> Iterator[Box]:
    """Yield places for a label inside the image: above, below, beside and inside the box, then anywhere."""
    (wide, high), (x0, y0, x1, y1) = size, box
    near_places = [
        *((x0, y0 - high), (x1 - wide + 1, y0 - high), (x0, y1 + 1), (x1 - wide + 1, y1 + 1)),
        *((x1 + 1, y0), (x0 - wide, y0), (x1 + 1, y1 - high + 1), (x0 - wide, y1 - high + 1)),
        *((x0, y0), (x1 - wide + 1, y0), (x0, y1 - high + 1), (x1 - wide + 1, y1 - high + 1)),
    ]
    right, bottom = image[0] - wide, image[1] - high
    steps = [(right * i // _GRID, bottom * j // _GRID) for i in range(_GRID + 1) for j in range(_GRID + 1)]
    steps.sort(key=lambda at: abs(at[0] - x0) + abs(at[1] - y0))
    for x, y in (*near_places, *steps):
        x, y = min(max(x, 0), right), min(max(y, 0), bottom)
        yield x, y, x + wide - 1, y + high - 1


def _overlap(a: Box, b: Box) -> int:
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    return max(0, width) * max(0, height)
