"""Picture: a medium in the terminal, as Sixels, by Kitty's protocol or in half cells; and a line of facts, or why not.

The file is hostile, too: it is read in a thread, within limits, and scaled down there (``app.report.media``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from app.report.media import MediaPreview, seen
from app.tui.hostile_text import literal
from app.tui.theme import DIM
from benchmarks.base import Media

if TYPE_CHECKING:
    from PIL.Image import Image

MODES = ("auto", "sixel", "kitty", "half", "off")
THUMBNAIL = 800
"""Pixels of the longer side."""
_READERS = ThreadPoolExecutor(2, "media")
"""What reads media: not the threads that read runs, since a long video keeps one busy."""


def best_mode(asked: str) -> tuple[str, type[Widget] | None]:
    """The mode to use, and the widget that draws it where that is not our own.

    Asks the terminal, so it must be called before the app runs and on the main thread.
    """
    import os

    if asked in ("half", "off"):
        return asked, None
    if asked == "auto" and (os.environ.get("TMUX") or not _has_terminal()):
        return "half", None
    from textual_image import widget

    known: dict[str, type[Widget]] = {"sixel": widget.SixelImage, "kitty": widget.TGPImage}
    if asked == "auto":
        module = widget.AutoRenderable.__module__
        asked = "sixel" if module.endswith("sixel") else "kitty" if module.endswith("tgp") else "half"
    return asked, known.get(asked)


def _has_terminal() -> bool:
    import sys

    return sys.__stdout__ is not None and sys.__stdout__.isatty()


class HalfCells(Widget):
    """An image of two pixels a cell, the upper one as the colour of a half block."""

    DEFAULT_CSS = "HalfCells { width: 1fr; height: 1fr; }"

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image
        self._lines: list[Strip] = []
        self._for = Size(0, 0)

    def render_line(self, y: int) -> Strip:
        if self._for != self.size:
            self._lines, self._for = self._scaled(), self.size
        blank = Strip.blank(self.size.width, self.rich_style)
        return self._lines[y].adjust_cell_length(self.size.width, self.rich_style) if y < len(self._lines) else blank

    def _scaled(self) -> list[Strip]:
        width, height = self.size.width, self.size.height * 2
        scale = min(width / self._image.width, height / self._image.height, 1.0)
        size = max(1, round(self._image.width * scale)), max(2, round(self._image.height * scale) // 2 * 2)
        pixels: Any = self._image.resize(size).load()
        lines = []
        for y in range(0, size[1], 2):
            cells = [
                Segment("▀", Style.parse("#{:02x}{:02x}{:02x} on #{:02x}{:02x}{:02x}".format(*above, *below)))
                for above, below in ((pixels[x, y], pixels[x, y + 1]) for x in range(size[0]))
            ]
            lines.append(Strip(cells))
        return lines


class Picture(Widget):
    """A medium: its picture, and with ``facts`` a line above it that tells what it is. :meth:`show` shows another.

    Where there is no picture, the line stands alone and says why. Without a medium it takes no room (class ``-empty``).
    """

    DEFAULT_CSS = """
    Picture { width: 1fr; height: 1fr; }
    Picture.-empty { display: none; }
    Picture Static { height: auto; }
    Picture > SixelImage, Picture > TGPImage { width: auto; height: 100%; }
    """

    def __init__(self, *, facts: bool = False, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._with_facts = facts
        self._shown: tuple[Media | None, Path | None, str] = None, None, ""
        self.add_class("-empty")

    def compose(self) -> ComposeResult:
        yield from ()

    @property
    def media(self) -> Media | None:
        """What is shown."""
        return self._shown[0]

    def show(self, media: Media | None, path: Path | None = None, name: str = "") -> None:
        """Show a medium, whose file is ``path`` if it is there; ``name`` stands before its facts."""
        if (media, path, name) == self._shown:
            return
        self._shown = media, path, name
        self.workers.cancel_node(self)  # what it was waiting for: reading that has not begun never does
        self.set_class(media is None, "-empty")
        self.remove_children()
        if media is not None:
            self.run_worker(self._read(media, path, name), exit_on_error=False)

    async def _read(self, media: Media, path: Path | None, name: str) -> None:
        found = await asyncio.get_running_loop().run_in_executor(_READERS, seen, media, path, THUMBNAIL)
        shown = None if getattr(self.app, "images", "half") == "off" else found.picture
        await self.mount_all(self._parts(found, shown, name))

    def _parts(self, found: MediaPreview, shown: Image | None, name: str) -> Iterator[Widget]:
        if self._with_facts or shown is None:
            yield Static(literal(f"{name}{found.facts}", DIM, limit=300))
        if shown is not None:
            widget: type[Any] = getattr(self.app, "image_widget", None) or HalfCells
            yield widget(shown)
