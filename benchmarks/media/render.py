"""3D models as pictures: labelled views, orthographic, z-buffered, shaded.

After coordinates are put on a grid everything is integers, apart from square roots, so that a view's pixels are the same on
every machine. Drawn at twice the size and averaged.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.errors import MediaError
from benchmarks.media.limits import MOST_COVERED
from benchmarks.media.points import NAME, Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image as PILImage

SIZE = 336
"""Pixels of a view's sides."""

TOO_DENSE = "has too many large faces or points that cover one another; simplify it"

_ONE = 1024
_VIEWS: dict[str, tuple[tuple[int, int, int], ...]] = {
    # Rows: what goes right, up and towards the eye, of a model with y up and z to the front; in units of _ONE.
    "front": ((_ONE, 0, 0), (0, _ONE, 0), (0, 0, _ONE)),
    "right": ((0, 0, -_ONE), (0, _ONE, 0), (_ONE, 0, 0)),
    "back": ((-_ONE, 0, 0), (0, _ONE, 0), (0, 0, -_ONE)),
    "left": ((0, 0, _ONE), (0, _ONE, 0), (-_ONE, 0, 0)),
    "top": ((_ONE, 0, 0), (0, 0, -_ONE), (0, _ONE, 0)),
    # Turned by 40 degrees and seen from 25 degrees above.
    "three-quarter": ((784, 0, -658), (-278, 928, -331), (597, 433, 711)),
}
VIEWS = tuple(_VIEWS)

_SCALE = 2
_GRID = 1 << 16
_MARGIN = 24
_BACKGROUND = 255
_GREY = 190
_LIGHT = np.array([-0.35, 0.55, 0.76])
_CHUNK = 1 << 20
_OUTLINE = 140
"""Of 256: how light an outline is."""


