"""Legibility of zoomed charts for a reader who has not seen them, as sheets of pictures of what a terminal shows.

    python -m tests.performance.zoom_legibility CHARTS OUT            # 30 charts as a whole, in half blocks
    python -m tests.performance.zoom_legibility CHARTS OUT POINTS     # parts of them, and the same parts of the originals

The reader looks at the whole charts, chooses three places with a number in each, and writes them into POINTS, a JSON object of
the chart's number to pairs of shares of its width and height. The parts around these places are drawn in quadrants, with marks
at the edges. The reader writes down the numbers at the marks before looking at ``truth``.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw
from textual.geometry import Region, Size

from app.tui.widgets.block_picture import HALF, QUADRANTS, Symbols, draw_blocks
from app.tui.widgets.viewport import Viewport

CHARTS = 30
AREAS = {"80x24": (Size(80, 21), 5), "120x40": (Size(120, 36), 4)}
"""The cells that a terminal of this size has for a picture, and the steps of enlargement."""
CELL = Size(4, 8)
"""A cell in pixels of a sheet."""


def draw(image: Image.Image, area: Size, symbols: Symbols) -> Image.Image:
    """Return an image as a terminal draws it in ``area``."""
    scale = min(area.width / image.width, 2 * area.height / image.height)
    size = Size(max(1, round(image.width * scale)), max(1, round(image.height * scale / 2)))
    drawn = Image.new("RGB", (size.width * CELL.width, size.height * CELL.height))
    width, height = CELL.width // symbols.columns, CELL.height // symbols.rows
    for y, line in enumerate(draw_blocks(image, size, symbols)):
        x = 0
        for segment in line:
            style = segment.style
            assert style is not None
            assert style.color is not None
            assert style.bgcolor is not None
            colours = [tuple(colour.get_truecolor()) for colour in (style.bgcolor, style.color)]
            for character in segment.text:
                for block in range(symbols.columns * symbols.rows):
                    left = x * CELL.width + block % symbols.columns * width
                    top = y * CELL.height + block // symbols.columns * height
                    colour = colours[symbols.characters.index(character) >> block & 1]
                    drawn.paste(colour, (left, top, left + width, top + height))
                x += 1
    return drawn


def mark(image: Image.Image, x: float, y: float) -> Image.Image:
    """Mark a place at the edges of an image."""
    lines, column, row = ImageDraw.Draw(image), x * image.width, y * image.height
    for end in (0, image.height - 14):
        lines.line((column, end, column, end + 14), "red", 3)
    for end in (0, image.width - 14):
        lines.line((end, row, end + 14, row), "red", 3)
    return image


def write_sheets(path: Path, images: Sequence[tuple[str, Image.Image]]) -> None:
    """Write named images in sheets of 12."""
    width = max(image.width for _, image in images) + 6
    height = max(image.height for _, image in images) + 16
    for first in range(0, len(images), 12):
        sheet = Image.new("RGB", (3 * width, 4 * height), "#444444")
        for place, (name, image) in enumerate(images[first : first + 12]):
            corner = place % 3 * width, place // 3 * height
            sheet.paste(image, (corner[0], corner[1] + 14))
            ImageDraw.Draw(sheet).text(corner, name, fill="yellow")
        sheet.save(f"{path}-{first:03d}.png")


def part_of(chart: Image.Image, x: float, y: float, area: Size, steps: int) -> Region:
    """Return the part that Zoom shows around a place."""
    return Viewport(Size(*chart.size), Size(area.width, 2 * area.height), x=x, y=y).zoomed(steps).part


def main(folder: Path, out: Path, points: Path | None) -> None:
    """Write the sheets of the whole charts, or of their parts around ``points``."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = random.Random(57).sample(sorted(folder.glob("*.png")), CHARTS)
    charts = [Image.open(path).convert("RGB") for path in chosen]
    for size, (area, steps) in AREAS.items():
        if points is None:
            write_sheets(out / f"whole-{size}", [(str(n), draw(chart, area, HALF)) for n, chart in enumerate(charts)])
            continue
        parts, originals = [], []
        for number, places in json.loads(points.read_text()).items():
            chart = charts[int(number)]
            for letter, (x, y) in zip("abc", places, strict=True):
                region = part_of(chart, x, y, area, steps)
                original = chart.crop((region.x, region.y, region.right, region.bottom))
                share = (x * chart.width - region.x) / region.width, (y * chart.height - region.y) / region.height
                part = mark(draw(original, area, QUADRANTS), *share)
                parts.append((f"{number}{letter}", part))
                originals.append((f"{number}{letter}", mark(original.resize(part.size), *share)))
        write_sheets(out / f"parts-{size}", parts)
        write_sheets(out / f"truth-{size}", originals)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
