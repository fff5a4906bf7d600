"""Renderer of 3D models: labelled orthographic views, z-buffered and shaded.

Coordinates are rounded to a grid, after which all arithmetic except square roots is on integers, so that a view's pixels are
equal on every machine. Views are drawn at twice their size and averaged.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.errors import MediaError
from benchmarks.media.media_limits import MOST_COVERED
from benchmarks.media.shape_files import NAME, Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image as PILImage

SIZE = 336
"""The width and height of a view, in pixels."""

TOO_DENSE = "has too many large faces or points that cover one another; simplify it"

_ONE = 1024
_VIEWS: dict[str, tuple[tuple[int, int, int], ...]] = {
    # Rows: the axes to the right, up and towards the viewer, for a model with y up and z to the front; in units of _ONE.
    "front": ((_ONE, 0, 0), (0, _ONE, 0), (0, 0, _ONE)),
    "right": ((0, 0, -_ONE), (0, _ONE, 0), (_ONE, 0, 0)),
    "back": ((-_ONE, 0, 0), (0, _ONE, 0), (0, 0, -_ONE)),
    "left": ((0, 0, _ONE), (0, _ONE, 0), (-_ONE, 0, 0)),
    "top": ((_ONE, 0, 0), (0, 0, -_ONE), (0, _ONE, 0)),
    # Rotated by 40 degrees, seen from 25 degrees above.
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
"""The brightness of an outline, of 256."""


def views(shape: Shape, names: tuple[str, ...] = VIEWS, size: int = SIZE) -> list[PILImage]:
    """Return the named views, RGB squares of ``size`` pixels at one scale, each with its name in a corner.

    Raises MediaError if there is more to draw than ``MOST_COVERED``.
    """
    from PIL import Image, ImageDraw, ImageFont

    grid, pixels = _on_grid(shape), size * _SCALE
    images = []
    for name in names:
        drawn_view = _view(grid, shape, _VIEWS[name], pixels)
        block_sums = drawn_view.reshape(size, _SCALE, size, _SCALE, 3).astype(np.int64).sum((1, 3))
        image = Image.fromarray(((block_sums + 2) // _SCALE**2).astype(np.uint8))
        font = ImageFont.load_default_imagefont()  # Pillow's bitmap font, the only one that is equal everywhere
        ImageDraw.Draw(image).text((5, 4), name, fill=(90, 90, 90), font=font)
        images.append(image)
    return images


def _on_grid(shape: Shape) -> NDArray[np.int64]:
    """Return the points on a grid: their bounding box is centred at 0, and its circumscribed sphere has radius ``_GRID``."""
    used_points = shape.points if shape.faces is None else shape.points[np.unique(shape.faces)]
    low, high = used_points.min(0), used_points.max(0)
    half_extent = (high - low) / 2
    radius = (
        float(
            np.sqrt(half_extent[0] * half_extent[0] + half_extent[1] * half_extent[1] + half_extent[2] * half_extent[2])
        )
        or 1.0
    )
    moved = np.clip((shape.points - (low + half_extent)) / radius, -1.0, 1.0)
    grid: NDArray[np.int64] = np.rint(moved * _GRID).astype(np.int64)
    return grid


def _view(
    grid: NDArray[np.int64], shape: Shape, rows: tuple[tuple[int, int, int], ...], pixels: int
) -> NDArray[np.uint8]:
    right, up, near = (
        (grid[:, 0] * row[0] + grid[:, 1] * row[1] + grid[:, 2] * row[2]) // _ONE for row in map(list, rows)
    )
    half_size = pixels // 2 - _MARGIN
    x = pixels // 2 + right * half_size // _GRID
    y = pixels // 2 - up * half_size // _GRID
    rotated = np.stack([right, up, near], 1)
    if shape.faces is None:
        return _draw_points(x, y, near, shape.colours, pixels)
    return _draw_faces(x, y, rotated, shape.faces, shape.colours, pixels)


def _draw_faces(
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    rotated: NDArray[np.int64],
    faces: NDArray[np.int64],
    colours: NDArray[np.uint8] | None,
    pixels: int,
) -> NDArray[np.uint8]:
    xs, ys, zs = x[faces], y[faces], rotated[:, 2][faces]
    left, top = xs.min(1), ys.min(1)
    width, height = xs.max(1) - left + 1, ys.max(1) - top + 1
    area = (xs[:, 1] - xs[:, 0]) * (ys[:, 2] - ys[:, 0]) - (xs[:, 2] - xs[:, 0]) * (ys[:, 1] - ys[:, 0])
    buffer = np.full(pixels * pixels, -1, np.int64)
    number = np.arange(len(faces))
    for chunk in _chunks(width * height):
        of, at = _expanded((width * height)[chunk])
        of = number[chunk][of]
        px, py = left[of] + at % width[of], top[of] + at // width[of]
        a = _edge(xs, ys, of, 1, 2, px, py)
        b = _edge(xs, ys, of, 2, 0, px, py)
        c = _edge(xs, ys, of, 0, 1, px, py)
        total = area[of]
        sign = np.sign(total)
        inside = (a * sign >= 0) & (b * sign >= 0) & (c * sign >= 0) & (total != 0)
        of, a, b, c, total = of[inside], a[inside], b[inside], c[inside], total[inside]
        depth = (a * zs[of, 0] + b * zs[of, 1] + c * zs[of, 2]) // total + 2 * _GRID
        np.maximum.at(buffer, py[inside] * pixels + px[inside], depth * len(faces) + of)
    face = np.where(buffer >= 0, buffer % len(faces), 0)
    base = np.full((len(faces), 3), _GREY, np.int64) if colours is None else colours.astype(np.int64)
    lit = base * _brightness(_normals(rotated, faces))[:, None] // 256
    image = np.where((buffer >= 0)[:, None], lit[face], _BACKGROUND).reshape(pixels, pixels, 3)
    depths = np.where(buffer >= 0, buffer // len(faces), 0).reshape(pixels, pixels)
    return _outlined(image, depths).astype(np.uint8)


def _draw_points(
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    near: NDArray[np.int64],
    colours: NDArray[np.uint8] | None,
    pixels: int,
) -> NDArray[np.uint8]:
    """Return a view with every point as a small ball, which is larger the fewer points there are."""
    radius = int(np.clip(pixels // (2 * int(np.sqrt(len(x))) + 1), 1, 12))
    steps = np.arange(-radius, radius + 1)
    dx, dy = (grid.ravel() for grid in np.meshgrid(steps, steps))
    rise_squared = radius * radius + radius - dx * dx - dy * dy
    dx, dy, rise_squared = dx[rise_squared >= 0], dy[rise_squared >= 0], rise_squared[rise_squared >= 0]
    rise = np.sqrt(rise_squared).astype(np.int64)
    buffer = np.full(pixels * pixels, -1, np.int64)
    count, number = len(x), np.arange(len(x))
    if count * len(dx) > MOST_COVERED:
        raise MediaError(NAME, TOO_DENSE)
    for sx, sy, height in zip(dx.tolist(), dy.tolist(), rise.tolist(), strict=True):
        at = (y + sy) * pixels + x + sx
        depth = (near + 2 * _GRID) * pixels // (2 * _GRID) + height
        light = 160 + 95 * height // (radius + 1)
        np.maximum.at(buffer, at, (depth * 256 + light) * count + number)
    visible = buffer >= 0
    point, light = np.where(visible, buffer % count, 0), np.where(visible, buffer // count % 256, 0)
    depth = np.where(visible, buffer // count // 256, 0)
    if colours is None:
        low, high = int(depth[visible].min()), int(depth[visible].max())
        value = 90 + 130 * (depth - low) // max(high - low, 1)  # nearer points are lighter
        base = np.stack([value * 9 // 10, value * 9 // 10, value], 1)
    else:
        base = colours[point].astype(np.int64)
    image = np.where(visible[:, None], base * light[:, None] // 255, _BACKGROUND)
    return np.clip(image, 0, 255).reshape(pixels, pixels, 3).astype(np.uint8)


def _chunks(sizes: NDArray[np.int64]) -> list[slice]:
    """Return slices of items whose sizes sum to about ``_CHUNK``. Raises MediaError beyond ``MOST_COVERED`` in total."""
    total = np.cumsum(sizes)
    if len(total) and total[-1] > MOST_COVERED:
        raise MediaError(NAME, TOO_DENSE)
    ends = np.unique(np.searchsorted(total, np.arange(_CHUNK, int(total[-1]) + _CHUNK, _CHUNK), side="right"))
    edges = [0, *(int(end) for end in ends if 0 < end < len(sizes)), len(sizes)]
    return [slice(start, end) for start, end in itertools.pairwise(edges)]


def _expanded(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the item and the position within it for every position of items of ``sizes``."""
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
    """Return the edge function of corners ``i`` and ``j`` of faces ``of`` at (px, py): positive on one side, 0 on the edge."""
    signed: NDArray[np.int64] = (xs[of, j] - xs[of, i]) * (py - ys[of, i]) - (ys[of, j] - ys[of, i]) * (px - xs[of, i])
    return signed


def _normals(rotated: NDArray[np.int64], faces: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the unit normals of faces that point towards the viewer, shape (faces, 3)."""
    corner = rotated[faces]
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
    """Return the brightness of faces, of 256."""
    lit = normals[:, 0] * _LIGHT[0] + normals[:, 1] * _LIGHT[1] + normals[:, 2] * _LIGHT[2]
    brightness: NDArray[np.int64] = np.rint(70 + 186 * np.clip(lit, 0.0, 1.0)).astype(np.int64)
    return brightness


def _outlined(drawn: NDArray[np.int64], depths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the view with dark lines where the depth jumps, which separate parts of equal colour."""
    step = np.zeros_like(depths)
    step[:, 1:] = np.maximum(step[:, 1:], np.abs(depths[:, 1:] - depths[:, :-1]))
    step[1:] = np.maximum(step[1:], np.abs(depths[1:] - depths[:-1]))
    return np.where((step > _GRID // 12)[..., None], drawn * _OUTLINE // 256, drawn)