def views(shape: Shape, names: tuple[str, ...] = VIEWS, size: int = SIZE) -> list[PILImage]:
    """The views of ``names``, RGB squares of ``size`` pixels, all to one scale, each with its name in a corner.

    Raises MediaError where there is more to draw than ``MOST_COVERED``.
    """
    from PIL import Image, ImageDraw, ImageFont

    grid, pixels = _on_grid(shape), size * _SCALE
    found = []
    for name in names:
        drawn = _view(grid, shape, _VIEWS[name], pixels)
        four = drawn.reshape(size, _SCALE, size, _SCALE, 3).astype(np.int64).sum((1, 3))
        image = Image.fromarray(((four + 2) // _SCALE**2).astype(np.uint8))
        font = ImageFont.load_default_imagefont()  # Pillow's bitmaps: no other font is the same everywhere
        ImageDraw.Draw(image).text((5, 4), name, fill=(90, 90, 90), font=font)
        found.append(image)
    return found


def _on_grid(shape: Shape) -> NDArray[np.int64]:
    """Points, the middle of their box at 0, on a grid on which the ball around the box has a radius of ``_GRID``."""
    used = shape.points if shape.faces is None else shape.points[np.unique(shape.faces)]
    low, high = used.min(0), used.max(0)
    half = (high - low) / 2
    radius = float(np.sqrt(half[0] * half[0] + half[1] * half[1] + half[2] * half[2])) or 1.0
    moved = np.clip((shape.points - (low + half)) / radius, -1.0, 1.0)
    found: NDArray[np.int64] = np.rint(moved * _GRID).astype(np.int64)
    return found


def _view(
    grid: NDArray[np.int64], shape: Shape, rows: tuple[tuple[int, int, int], ...], pixels: int
) -> NDArray[np.uint8]:
    right, up, near = (
        (grid[:, 0] * row[0] + grid[:, 1] * row[1] + grid[:, 2] * row[2]) // _ONE for row in map(list, rows)
    )
    half = pixels // 2 - _MARGIN
    x = pixels // 2 + right * half // _GRID
    y = pixels // 2 - up * half // _GRID
    turned = np.stack([right, up, near], 1)
    if shape.faces is None:
        return _draw_points(x, y, near, shape.colours, pixels)
    return _draw_faces(x, y, turned, shape.faces, shape.colours, pixels)


def _draw_faces(
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    turned: NDArray[np.int64],
    faces: NDArray[np.int64],
    colours: NDArray[np.uint8] | None,
    pixels: int,
) -> NDArray[np.uint8]:
    xs, ys, zs = x[faces], y[faces], turned[:, 2][faces]
    left, top = xs.min(1), ys.min(1)
    wide, high = xs.max(1) - left + 1, ys.max(1) - top + 1
    area = (xs[:, 1] - xs[:, 0]) * (ys[:, 2] - ys[:, 0]) - (xs[:, 2] - xs[:, 0]) * (ys[:, 1] - ys[:, 0])
    buffer = np.full(pixels * pixels, -1, np.int64)
    number = np.arange(len(faces))
    for chosen in _chunks(wide * high):
        of, at = _expanded((wide * high)[chosen])
        of = number[chosen][of]
        px, py = left[of] + at % wide[of], top[of] + at // wide[of]
        a = _edge(xs, ys, of, 1, 2, px, py)
        b = _edge(xs, ys, of, 2, 0, px, py)
        c = _edge(xs, ys, of, 0, 1, px, py)
        whole = area[of]
        sign = np.sign(whole)
        inside = (a * sign >= 0) & (b * sign >= 0) & (c * sign >= 0) & (whole != 0)
        of, a, b, c, whole = of[inside], a[inside], b[inside], c[inside], whole[inside]
        depth = (a * zs[of, 0] + b * zs[of, 1] + c * zs[of, 2]) // whole + 2 * _GRID
        np.maximum.at(buffer, py[inside] * pixels + px[inside], depth * len(faces) + of)
    face = np.where(buffer >= 0, buffer % len(faces), 0)
    base = np.full((len(faces), 3), _GREY, np.int64) if colours is None else colours.astype(np.int64)
    lit = base * _brightness(_normals(turned, faces))[:, None] // 256
    drawn = np.where((buffer >= 0)[:, None], lit[face], _BACKGROUND).reshape(pixels, pixels, 3)
    depths = np.where(buffer >= 0, buffer // len(faces), 0).reshape(pixels, pixels)
    return _outlined(drawn, depths).astype(np.uint8)


def _draw_points(
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    near: NDArray[np.int64],
    colours: NDArray[np.uint8] | None,
    pixels: int,
) -> NDArray[np.uint8]:
    """Every point as a small ball, larger the fewer there are."""
    radius = int(np.clip(pixels // (2 * int(np.sqrt(len(x))) + 1), 1, 12))
    steps = np.arange(-radius, radius + 1)
    dx, dy = (each.ravel() for each in np.meshgrid(steps, steps))
    over = radius * radius + radius - dx * dx - dy * dy
    dx, dy, over = dx[over >= 0], dy[over >= 0], over[over >= 0]
    rise = np.sqrt(over).astype(np.int64)
    buffer = np.full(pixels * pixels, -1, np.int64)
    count, number = len(x), np.arange(len(x))
    if count * len(dx) > MOST_COVERED:
        raise MediaError(NAME, TOO_DENSE)
    for sx, sy, height in zip(dx.tolist(), dy.tolist(), rise.tolist(), strict=True):
        at = (y + sy) * pixels + x + sx
        depth = (near + 2 * _GRID) * pixels // (2 * _GRID) + height
        light = 160 + 95 * height // (radius + 1)
        np.maximum.at(buffer, at, (depth * 256 + light) * count + number)
    shown = buffer >= 0
    point, light = np.where(shown, buffer % count, 0), np.where(shown, buffer // count % 256, 0)
    depth = np.where(shown, buffer // count // 256, 0)
    if colours is None:
        low, high = int(depth[shown].min()), int(depth[shown].max())
        value = 90 + 130 * (depth - low) // max(high - low, 1)  # nearer is lighter
        base = np.stack([value * 9 // 10, value * 9 // 10, value], 1)
    else:
        base = colours[point].astype(np.int64)
    drawn = np.where(shown[:, None], base * light[:, None] // 255, _BACKGROUND)
    return np.clip(drawn, 0, 255).reshape(pixels, pixels, 3).astype(np.uint8)


def _chunks(sizes: NDArray[np.int64]) -> list[slice]:
    """Slices of about ``_CHUNK`` in sum."""
    total = np.cumsum(sizes)
    if len(total) and total[-1] > MOST_COVERED:
        raise MediaError(NAME, TOO_DENSE)
    ends = np.unique(np.searchsorted(total, np.arange(_CHUNK, int(total[-1]) + _CHUNK, _CHUNK), side="right"))
    edges = [0, *(int(end) for end in ends if 0 < end < len(sizes)), len(sizes)]
    return [slice(start, end) for start, end in itertools.pairwise(edges)]


def _expanded(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each of so many places of each item: the item, and the place's number in it."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _edge(
    xs: NDArray[np.int64],
    ys: NDArray[np.int64],
    of: NDArray[np.int64],
    i: int,
    j: int,
    px: NDArray[np.int64],
    py: NDArray[np.int64],
) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (xs[of, j] - xs[of, i]) * (py - ys[of, i]) - (ys[of, j] - ys[of, i]) * (px - xs[of, i])
    return found


def _normals(turned: NDArray[np.int64], faces: NDArray[np.int64]) -> NDArray[np.float64]:
    """Unit normals of faces, towards the eye."""
    corner = turned[faces]
    a, b = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    cross = np.stack(
        [
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
        ],
        1,
    ).astype(np.float64)
    length = np.sqrt(cross[:, 0] * cross[:, 0] + cross[:, 1] * cross[:, 1] + cross[:, 2] * cross[:, 2])
    unit: NDArray[np.float64] = cross / np.where(length > 0, length, 1.0)[:, None]
    return np.where(unit[:, 2:] < 0, -unit, unit)


def _brightness(normals: NDArray[np.float64]) -> NDArray[np.int64]:
    """How light a face is, of 256."""
    lit = normals[:, 0] * _LIGHT[0] + normals[:, 1] * _LIGHT[1] + normals[:, 2] * _LIGHT[2]
    found: NDArray[np.int64] = np.rint(70 + 186 * np.clip(lit, 0.0, 1.0)).astype(np.int64)
    return found


def _outlined(drawn: NDArray[np.int64], depths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Darker where something much nearer begins: parts of one colour stay apart."""
    step = np.zeros_like(depths)
    step[:, 1:] = np.maximum(step[:, 1:], np.abs(depths[:, 1:] - depths[:, :-1]))
    step[1:] = np.maximum(step[1:], np.abs(depths[1:] - depths[:-1]))
    return np.where((step > _GRID // 12)[..., None], drawn * _OUTLINE // 256, drawn)
