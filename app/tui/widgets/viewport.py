"""Viewport: the part of an image that is on display."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textual.geometry import Region, Size, clamp

_STEP = 1.5
"""The enlargement of a step."""
_PAN = 0.25
"""The share of the part on display by which it moves."""
_LEAST = 16
"""The longer side of the smallest part, in pixels."""


@dataclass(frozen=True)
class Viewport:
    """The part of ``image`` that fills ``canvas``, a terminal's area in pixels of any size, ``steps`` closer than the whole.

    ``x`` and ``y`` are the centre as shares of the image; the part never reaches beyond the image.
    """

    image: Size
    canvas: Size
    steps: int = 0
    x: float = 0.5
    y: float = 0.5

    @property
    def factor(self) -> float:
        """The enlargement, 1 for the whole image."""
        return float(_STEP**self.steps)

    @property
    def part(self) -> Region:
        """The part on display, in pixels of the image."""
        width, height = self.image
        scale = min(self.canvas.width / width, self.canvas.height / height) * self.factor
        columns = clamp(round(self.canvas.width / scale), 1, width)
        rows = clamp(round(self.canvas.height / scale), 1, height)
        left = clamp(round(self.x * width - columns / 2), 0, width - columns)
        top = clamp(round(self.y * height - rows / 2), 0, height - rows)
        return Region(left, top, columns, rows)

    def zoomed(self, steps: int) -> Viewport:
        """Return the viewport ``steps`` closer around its centre; the same one beyond the whole and the closest."""
        closer = replace(self, steps=max(0, self.steps + steps))
        return self if steps > 0 and max(closer.part.size) < min(_LEAST, max(self.image)) else closer._centred()

    def moved(self, across: int, down: int) -> Viewport:
        """Return the viewport moved by so many steps, as far as there is image."""
        part = self.part
        x = self.x + across * max(1, _PAN * part.width) / self.image.width
        y = self.y + down * max(1, _PAN * part.height) / self.image.height
        return replace(self, x=x, y=y)._centred()

    def _centred(self) -> Viewport:
        """Return the viewport with the centre of its part, so that moving back from an edge shows at once."""
        part = self.part
        x = (part.x + part.width / 2) / self.image.width
        y = (part.y + part.height / 2) / self.image.height
        return replace(self, x=x, y=y)
