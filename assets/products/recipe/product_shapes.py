"""The products' shapes, each in a box of the picture and in two views."""

from __future__ import annotations

from collections.abc import Callable

from assets.products.recipe.canvas import Box, Canvas
from assets.products.recipe.product_catalogue import Colour

Shape = Callable[[Canvas, Box, Colour, bool], None]

LINE: Colour = (70, 74, 82)


def draw(canvas: Canvas, shape: str, box: Box, paint: Colour, side: bool = False) -> None:
    """Draw a product of a kind in ``box``; ``side`` is its view from the side."""
    SHAPES[shape](canvas, box, paint, side)


def _at(box: Box, *places: float) -> tuple[float, ...]:
    """Return places from 0 to 1 within the box, alternately x and y, in pixels."""
    x0, y0, x1, y1 = box
    return tuple((x1 - x0) * p + x0 if i % 2 == 0 else (y1 - y0) * p + y0 for i, p in enumerate(places))


def _points(box: Box, *places: float) -> list[tuple[float, float]]:
    flat = _at(box, *places)
    return list(zip(flat[::2], flat[1::2], strict=True))


def _darker(paint: Colour) -> Colour:
    return paint[0] * 4 // 5, paint[1] * 4 // 5, paint[2] * 4 // 5


def _outlined(canvas: Canvas, points: list[tuple[float, float]], paint: Colour) -> None:
    canvas.polygon(points, paint)
    canvas.line([*points, points[0], points[1]], LINE, 2)


