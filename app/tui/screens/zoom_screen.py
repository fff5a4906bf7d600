"""The Zoom screen: one medium as large as the terminal allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content
from textual.geometry import Size

from app.report.samples.sample_media import preview_media
from app.tui.hostile_text import literal
from app.tui.key_commands import Command, bindings
from app.tui.open_external import open_in_viewer
from app.tui.screens.base_screen import RashomonScreen
from app.tui.widgets.sample_view import MediaItem
from app.tui.widgets.terminal_picture import THUMBNAIL, Picture
from app.tui.widgets.viewport import Viewport
from benchmarks.media import LARGEST_IMAGE
from benchmarks.vocabulary import Media

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDE = 2000
"""The longer side in pixels of a picture made of a sound or video, and of an image where the terminal draws pixels."""
_MOVES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


class ZoomPicture(Picture):
    """A medium's picture, of which a part can be displayed; images are read at full resolution."""

    def __init__(self, side: int) -> None:
        super().__init__(facts=True, enlarge=True, side=side)
        self.viewport: Viewport | None = None
        """The part on display; None without a picture."""
        self._whole: Image | None = None
        self._description = ""

    async def _read(self, media: Media, path: Path | None, name: str) -> None:
        self.viewport = None
        side = LARGEST_IMAGE if media.modality == "image" else _SIDE
        preview = await self.in_reader(preview_media, media, path, side)
        self._whole, self._description = preview.picture, f"{name}{preview.facts}"
        if self._whole is None:
            await self.draw(None, self._description)
            return
        viewport = Viewport(Size(*self._whole.size), self._canvas)
        await self.draw(await self.in_reader(_part, self._whole, viewport, self._side), self._description)
        self.viewport = viewport if self._image is not None else None

    @property
    def _canvas(self) -> Size:
        """The area for a picture above a line of facts, in pixels half as high as a cell."""
        return Size(max(1, self.size.width), max(1, 2 * (self.size.height - 1)))

    def display_part(self, viewport: Viewport) -> None:
        """Display another part of the picture."""
        if self._whole is not None and viewport != self.viewport:
            self.viewport = viewport
            self.run_worker(self._redraw(self._whole, viewport), group="part", exclusive=True, exit_on_error=False)

    async def _redraw(self, whole: Image, viewport: Viewport) -> None:
        image = await self.in_reader(_part, whole, viewport, self._side)
        self.redraw(image, f"{self._description}{_position(viewport)}")

    def on_resize(self) -> None:
        super().on_resize()
        if self.viewport is not None:
            self.display_part(replace(self.viewport, canvas=self._canvas))


def _part(whole: Image, viewport: Viewport, side: int) -> Image:
    """Return the part on display, at most ``side`` pixels wide and high."""
    part = viewport.part
    image = whole.crop((part.x, part.y, part.right, part.bottom))
    image.thumbnail((side, side))
    return image


def _position(viewport: Viewport) -> str:
    """Return the enlargement, and which pixels are on display; empty for the whole picture."""
    part = viewport.part
    if not viewport.steps:
        return ""
    return f"; {viewport.factor:.1f} x: {part.x}-{part.right} across, {part.y}-{part.bottom} down, arrows move"


class ZoomScreen(RashomonScreen):
    """A picture as large as the terminal allows, or a part of it: an image, a sound's waveform, three frames of a video."""

    name_ = "zoom"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, below: RashomonScreen, question: str, media: Sequence[MediaItem]) -> None:
        super().__init__()
        self._below, self._question, self._media = below, question, media
        self._place = 0

    def displayed_runs(self) -> tuple[Path, ...]:
        return self._below.displayed_runs()

    def page_at(self) -> str:
        return self._below.page_at()

    def page_judge(self) -> str:
        return self._below.page_judge()

    def unsaved(self) -> str:
        return self._below.unsaved()

    def heading(self) -> Content:
        count = f"{self._place + 1} of {len(self._media)}  " if len(self._media) > 1 else ""
        return Content(f"Zoom  {count}") + literal(" ".join(self._question.split()), limit=200)

    def body(self) -> ComposeResult:
        with Container(id="canvas"):
            blocks = self.rashomon.image_widget is None
            yield ZoomPicture(THUMBNAIL if blocks else _SIDE)

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        self.update_title()
        self.query_one(ZoomPicture).show(*self._media[self._place])

    def describe(self, command: Command) -> str | None:
        return None if command.id == "everywhere.close" else command.title  # z is listed

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("next", "previous") or len(self._media) > 1

    def action_next(self) -> None:
        self._place = (self._place + 1) % len(self._media)
        self._show()

    def action_previous(self) -> None:
        self._place = (self._place - 1) % len(self._media)
        self._show()

    def action_closer(self) -> None:
        """Enlarge the middle of the picture."""
        self._zoom(1)

    def action_wider(self) -> None:
        """Show more of the picture."""
        self._zoom(-1)

    def action_whole(self) -> None:
        """Show the whole picture."""
        picture = self.query_one(ZoomPicture)
        if picture.viewport is not None:
            picture.display_part(Viewport(picture.viewport.image, picture.viewport.canvas))

    def _zoom(self, steps: int) -> None:
        picture = self.query_one(ZoomPicture)
        if picture.viewport is not None:
            picture.display_part(picture.viewport.zoomed(steps))

    def action_move(self, direction: str) -> None:
        """Move over the picture."""
        picture = self.query_one(ZoomPicture)
        if picture.viewport is not None:
            picture.display_part(picture.viewport.moved(*_MOVES[direction]))

    def action_outside(self) -> None:
        """Open the medium in the system's viewer."""
        path = self._media[self._place].path
        if path is None:
            self.rashomon.toast("the media file is missing")
        else:
            self.attempt(lambda: open_in_viewer(path), group="viewer")

    def action_close(self) -> None:
        self.app.pop_screen()

    def action_back(self) -> None:
        self.action_close()


def zoom(screen: RashomonScreen, question: str, media: Sequence[MediaItem]) -> None:
    """Show ``media`` on top of ``screen``."""
    if media:
        screen.app.push_screen(ZoomScreen(screen, question, media))
    else:
        screen.rashomon.toast("no media")
