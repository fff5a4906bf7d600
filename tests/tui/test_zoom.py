"""Zoom: parts of a picture, and the block characters that draw it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from textual.geometry import Region, Size
from textual.pilot import Pilot
from textual.widgets import Static

from app.tui.screens.zoom_screen import ZoomPicture, ZoomScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.block_picture import (
    HALF,
    QUADRANTS,
    SEXTANTS,
    BlockPicture,
    Symbols,
    draw_blocks,
    finest_symbols,
)
from app.tui.widgets.viewport import Viewport
from benchmarks.vocabulary import Media
from tests.support.runs import instances
from tests.support.tui_computed import open_samples
from tests.support.tui_stage import BOTH, SIZES, Stage, drive, screen_text, until
from tests.tui.test_samples import mixed as mixed_media

WHOLE = Viewport(Size(720, 480), Size(120, 72))
MOVES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


# --- the part on display -------------------------------------------------------------------------


def test_the_whole_picture_cannot_be_moved_or_shrunk() -> None:
    assert WHOLE.part == Region(0, 0, 720, 480)
    assert WHOLE.zoomed(-1) == WHOLE
    for move in MOVES.values():
        assert WHOLE.moved(*move).part == WHOLE.part


def test_steps_enlarge_the_middle_and_back() -> None:
    closer = WHOLE.zoomed(1).zoomed(1)
    assert closer.part == Region(182, 134, 356, 213), "as wide and high as the canvas has room for"
    assert closer.zoomed(-1).zoomed(-1).part == WHOLE.part


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_part_stops_at_the_edges_and_moves_back_at_once(move: tuple[int, int]) -> None:
    middle = viewport = WHOLE.zoomed(4)
    for _ in range(50):
        viewport = viewport.moved(*move)
        assert Region(0, 0, 720, 480).contains_region(viewport.part)
    assert viewport.part != middle.part
    assert viewport.moved(*move).part == viewport.part
    assert viewport.moved(-move[0], -move[1]).part != viewport.part


@pytest.mark.parametrize(
    "image",
    [(1, 1), (3, 2), (1, 4000), (4000, 1), (16_384, 3900), (720, 480)],
    ids=lambda size: "x".join(map(str, size)),
)
@pytest.mark.parametrize("canvas", [(1, 2), (80, 42), (120, 72), (400, 200)], ids=lambda size: "x".join(map(str, size)))
def test_every_part_of_tiny_and_huge_pictures_is_within_them(image: tuple[int, int], canvas: tuple[int, int]) -> None:
    viewport = Viewport(Size(*image), Size(*canvas))
    assert viewport.part == Region(0, 0, *image)
    for keys in ((1, 0, 0), (0, 1, 1), (1, -1, 0), (0, 0, -3)) * 12:
        steps, across, down = keys
        viewport = viewport.zoomed(steps).moved(across, down)
        assert viewport.part.area
        assert Region(0, 0, *image).contains_region(viewport.part)
    for _ in range(40):
        viewport = viewport.zoomed(1)
    assert max(viewport.part.size) >= min(16, *[max(image)]), "it ends while there is something to see"


# --- symbols -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("symbols", "blocks"), [(HALF, 2), (QUADRANTS, 4), (SEXTANTS, 6)])
def test_there_is_one_character_for_each_pattern(symbols: Symbols, blocks: int) -> None:
    assert symbols.columns * symbols.rows == blocks
    assert len(set(symbols.characters)) == len(symbols.characters) == 2**blocks


@pytest.mark.parametrize("symbols", [HALF, QUADRANTS, SEXTANTS], ids=["half", "quadrants", "sextants"])
def test_every_pattern_of_two_colours_is_drawn_exactly(symbols: Symbols) -> None:
    columns, rows = symbols.columns, symbols.rows
    black, white = (0, 0, 0), (255, 255, 255)
    for pattern in range(2 ** (columns * rows)):
        image = Image.new("RGB", (columns, rows))
        blocks = [black if pattern >> block & 1 else white for block in range(columns * rows)]
        image.putdata(blocks)
        ((segment,),) = ([*strip] for strip in draw_blocks(image, Size(1, 1), symbols))
        style = segment.style
        assert style is not None
        assert style.color is not None
        assert style.bgcolor is not None
        drawn = symbols.characters.index(segment.text)
        colours = [style.bgcolor.triplet, style.color.triplet]
        assert [colours[drawn >> block & 1] for block in range(columns * rows)] == blocks, pattern


def test_neighbours_of_one_colour_are_a_single_segment() -> None:
    lines = draw_blocks(Image.new("RGB", (90, 90), "#123456"), Size(30, 4), QUADRANTS)
    assert [len([*line]) for line in lines] == [1] * 4
    assert [line.cell_length for line in lines] == [30] * 4
    assert draw_blocks(Image.new("RGB", (9, 9)), Size(0, 4), QUADRANTS) == []


@pytest.mark.parametrize(
    ("environment", "symbols"),
    [
        ({}, QUADRANTS),
        ({"TERM_PROGRAM": "Apple_Terminal", "TERM": "xterm-256color"}, QUADRANTS),
        ({"TERM_PROGRAM": "vscode"}, QUADRANTS),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.4.23"}, QUADRANTS),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.5.10beta1"}, SEXTANTS),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "²." + "9" * 5000}, QUADRANTS),
        ({"TERM_PROGRAM": "WezTerm"}, SEXTANTS),
        ({"TERM": "xterm-kitty"}, SEXTANTS),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux-501/default,1,0"}, QUADRANTS),
        ({"VTE_VERSION": "6003"}, QUADRANTS),
        ({"VTE_VERSION": "7006"}, SEXTANTS),
    ],
)
def test_only_terminals_that_draw_sextants_get_them(environment: Mapping[str, str], symbols: Symbols) -> None:
    assert finest_symbols(environment) == symbols


# --- keys ----------------------------------------------------------------------------------------


def chart(size: tuple[int, int] = (720, 480)) -> bytes:
    """Return a picture whose quarters have colours of their own."""
    image = Image.new("RGB", size, "#ff0000")
    draw = ImageDraw.Draw(image)
    draw.rectangle((size[0] // 2, 0, *size), "#00ff00")
    draw.rectangle((0, size[1] // 2, max(0, size[0] // 2 - 1), size[1]), "#0000ff")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def stored(folder: Path, content: bytes) -> Media:
    """Write a picture into a build and return it."""
    picture = Media(hashlib.sha256(content).hexdigest(), ".png")
    (folder / "media").mkdir(parents=True)
    (folder / "media" / picture.name).write_bytes(content)
    return picture


async def open_zoom(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> ZoomPicture:
    """Open the zoom of a run's first sample and wait for its picture."""
    await open_samples(pilot, app, folder)
    await pilot.press("z")
    await until(pilot, lambda: isinstance(app.screen, ZoomScreen) and app.screen.query_one(ZoomPicture).query(Static))
    await pilot.pause()
    return app.screen.query_one(ZoomPicture)