def lamp(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    if side:
        canvas.rectangle(_at(box, 0.3, 0.9, 0.7, 1), paint, 5, LINE)
        canvas.rectangle(_at(box, 0.46, 0.2, 0.54, 0.92), paint, 2, LINE)
        _outlined(canvas, _points(box, 0.36, 0, 0.64, 0, 0.74, 0.24, 0.26, 0.24), paint)
        return
    canvas.rectangle(_at(box, 0.1, 0.86, 0.9, 1), paint, 6, LINE)
    for width, fill in ((9, LINE), (5, paint)):
        canvas.line(_points(box, 0.5, 0.88, 0.22, 0.5, 0.56, 0.14), fill, width)
    _outlined(canvas, _points(box, 0.5, 0.02, 0.68, 0, 1, 0.3, 0.55, 0.34), paint)
    canvas.ellipse(_at(box, 0.66, 0.27, 0.86, 0.37), (255, 226, 130), LINE)


def kettle(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    if side:
        canvas.rectangle(_at(box, 0.26, 0.2, 0.74, 0.95), paint, 12, LINE)
        canvas.rectangle(_at(box, 0.43, 0.12, 0.57, 0.85), _darker(paint), 6, LINE)
    else:
        canvas.arc(_at(box, 0.6, 0.22, 1.0, 0.8), 260, 100, LINE, 8)
        _outlined(canvas, _points(box, 0.02, 0.28, 0.2, 0.34, 0.2, 0.56), paint)
        _outlined(canvas, _points(box, 0.22, 0.2, 0.72, 0.2, 0.82, 0.94, 0.12, 0.94), paint)
        canvas.rectangle(_at(box, 0.26, 0.12, 0.68, 0.2), _darker(paint), 3, LINE)
    canvas.ellipse(_at(box, 0.41, 0, 0.55, 0.13), LINE)
    canvas.rectangle(_at(box, 0.1, 0.93, 0.86, 1), LINE, 4)


def bottle(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    canvas.rectangle(_at(box, 0.34, 0, 0.66, 0.13), LINE, 4)
    canvas.rectangle(_at(box, 0.2, 0.16, 0.8, 1), paint, 22, LINE)
    if side:
        canvas.arc(_at(box, 0.04, 0.02, 0.44, 0.3), 90, 290, LINE, 5)
        canvas.rectangle(_at(box, 0.44, 0.36, 0.56, 0.84), _darker(paint), 4)
    else:
        canvas.rectangle(_at(box, 0.2, 0.24, 0.8, 0.28), _darker(paint))


def backpack(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    if side:
        canvas.arc(_at(box, 0.5, 0.2, 0.95, 0.85), 270, 90, LINE, 7)
        canvas.rectangle(_at(box, 0.28, 0.06, 0.72, 1), paint, 26, LINE)
        canvas.rectangle(_at(box, 0.18, 0.5, 0.44, 0.9), _darker(paint), 12, LINE)
        return
    canvas.arc(_at(box, 0.36, 0, 0.64, 0.2), 180, 360, LINE, 6)
    canvas.rectangle(_at(box, 0.1, 0.08, 0.9, 1), paint, 34, LINE)
    canvas.rectangle(_at(box, 0.2, 0.64, 0.8, 0.92), _darker(paint), 10, LINE)
    canvas.line(_points(box, 0.26, 0.7, 0.74, 0.7), LINE, 2)


def pump(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    canvas.rectangle(_at(box, 0.46, 0.08, 0.54, 0.24), LINE)
    canvas.rectangle(_at(box, *((0.4, 0.02, 0.6, 0.09) if side else (0.14, 0.02, 0.56, 0.09))), LINE, 3)
    canvas.rectangle(_at(box, 0.36, 0.2, 0.64, 0.3), _darker(paint), 4, LINE)
    canvas.rectangle(_at(box, *((0.24, 0.28, 0.76, 1) if side else (0.1, 0.28, 0.9, 1))), paint, 18, LINE)


def mug(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    if not side:
        canvas.ellipse(_at(box, 0.62, 0.3, 1, 0.8), None, LINE, 9)
    canvas.rectangle(_at(box, 0.08, 0.12, 0.78, 1), paint, 14, LINE)
    canvas.ellipse(_at(box, 0.08, 0.05, 0.78, 0.22), _darker(paint), LINE)
    if side:
        canvas.rectangle(_at(box, 0.38, 0.34, 0.48, 0.86), _darker(paint), 6, LINE)


def headphones(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    if side:
        canvas.rectangle(_at(box, 0.44, 0, 0.56, 0.6), paint, 4, LINE)
        canvas.ellipse(_at(box, 0.2, 0.42, 0.8, 1), paint, LINE)
        canvas.ellipse(_at(box, 0.34, 0.56, 0.66, 0.86), _darker(paint), LINE)
        return
    for inset, fill in ((0.0, LINE), (0.02, paint)):
        canvas.arc(_at(box, 0.08 + inset, 0.02 + inset, 0.92 - inset, 1.02), 180, 360, fill, 14 if inset == 0 else 10)
    canvas.rectangle(_at(box, 0, 0.46, 0.26, 1), paint, 14, LINE)
    canvas.rectangle(_at(box, 0.74, 0.46, 1, 1), paint, 14, LINE)


def case(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    canvas.arc(_at(box, 0.38, 0.02, 0.62, 0.3), 180, 360, LINE, 5)
    canvas.rectangle(_at(box, *((0.2, 0.15, 0.8, 1) if side else (0, 0.15, 1, 1))), paint, 28, LINE)
    if side:
        canvas.line(_points(box, 0.5, 0.16, 0.5, 0.98), LINE, 3)
    else:
        canvas.line(_points(box, 0.03, 0.5, 0.97, 0.5), _darker(paint), 3)


def plant(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    for dx in (-0.32, -0.14, 0.1, 0.32):
        canvas.line(_points(box, 0.5, 0.62, 0.5 + dx, 0.08 + abs(dx) / 2), (74, 130, 80), 6)
    _outlined(canvas, _points(box, 0.2, 0.58, 0.8, 0.58, 0.68, 1, 0.32, 1), (190, 110, 80))


def cup(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    canvas.ellipse(_at(box, 0.62, 0.3, 1, 0.8), None, LINE, 5)
    canvas.rectangle(_at(box, 0.08, 0.2, 0.76, 1), (250, 250, 250), 8, LINE)


def cloth(canvas: Canvas, box: Box, paint: Colour, side: bool) -> None:
    _outlined(canvas, _points(box, 0, 0.3, 0.9, 0.1, 1, 0.9, 0.1, 1), paint)
    canvas.line(_points(box, 0.05, 0.55, 0.94, 0.4), LINE, 2)


SHAPES: dict[str, Shape] = {
    "lamp": lamp,
    "kettle": kettle,
    "bottle": bottle,
    "backpack": backpack,
    "pump": pump,
    "mug": mug,
    "headphones": headphones,
    "case": case,
    "plant": plant,
    "cup": cup,
    "cloth": cloth,
}

ASPECT = {
    "lamp": 0.9,
    "kettle": 1.05,
    "bottle": 0.5,
    "backpack": 0.85,
    "pump": 0.6,
    "mug": 1.1,
    "headphones": 1.0,
    "case": 1.25,
}
"""Width by height of the products."""
