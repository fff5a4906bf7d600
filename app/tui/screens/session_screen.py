"""Base class of the screens on which a person decides item by item; every decision is saved at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from app.report.samples.sample_media import media_path
from app.tui.hostile_text import literal
from app.tui.open_external import open_in_viewer
from app.tui.screens.base_screen import BlindError, RashomonScreen
from app.tui.widgets.displayed_text import DisplayedText
from app.tui.widgets.sample_view import SampleView
from benchmarks.errors import RashomonError, SpecError
from benchmarks.vocabulary import Media
from judges.human_labels_and_samples import annotator_id

_Store = TypeVar("_Store")


class SessionScreen(RashomonScreen):
    """A screen with one item in view at a time. A subclass defines :meth:`show_item`."""

    def __init__(self, text: DisplayedText, view: SampleView) -> None:
        super().__init__()
        self._text, self._view = text, view
        self._busy = False
        self._medium = 0
        """The number of media of the item that were opened in the viewer."""

    def show_item(self) -> None:
        """Show the session's current item, or that none is left."""
        raise NotImplementedError

    def show_failure(self, error: RashomonError) -> None:
        """Show why the session cannot begin, also where its items would be."""
        self._view.show_message(literal(error))
        self.rashomon.show_error(error)

    def page_at(self) -> str:
        raise BlindError(
            "The page shows models and their labels, which you must not know here. Leave this screen first."
        )

    def save(
        self,
        opened: Callable[[], AbstractContextManager[_Store]],
        change: Callable[[_Store], object],
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Save or undo a decision in a thread, in the store that ``opened`` opens, and call ``then`` unless it fails.

        Keys pressed meanwhile are ignored, as they belong to no item.
        """
        if self._busy:
            return
        self._busy = True
        self._text.mark_undisplayed()

        def work() -> None:
            with opened() as store:
                change(store)

        def end() -> None:
            self._busy = False
            self.show_item()

        self.attempt(work, lambda _: then(), ended=end, group="decision")

    def open_medium(self, build: Path, media: Iterable[Media | None]) -> None:
        """Open the media in the system's viewer, one after the other with each call."""
        media = tuple(media)
        paths = [path for medium in media if medium and (path := media_path(build, medium))]
        if not paths:
            self.rashomon.toast("the media files are missing" if media else "no media")
            return
        path = paths[self._medium % len(paths)]
        self._medium += 1
        self.attempt(lambda: open_in_viewer(path), group="viewer")

    def leave(self) -> None:
        """Go back to the screen before this one."""
        self.app.call_later(self.rashomon.action_back)


def name_problem(text: str) -> str:
    """Return why a text is no person's name, a sentence; "" if it is one."""
    try:
        annotator_id(text.strip())
    except SpecError as error:
        return str(error)
    return ""