def caption(picture: ZoomPicture) -> str:
    return str(picture.query_one(Static).content)


def colours(picture: ZoomPicture) -> set[tuple[int, int, int]]:
    """Return the colours of the picture's corners as displayed."""
    image = picture.query_one(BlockPicture).image
    width, height = image.size
    pixels = [image.getpixel((x, y)) for x in (0, width - 1) for y in (0, height - 1)]
    return {pixel for pixel in pixels if isinstance(pixel, tuple)}  # type: ignore[misc]


@pytest.mark.parametrize("size", BOTH)
def test_keys_enlarge_a_part_and_move_it_to_the_edges(size: tuple[int, int], stage: Stage) -> None:
    picture = stored(stage.path / "build", chart())
    folder = stage.run("charts", asked=instances(1, picture=picture), data=stage.path / "build")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        zoomed = await open_zoom(pilot, app, folder)
        assert len(colours(zoomed)) == 3
        assert "arrows" not in caption(zoomed)
        before = zoomed.query_one(BlockPicture).size
        await pilot.press("plus", "equals_sign", "plus", "plus")
        await until(pilot, lambda: "5.1 x" in caption(zoomed))
        assert zoomed.query_one(BlockPicture).size.width >= before.width, "it fills the terminal"
        for keys, where, colour in (
            (("left", "up"), ": 0-", (255, 0, 0)),
            (("l", "l"), "-720 across, 0-", (0, 255, 0)),
            (("h", "j"), "-480 down", (0, 0, 255)),
        ):
            await pilot.press(*keys * 20)
            await until(pilot, lambda where=where: where in caption(zoomed))  # type: ignore[misc]
            await until(pilot, lambda colour=colour: colours(zoomed) == {colour})  # type: ignore[misc]
        await pilot.press("minus")
        await until(pilot, lambda: "3.4 x" in caption(zoomed))
        await pilot.press("0")
        await until(pilot, lambda: len(colours(zoomed)) == 3)
        assert caption(zoomed).endswith("720 x 480 pixels")
        assert isinstance(app.screen, ZoomScreen), "0 and the arrows open no other screen"

    drive(stage.app(), script, size)


