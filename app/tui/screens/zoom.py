"""The Zoom screen: one medium as large as the terminal allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content

from app.tui.commands import Command, bindings
from app.tui.hostile_text import literal
from app.tui.open_external import open_in_viewer
from app.tui.screens.base import RashomonScreen
from app.tui.widgets.picture import THUMBNAIL, Picture
from app.tui.widgets.sample_view import MediaItem

_SIDE = 2000
"""The longer side of an image in pixels where the terminal draws pixels."""


class ZoomScreen(RashomonScreen):
    """A picture as large as the terminal allows: an image, the waveform of a sound, three frames of a video."""

    name_ = "zoom"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, below: RashomonScreen, question: str, media: Sequence[MediaItem]) -> None:
        super().__init__()
        self._below, self._question, self._media = below, question, media
        self._place = 0

    def displayed_runs(self) -> tuple[Path, ...]:
        return self._below.displayed_runs()

    def unsaved(self) -> str:
        return self._below.unsaved()

    def heading(self) -> Content:
        count = f"{self._place + 1} of {len(self._media)}  " if len(self._media) > 1 else ""
        return Content(f"Zoom  {count}") + literal(" ".join(self._question.split()), limit=200)

    def body(self) -> ComposeResult:
        with Container(id="canvas"):
            half = self.rashomon.image_widget is None
            yield Picture(facts=True, enlarge=True, side=THUMBNAIL if half else _SIDE)

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        self.update_title()
        self.query_one(Picture).show(*self._media[self._place])

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

    def action_outside(self) -> None:
        """Open the medium in the system's viewer."""
        path = self._media[self._place].path
        if path is None:
            self.rashomon.toast("the media file is missing")
        else:
            self.in_thread(lambda: open_in_viewer(path), lambda _: None, group="viewer")

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
