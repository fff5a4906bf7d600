"""Picture: an image file in the terminal, as Sixels, by Kitty's protocol or in half cells; or one sentence why not.

The file is hostile, too: it is opened in a thread, with a limit on its pixels, and scaled down to a thumbnail there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from app.tui.safe import literal

if TYPE_CHECKING:
    from PIL.Image import Image

MODES = ("auto", "sixel", "kitty", "half", "off")
THUMBNAIL = 800
"""Pixels of the longer side."""
MOST_PIXELS = 80_000_000
"""An image with more is not decoded."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")


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


def thumbnail(path: Path) -> Image:
    """An image of at most ``THUMBNAIL`` pixels a side, RGB. Raises ValueError with a sentence for what cannot be shown."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=_FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are too many to show here.")
            image.draft("RGB", (THUMBNAIL, THUMBNAIL))
            image.thumbnail((THUMBNAIL, THUMBNAIL))
            rgba = image.convert("RGBA")
            ground = Image.new("RGBA", rgba.size, "white")
            return Image.alpha_composite(ground, rgba).convert("RGB")
    except FileNotFoundError as error:
        raise ValueError("the file is not there.") from error
    except UnidentifiedImageError as error:
        raise ValueError("this is no image that can be shown.") from error
    except (OSError, SyntaxError, Image.DecompressionBombError, MemoryError) as error:
        raise ValueError(f"the image cannot be read ({type(error).__name__}).") from error


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
    """An image. :meth:`show` shows another; None shows nothing and takes no room (class ``-empty``)."""

    DEFAULT_CSS = """
    Picture { width: 1fr; height: 1fr; }
    Picture.-empty { display: none; }
    Picture Static { color: #909090; }
    Picture > SixelImage, Picture > TGPImage { width: auto; height: 100%; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.path: Path | None = None
        self._note = ""
        self._worker: Worker[Any] | None = None
        self.add_class("-empty")

    def compose(self) -> ComposeResult:
        yield from ()

    def show(self, path: Path | None, note: str = "") -> None:
        """Show the image in a file. ``note``, which may be hostile, stands in its place where images are off."""
        if (path, note) == (self.path, self._note):
            return
        self.path, self._note = path, note
        self.set_class(path is None and not note, "-empty")
        if path is None or getattr(self.app, "images", "half") == "off":
            self._put(Static(literal(note)) if note else None)
            self._worker = None
            return
        self._worker = self.run_worker(
            partial(thumbnail, path), thread=True, group="thumbnail", exit_on_error=False, exclusive=False
        )

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.worker is not self._worker:
            return
        if event.state == WorkerState.SUCCESS and event.worker.result is not None:
            widget: type[Any] = getattr(self.app, "image_widget", None) or HalfCells
            self._put(widget(event.worker.result))
        elif event.state == WorkerState.ERROR:
            # `thumbnail` says in a sentence what it expects to go wrong; a hostile file can find more.
            error = event.worker.error
            why = str(error) if isinstance(error, ValueError) else f"the image cannot be read ({type(error).__name__})."
            self._put(Static(literal(f"{self._note}: {why}" if self._note else why)))

    def _put(self, widget: Widget | None) -> None:
        self.remove_children()
        if widget is not None:
            self.mount(widget)


def facts(path: Path) -> Content:
    """Nothing but what the file system says of a medium: its name's ending and size."""
    try:
        size = path.stat().st_size
    except OSError:
        return Content("the file is not there")
    return literal(f"{path.suffix.lstrip('.') or 'file'}, {size / 1000:,.0f} kB")