def test_a_part_of_a_large_picture_has_its_full_resolution(stage: Stage) -> None:
    wide = Image.new("RGB", (6000, 3000), "white")
    for x in range(2984, 3016, 2):
        wide.paste("black", (x, 0, x + 1, 3000))
    file = io.BytesIO()
    wide.save(file, "PNG")
    folder = stage.run(
        "large", asked=instances(1, picture=stored(stage.path / "build", file.getvalue())), data=stage.path / "build"
    )

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        zoomed = await open_zoom(pilot, app, folder)
        await pilot.press(*["plus"] * 40)
        await until(
            pilot, lambda: {(0, 0, 0), (255, 255, 255)} <= {*zoomed.query_one(BlockPicture).image.get_flattened_data()}
        )
        assert zoomed.query_one(BlockPicture).image.width < 40

    drive(stage.app(), script, SIZES["80x24"])


@pytest.mark.parametrize("size", [(1, 1), (2, 300)], ids=["1x1", "2x300"])
def test_tiny_pictures_are_displayed_whatever_key_is_pressed(size: tuple[int, int], stage: Stage) -> None:
    picture = stored(stage.path / "build", chart(size))
    folder = stage.run("tiny", asked=instances(1, picture=picture), data=stage.path / "build")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        zoomed = await open_zoom(pilot, app, folder)
        await pilot.press(*["plus", "right", "down", "plus", "left", "minus", "up"] * 4)
        await until(pilot, lambda: f"{size[0]} x {size[1]} pixels" in caption(zoomed))
        assert zoomed.query_one(BlockPicture).size.area

    drive(stage.app(), script, SIZES["80x24"])


@pytest.mark.slow
def test_every_medium_can_be_enlarged_or_says_why_not(stage: Stage, tmp_path: Path) -> None:
    asked, _ = mixed_media(tmp_path / "build")
    folder = stage.run("mixed", asked=asked, data=tmp_path / "build")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        zoomed = await open_zoom(pilot, app, folder)
        for name, closer in (("audio", "1.5 x"), ("video", "1.5 x"), ("3D model", "1.5 x"), ("image", "damaged")):
            await until(pilot, lambda name=name: zoomed.query(Static) and name in caption(zoomed))  # type: ignore[misc]
            await pilot.press("plus", "left", "up")
            await until(pilot, lambda closer=closer: closer in caption(zoomed))  # type: ignore[misc]
            await pilot.press("n")

    drive(stage.app(), script)


def test_a_terminal_that_draws_pixels_gets_the_part(stage: Stage) -> None:
    sizes = []

    class Pixels(Static):
        """A widget of a picture, as those of textual_image are."""

        def __init__(self, image: Image.Image) -> None:
            super().__init__("pixels")
            self.image = image

        def __setattr__(self, name: str, value: object) -> None:
            if name == "image" and isinstance(value, Image.Image):
                sizes.append(value.size)
            super().__setattr__(name, value)

    picture = stored(stage.path / "build", chart())
    folder = stage.run("charts", asked=instances(1, picture=picture), data=stage.path / "build")
    app = stage.app()
    app.images, app.image_widget = "sixel", Pixels

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await open_samples(pilot, app, folder)
        await pilot.press("z")
        await until(pilot, lambda: isinstance(app.screen, ZoomScreen) and "720 x 480" in screen_text(app))
        await pilot.press("plus", "plus", "right")
        await until(pilot, lambda: "arrows move" in screen_text(app))
        assert sizes[-1][0] < 720

    drive(app, script)
