"""View of a sample: its question, its media, and below or beside them a text, such as references, answer and label."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Container, ItemGrid, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from app.tui.theme import DIM
from app.tui.widgets.terminal_picture import Picture
from benchmarks.vocabulary import Media

MAX_PICTURES = 8
"""The number of media on display; an instance of four videos as frames has 32."""
_TEXT_LINES = 18
"""The lines left to the text where it is below the pictures."""
_TALL = 3 / 8
"""The lines that a picture of 4:3 takes for each column of its width."""
_BESIDE, _BESIDE_WIDTH = 50, 0.45
"""The smallest width at which the text can be beside the pictures, and their share of it."""
_SMALLEST = 4
_COLUMN = 26
"""The smallest width of one of several media side by side."""


class MediaItem(NamedTuple):
    """A medium on display: its file, None if it is missing, and a caption that precedes its facts. May be hostile."""

    media: Media
    path: Path | None
    caption: str = ""


def number_media(media: Sequence[tuple[Media, Path | None]]) -> list[MediaItem]:
    """Return media with their numbers as captions, if there are several."""
    several = len(media) > 1
    return [MediaItem(medium, path, f"{n}  " if several else "") for n, (medium, path) in enumerate(media, start=1)]


class SampleView(VerticalScroll):
    """A question, media and a text, set by :meth:`show`.

    The text is below the media, or beside them where that leaves more room to both. ``text`` is the widget of the text, if it
    must be another than a Static; ``facts`` describes each medium in a line.
    """

    def __init__(self, *, text: Static | None = None, facts: bool = True, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text = text or Static()
        self.text.add_class("sample-text")
        self.media: Sequence[MediaItem] = ()
        """The media of the sample, all of them."""
        self.question = ""
        """The question of the sample, sanitized."""
        self._key: Hashable = None
        self._question = Static(classes="sample-question")
        self._grid = ItemGrid(classes="sample-media", min_column_width=24)
        self._pictures = [Picture(facts=facts) for _ in range(MAX_PICTURES)]
        self._left_out = Static(classes="sample-left-out")

    def compose(self) -> ComposeResult:
        yield self._question
        with Container(classes="sample-parts"):
            with self._grid:
                yield from self._pictures
            yield self.text
        yield self._left_out

    def show(self, key: Hashable, question: Content, media: Sequence[MediaItem], text: Content) -> None:
        """Show a sample; ``key`` identifies it, so that another one is shown from its beginning."""
        self.media, self.question = media, question.plain
        self._question.update(question)
        self._question.display = bool(question)
        for number, picture in enumerate(self._pictures):
            picture.show(*(media[number] if number < len(media) else (None,)))
        self._grid.display = bool(media)
        more = len(media) - MAX_PICTURES
        self._left_out.update(Content.styled(f"and {more} more media; z shows them all", DIM))
        self._left_out.display = more > 0
        self.text.update(text)
        self._arrange()
        if key != self._key:
            self._key = key
            self.scroll_home(animate=False)

    def show_message(self, message: Content) -> None:
        """Show a message instead of a sample."""
        self.show(None, Content(""), (), message)

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        """Choose the place of the text and the height of the pictures."""
        size, count = self.scrollable_content_region.size, min(len(self.media), MAX_PICTURES)
        if not size.area or not count:
            self.set_class(False, "-beside")
            return
        beside, lines = _arrangement(size)
        columns = max(1, min(count, int(size.width * _BESIDE_WIDTH if beside else size.width) // _COLUMN))
        rows = -(-count // columns)
        self._grid.min_column_width = _COLUMN if columns > 1 else size.width
        self.set_class(beside, "-beside")
        for picture in self._pictures:
            picture.limit(max(_SMALLEST, lines // rows))


def _arrangement(size: Size) -> tuple[bool, int]:
    """Return True if the text belongs beside the pictures, and the lines for the pictures."""
    below = max(_SMALLEST, size.height - _TEXT_LINES)
    beside = max(_SMALLEST, size.height - 3)
    width = _BESIDE_WIDTH * size.width
    if size.width >= _BESIDE and min(beside, width * _TALL) > min(below, size.width * _TALL):
        return True, beside
    return False, below
