"""Legibility of zoomed pictures: ``python -m tests.performance.zoom_legibility PICTURES OUT [COUNT]``.

It opens Zoom on ``COUNT`` pictures of a folder, presses keys, and writes what the terminal shows as pictures for a reader who has
not seen the originals: the whole picture in half blocks, and three parts of it in the finest blocks of any font, each in two
sizes of a terminal. The reader writes down the printed number that is nearest to the middle of each part; ``truth`` holds the
same parts of the originals.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from rich.color import ColorTriplet
from textual.pilot import Pilot
from textual.widgets import Static

from app.tui.app import RashomonApp
from app.tui.screens.zoom import ZoomPicture, ZoomScreen
from app.tui.widgets.block_picture import QUADRANTS
from benchmarks.vocabulary import Media
from tests.support.runs import instances
from tests.support.tui_computed import open_samples
from tests.support.tui_stage import SIZES, Stage, drive, strips, until

CLOSER = {"80x24": 4, "120x40": 3}
"""The steps of enlargement, after which a column of cells is about as many pixels in both sizes."""
PARTS = {"left": ("left",) * 3, "middle": (), "right": ("right",) * 3}
CELL = (8, 16)
FONT = "DejaVuSansMono.ttf"


def paint(app: RashomonApp) -> Image.Image:
    """Return the screen as a terminal draws it that draws blocks itself."""
    (width, height), lines = CELL, strips(app)
    image = Image.new("RGB", (app.size.width * width, app.size.height * height))
    draw, font = ImageDraw.Draw(image), ImageFont.truetype(FONT, 13)
    for row, line in enumerate(lines):
        column = 0
        for segment in line:
            style = segment.style
            colour, ground = (
                tuple(value.triplet if value is not None and value.triplet else default)
                for value, default in (
                    (style.color if style else None, ColorTriplet(220, 220, 220)),
                    (style.bgcolor if style else None, ColorTriplet(18, 18, 18)),
                )
            )
            for character in segment.text:
                x, y = column * width, row * height
                draw.rectangle((x, y, x + width - 1, y + height - 1), ground)
                pattern = QUADRANTS.characters.find(character)
                for block in range(4) if pattern > 0 else ():
                    if pattern >> block & 1:
                        left, top = x + block % 2 * width // 2, y + block // 2 * height // 2
                        draw.rectangle((left, top, left + width // 2 - 1, top + height // 2 - 1), colour)
                if pattern < 0:
                    draw.text((x, y), character, colour, font)
                column += 1
    return image


def show(content: bytes, name: str, out: Path) -> None:
    """Write what Zoom shows of a picture."""
    folder = Path(tempfile.mkdtemp())
    picture = Media(hashlib.sha256(content).hexdigest(), ".png")
    (folder / "build" / "media").mkdir(parents=True)
    (folder / "build" / "media" / picture.name).write_bytes(content)
    stage = Stage(folder / "workspace")
    run = stage.run("charts", asked=instances(1, picture=picture), data=folder / "build")
    original = Image.open(io.BytesIO(content)).convert("RGB")
    for size in SIZES:
        for mode in ("half", "blocks"):

            async def script(pilot: Pilot[Any], app: RashomonApp, size: str = size, mode: str = mode) -> None:
                await open_samples(pilot, app, run)
                await pilot.press("z")
                await until(pilot, lambda: isinstance(app.screen, ZoomScreen))
                zoomed = app.screen.query_one(ZoomPicture)
                await until(pilot, lambda: zoomed.viewport is not None)
                for part, keys in PARTS.items() if mode == "blocks" else [("whole", ())]:
                    enlarge = ("0", *["plus"] * CLOSER[size]) if mode == "blocks" else ()
                    await pilot.press(*enlarge, *keys)
                    assert zoomed.viewport is not None
                    region = zoomed.viewport.part
                    place = f"{region.x}-{region.right}" if enlarge else "pixels"
                    await until(pilot, lambda place=place: place in str(zoomed.query_one(Static).content))  # type: ignore[misc]
                    await pilot.pause()
                    paint(app).save(out / f"{name}-{part}-{size}.png")
                    box = region.x, region.y, region.right, region.bottom
                    original.crop(box).save(out / "truth" / f"{name}-{part}-{size}.png")

            app = stage.app()
            app.images = mode
            drive(app, script, SIZES[size])
    stage.close()
    shutil.rmtree(folder)


def main(pictures: Path, out: Path, count: int) -> None:
    """Write the pictures of ``count`` pictures, drawn at random, but the same ones each time."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    (out / "truth").mkdir(parents=True, exist_ok=True)
    chosen = random.Random(57).sample(sorted(pictures.glob("*.png")), count)
    for number, path in enumerate(chosen):
        show(path.read_bytes(), f"{number:02d}", out)
        print(f"{number:02d} {path.name}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 30)
