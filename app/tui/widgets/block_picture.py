"""Images drawn with block characters: each cell is a pattern of blocks in two colours.

A cell is divided into blocks, which are averages of the image. Of all patterns of blocks that the characters can draw, the
one is chosen whose two mean colours differ least from the blocks.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from PIL.Image import Image

_SHARPNESS = 150
"""The percentage by which edges are emphasised where an image is scaled down, so that small text stays legible."""
_VTE, _ITERM = 6200, (3, 5)
"""The first versions that draw sextants themselves."""


class Symbols(NamedTuple):
    """Characters by the pattern of their blocks: ``characters[pattern]``, whose bits are the blocks line by line."""

    columns: int
    rows: int
    characters: str


HALF = Symbols(1, 2, " ▀▄█")
QUADRANTS = Symbols(2, 2, " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█")
SEXTANTS = Symbols(
    2,
    3,
    " "
    + "".join(map(chr, range(0x1FB00, 0x1FB14)))
    + "▌"
    + "".join(map(chr, range(0x1FB14, 0x1FB28)))
    + "▐"
    + "".join(map(chr, range(0x1FB28, 0x1FB3C)))
    + "█",
)


def finest_symbols(environment: Mapping[str, str] = os.environ) -> Symbols:
    """Return the finest symbols that are known to be drawn without gaps.

    Practically every monospace font has quadrants. Sextants (Unicode 13) are in few, so they are used only in terminals that
    draw them themselves; under tmux, the variables are those of the terminal in which it was started.
    """
    if environment.get("TMUX") or environment.get("STY"):
        return QUADRANTS
    program, version = environment.get("TERM_PROGRAM", ""), environment.get("TERM_PROGRAM_VERSION", "")
    draws_sextants = (
        environment.get("TERM", "") in ("xterm-kitty", "xterm-ghostty", "foot", "foot-extra")
        or program in ("ghostty", "WezTerm")
        or (program == "iTerm.app" and _numbers(version) >= _ITERM)
        or _numbers(environment.get("VTE_VERSION", "")) >= (_VTE,)
    )
    return SEXTANTS if draws_sextants else QUADRANTS


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() and len(part) < 9 else 0 for part in version.split("."))


class BlockPicture(Widget):
    """An image drawn with ``symbols``."""

    def __init__(self, image: Image, symbols: Symbols = HALF) -> None:
        super().__init__()
        self._image, self._symbols = image, symbols
        self._lines: list[Strip] = []
        self._drawn_size = Size(0, 0)

    @property
    def image(self) -> Image:
        """The image on display."""
        return self._image

    @image.setter
    def image(self, image: Image) -> None:
        self._image, self._drawn_size = image, Size(0, 0)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._drawn_size != self.size:
            self._lines, self._drawn_size = draw_blocks(self._image, self.size, self._symbols), self.size
        blank = Strip.blank(self.size.width, self.rich_style)
        return self._lines[y].adjust_cell_length(self.size.width, self.rich_style) if y < len(self._lines) else blank


def draw_blocks(image: Image, size: Size, symbols: Symbols) -> list[Strip]:
    """Return the lines of an image scaled to ``size``."""
    import numpy as np

    if not size.area:
        return []
    columns, rows = symbols.columns, symbols.rows
    scaled = _scaled(image, size.width * columns, size.height * rows)
    blocks = np.asarray(scaled, dtype=np.float32).reshape(size.height, rows, size.width, columns, 3)
    blocks = blocks.swapaxes(1, 2).reshape(size.area, rows * columns, 3)
    patterns, inner, outer = _fit(blocks)
    lines, cells = [], iter(zip(patterns.tolist(), inner.tolist(), outer.tolist(), strict=True))
    for _ in range(size.height):
        line = itertools.groupby(itertools.islice(cells, size.width), key=lambda cell: cell[1:])
        segments = [
            Segment(
                "".join(symbols.characters[pattern] for pattern, *_ in run), Style.from_color(*map(_colour, colours))
            )
            for colours, run in line
        ]
        lines.append(Strip(segments, size.width))
    return lines


def _scaled(image: Image, width: int, height: int) -> Image:
    """Return the image at this size; where that is smaller, sharpened, but without colours beyond those nearby."""
    from PIL import ImageChops
    from PIL.Image import Resampling
    from PIL.ImageFilter import UnsharpMask

    scaled = image.resize((width, height), Resampling.LANCZOS, reducing_gap=3)
    if width * height >= image.width * image.height:
        return scaled
    darkest, lightest = (
        _extremes(image, choose).resize((width, height), Resampling.BOX, reducing_gap=3)
        for choose in (ImageChops.darker, ImageChops.lighter)
    )
    sharpened = scaled.filter(UnsharpMask(radius=1, percent=_SHARPNESS, threshold=0))
    return ImageChops.darker(ImageChops.lighter(sharpened, darkest), lightest)


def _extremes(image: Image, choose: Callable[[Image, Image], Image]) -> Image:
    """Return the darkest or lightest colour among each pixel and its neighbours."""
    from PIL import ImageChops

    for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        image = choose(image, ImageChops.offset(image, across, down))
    return image


def _fit(blocks: Any) -> tuple[Any, Any, Any]:
    """Return the best pattern of each cell, and the mean colours of the blocks in it and outside it.

    With the means as colours, the squared error is the blocks' sum of squares less |sum|² / count of both parts, so that
    the best pattern is the one for which the latter is largest. A pattern and its complement are the same.
    """
    import numpy as np

    count = blocks.shape[1]
    patterns = np.arange(1, 1 << (count - 1))
    bits = (patterns[:, None] >> np.arange(count)) & 1
    sizes = bits.sum(axis=1)
    total = blocks.sum(axis=1)
    inner = np.einsum("pb,cbk->pck", bits.astype(np.float32), blocks, optimize=True)
    explained = (inner**2).sum(-1) / sizes[:, None] + ((total - inner) ** 2).sum(-1) / (count - sizes)[:, None]
    best = explained.argmax(axis=0)
    chosen = inner[best, np.arange(len(blocks))]
    size = sizes[best][:, None]
    means = chosen / size, (total - chosen) / (count - size)
    return patterns[best], *(np.clip(np.rint(mean), 0, 255).astype(np.uint8) for mean in means)


def _colour(values: list[int]) -> Color:
    return Color.from_triplet(ColorTriplet(*values))
