"""Picture of a medium in the terminal, by Sixel, Kitty's protocol or block characters, and a line of facts.

The file may be hostile, so it is read in a thread, within limits, and scaled down there (``app.report.samples.sample_media``).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from app.report.samples.sample_media import preview_media
from app.tui.hostile_text import literal
from app.tui.theme import DIM
from app.tui.widgets.block_picture import BlockPicture, finest_symbols
from benchmarks.vocabulary import Media

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")
MODES = ("auto", "sixel", "kitty", "blocks", "half", "off")
THUMBNAIL = 800
"""The longer side of a displayed image, in pixels."""
_READERS = ThreadPoolExecutor(2, "media")
"""The threads that read media, apart from those that read runs, since a long video keeps one busy."""


def best_mode(requested: str) -> tuple[str, type[Widget] | None]:
    """Return the mode to draw pictures in, and the widget that does it; None for our own.

    Call it on the main thread before the app runs, as it queries the terminal.
    """
    if requested in ("blocks", "half", "off"):
        return requested, None
    if requested == "auto" and (os.environ.get("TMUX") or not _has_terminal()):
        return "blocks", None
    from textual_image import widget  # importing it queries the terminal

    widgets: dict[str, type[Widget]] = {"sixel": widget.SixelImage, "kitty": widget.TGPImage}
    mode = requested
    if mode == "auto":
        module = widget.AutoRenderable.__module__
        mode = "sixel" if module.endswith("sixel") else "kitty" if module.endswith("tgp") else "blocks"
    return mode, widgets.get(mode)


def _has_terminal() -> bool:
    return sys.__stdout__ is not None and sys.__stdout__.isatty()


class Picture(Widget):
    """The picture of a medium, set by :meth:`show`; with ``facts``, above a line that describes it.

    It is drawn as large as fits the widget, or the number of lines set by :meth:`limit`. Blocks show no image larger
    than pixel by pixel, unless ``enlarge``. If there is no picture, the line gives the reason. Without a medium the widget
    takes no space (class ``-empty``).
    """

    def __init__(
        self,
        *,
        facts: bool = False,
        side: int = THUMBNAIL,
        enlarge: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._with_facts, self._side, self._enlarge = facts, side, enlarge
        self._current: tuple[Media | None, Path | None, str] = None, None, ""
        self._lines: int | None = None
        self._image: Image | None = None
        self._facts = ""
        self.add_class("-empty")

    def compose(self) -> ComposeResult:
        yield from ()

    @property
    def media(self) -> Media | None:
        """The medium on display."""
        return self._current[0]

    def limit(self, lines: int) -> None:
        """Take the height that the picture needs, at most ``lines`` and the line of facts."""
        self.add_class("-limited")
        if lines != self._lines:
            self._lines = lines
            self._fit()

    def show(self, media: Media | None, path: Path | None = None, name: str = "") -> None:
        """Display a medium; ``path`` is its file, if available, and ``name`` precedes its facts."""
        if (media, path, name) == self._current:
            return
        self._current = media, path, name
        self.workers.cancel_node(self)  # a queued reading of the previous medium never starts
        self.set_class(media is None, "-empty")
        if self._lines is not None and self.size.height:
            self.styles.min_height = self.size.height  # so that the text below stays until the medium is read
        self.remove_children()
        self._image = None
        if media is not None:
            self.run_worker(self._read(media, path, name), exit_on_error=False)

    async def _read(self, media: Media, path: Path | None, name: str) -> None:
        preview = await self.in_reader(preview_media, media, path, self._side)
        await self.draw(preview.picture, f"{name}{preview.facts}")

    async def in_reader(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return the result of ``work`` in a thread for media."""
        return await asyncio.get_running_loop().run_in_executor(_READERS, work, *arguments)

    async def draw(self, image: Image | None, facts: str) -> None:
        """Display an image, with facts if they were asked for or if there is no image."""
        self._image = None if getattr(self.app, "images", "half") == "off" else image
        self._facts = facts if self._with_facts or self._image is None else ""
        await self.mount_all(self._parts())
        self.styles.min_height = None
        self._fit()

    def redraw(self, image: Image, facts: str) -> None:
        """Replace an image and its facts on display."""
        self._image, self._facts = image, facts
        picture: Any = self.children[0]
        picture.image = image
        self.query_one(Static).update(literal(facts, DIM, limit=300))
        self._fit()

    def _parts(self) -> Iterator[Widget]:
        if self._image is not None:
            widget: type[Any] = getattr(self.app, "image_widget", None) or BlockPicture
            finest = widget is BlockPicture and getattr(self.app, "images", "half") == "blocks"
            yield widget(self._image, *[finest_symbols()] * finest)
        if self._facts:
            yield Static(literal(self._facts, DIM, limit=300))

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """Give the image the largest size with its proportions that there is room for."""
        if self._image is None or not self.children:
            return
        widget, width = self.children[0], self.content_size.width
        caption_lines = -(-cell_len(self._facts) // max(1, width))
        box = Size(width, self.content_size.height - caption_lines if self._lines is None else self._lines)
        if box.width < 1 or box.height < 1:
            size = Size(0, 0)
        elif isinstance(widget, BlockPicture):
            scale = min(box.width / self._image.width, 2 * box.height / self._image.height)
            scale = scale if self._enlarge else min(scale, 1.0)
            size = Size(max(1, round(self._image.width * scale)), max(1, round(self._image.height * scale / 2)))
        else:
            widget.styles.width = widget.styles.height = "auto"
            columns = widget.get_content_width(box, box)
            size = Size(columns, widget.get_content_height(box, box, columns))
        widget.styles.width, widget.styles.height = size
