"""Choice of the ground under a transparent image: white, unless what is drawn would not be seen on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

Colour = tuple[int, int, int]

GROUNDS: dict[str, Colour] = {"white": (255, 255, 255), "black": (0, 0, 0), "grey": (128, 128, 128)}

_EDGE = 24
"""The least difference between neighbouring pixels that is an edge, in levels of a channel."""

_MOST_LOST = 0.2
"""The share of its edges that a drawing may lose on a ground."""


def choose_ground(image: PILImage, first: str = "white") -> str:
    """Return the name of the ground for an RGBA image: the first that shows its edges, else the best.

    An edge is lost on a ground if the difference of its two sides is less than half of what is visible, and another ground
    shows it. Edges inside what is opaque are the same on every ground, so that transparent corners decide nothing.
    """
    import numpy as np

    layer = np.asarray(image, np.float32)
    colour, alpha = layer[..., :3], layer[..., 3:] / 255
    steps = {}
    for name, ground in GROUNDS.items():
        seen = colour * alpha + np.array(ground, np.float32) * (1 - alpha)
        across, down = (np.abs(np.diff(seen, axis=axis)).max(-1).ravel() for axis in (0, 1))
        steps[name] = np.concatenate([across, down])
    edges = np.maximum.reduce(list(steps.values())) >= _EDGE
    order = (first, *(name for name in GROUNDS if name != first))
    if not edges.any():
        return first
    lost = {name: float((step[edges] < _EDGE / 2).mean()) for name, step in steps.items()}
    return next((name for name in order if lost[name] <= _MOST_LOST), min(lost, key=lambda name: lost[name]))
