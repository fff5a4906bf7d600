"""Choice of the ground under a transparent image: the preferred one, unless part of the drawing would not be seen on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image as PILImage

    Plane = np.ndarray[tuple[int, ...], np.dtype[Any]]

Colour = tuple[int, int, int]

GROUNDS: dict[str, Colour] = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "grey": (128, 128, 128),
    "light grey": (192, 192, 192),
    "dark grey": (64, 64, 64),
}

_EDGE = 24
"""The least difference between neighbouring pixels that is an edge, in levels of a channel."""

_MOST_LOST = 0.2
"""The share of its edges that a drawing may lose on a ground."""

_UNSEEN = 16
"""The difference in luminance up to which ink is not seen on a ground; pale yellow on white is less."""

_REACH = 4
_THIN = 115
"""The mean opacity around a pixel, over 9 x 9 pixels, up to which it belongs to thin ink: letters, lines, small marks."""

_SCALES = (1, 4)
"""The steps between pixels that are examined: thin ink is up to 9 and up to 36 pixels wide.

What is up to 9 pixels wide is seen by its luminance, what is wider also by its colour.
"""

_LUMINANCE = (0.299, 0.587, 0.114)

_TILE = 16
_LEAST_INK = 8
_LOST_OF_TILE = 0.3
"""The share of a tile's thin ink that makes letters illegible. Hard-edged letters lose .4 on a ground of their colour."""


def choose_ground(image: PILImage, first: str = "white") -> tuple[str, bool]:
    """Return the name of the ground for an RGBA image, ``first`` preferred, and whether all of the drawing is seen on it.

    Of the grounds on which at most a fifth of the edges is lost, it is the first on which few tiles of 16 x 16 pixels lose
    their thin ink: at most twice as many as on the best. An edge is lost if the difference of its two sides is less than
    half of what is visible, and another ground shows it. Edges inside what is opaque are the same on every ground, so that
    transparent corners decide nothing.
    """
    import numpy as np

    edges, ink = _lost_edges(np.asarray(image, np.float32)), _lost_ink(image)
    order = sorted(GROUNDS, key=lambda name: name != first)
    shown = [name for name in order if edges[name] <= _MOST_LOST] or [min(order, key=lambda name: edges[name])]
    fewest = min(ink[name] for name in shown)
    best = next(name for name in shown if ink[name] <= 2 * fewest)
    return best, edges[best] <= _MOST_LOST and ink[best] == 0


def _lost_edges(layer: Plane) -> dict[str, float]:
    """Return the share of all edges that is lost on each ground."""
    import numpy as np

    colour, alpha = layer[..., :3], layer[..., 3:] / 255
    steps = {}
    for name, ground in GROUNDS.items():
        seen = colour * alpha + np.array(ground, np.float32) * (1 - alpha)
        across, down = (np.abs(np.diff(seen, axis=axis)).max(-1).ravel() for axis in (0, 1))
        steps[name] = np.concatenate([across, down])
    edges = np.maximum.reduce(list(steps.values())) >= _EDGE
    return {name: float((step[edges] < _EDGE / 2).mean()) if edges.any() else 0.0 for name, step in steps.items()}


def _lost_ink(image: PILImage) -> dict[str, int]:
    """Return the number of tiles whose thin ink is lost on each ground."""
    import numpy as np
    from PIL import Image, ImageFilter

    lost = dict.fromkeys(GROUNDS, 0)
    for step in _SCALES:
        layer = np.asarray(image)[::step, ::step]
        opacity = Image.fromarray(np.ascontiguousarray(layer[..., 3]))
        thin = np.asarray(opacity.filter(ImageFilter.BoxBlur(_REACH))) <= _THIN
        colour, alpha = layer[..., :3].astype(np.float32), layer[..., 3] / np.float32(255)
        if step == 1:
            colour = colour @ np.array(_LUMINANCE, np.float32)[:, None]
        # Greys have one level, so that it is also the luminance of the ground.
        contrast = {name: np.abs(colour - ground[0]).max(-1) * alpha for name, ground in GROUNDS.items()}
        ink = thin & (np.maximum.reduce(list(contrast.values())) >= 2 * _UNSEEN)
        inked = _tiles(ink)
        for name, levels in contrast.items():
            unseen = _tiles(ink & (levels < _UNSEEN))
            lost[name] += int(((inked >= _LEAST_INK) & (unseen > inked * _LOST_OF_TILE)).sum())
    return lost


def _tiles(mask: Plane) -> Plane:
    """Return the number of pixels of a mask in each tile."""
    import numpy as np

    height, width = mask.shape
    whole = np.pad(mask, ((0, -height % _TILE), (0, -width % _TILE)))
    counts: Plane = whole.reshape(whole.shape[0] // _TILE, _TILE, -1, _TILE).sum((1, 3))
    return counts
