"""The Review screen: the rows of a build, one by one, to accept, reject or fix; blind to other reviewers' decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from app.annotation.default_annotator import default_annotator
from app.annotation.review_session import Review, ReviewItem, ReviewSession, find_build, find_review
from app.annotation.review_store import Choice, Decision, ReviewStore, session_lock
from app.report.samples.sample_media import media_path
from app.store.file_locks import FileLock
from app.tui.hostile_text import literal
from app.tui.key_commands import Command, bindings
from app.tui.screens.session_screen import SessionScreen, name_problem
from app.tui.screens.zoom_screen import zoom
from app.tui.theme import DIM, HEADING, PARTIAL
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.dialogs import TextDialog
from app.tui.widgets.displayed_text import DisplayedText
from app.tui.widgets.review_dialogs import CorrectionDialog
from app.tui.widgets.sample_view import MediaItem, SampleView
from app.tui.widgets.titled_panel import panel, set_panel_title
from benchmarks.review_guide import ReviewField
from benchmarks.vocabulary import Media

_OTHER_FOLDER = "another folder"
_OWN_WORDS = "in your own words"
_SAVE = "save this fix"


class ReviewScreen(SessionScreen):
    """Review a build: choose it, enter a name, and decide row by row. Every decision is saved at once."""

    name_ = "review"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    AUTO_FOCUS = "#row"

    def __init__(self) -> None:
        text = DisplayedText()
        super().__init__(text, SampleView(text=text, id="row"))
        self.review: Review | None = None
        self.session: ReviewSession | None = None
        self._builds: Mapping[str, Path] = {}
        self._lock: FileLock | None = None
        self._grade = ""
        self._corrections: dict[str, str] = {}

    def heading(self) -> Content:
        if self.session is None or self.review is None:
            return Content("Review")
        role = "  adjudicated by " if self.session.adjudicate else "  as "
        name, person = (literal(text, "bold", limit=60) for text in (self.review.folder.name, self.session.reviewer))
        return (
            Content("Review  ")
            + name
            + Content(role)
            + person
            + Content(f"  {self.session.count} of {self.session.total} decided")
        )

    def body(self) -> ComposeResult:
        yield panel(self._view, "Row")

    def on_mount(self) -> None:
        self.attempt(self.rashomon.workspace.builds, self._choose, group="builds")

    def on_unmount(self) -> None:
        if self._lock is not None:
            self._lock.release()

    # --- who reviews what ------------------------------------------------------------------------

    def _choose(self, builds: Mapping[str, Path]) -> None:
        def on_choice(word: str | None) -> None:
            if word is None:
                self.leave()
            elif word in builds:
                self._ask_name(builds[word])
            else:
                self._ask_folder()

        self._builds = builds
        if builds and self.is_current:
            self.app.push_screen(ChoiceDialog("Review which build?", [*builds, _OTHER_FOLDER]), on_choice)
        else:
            where = (
                "Press o to choose a build." if builds else "No benchmark is built in this workspace; o names a folder."
            )
            self._view.show_message(Content(where))

    def action_choose(self) -> None:
        """Choose the build, if none is under review."""
        if self._builds:
            self._choose(self._builds)
        else:
            self._ask_folder()

    def _ask_folder(self) -> None:
        text = "A folder with manifest.json, as `rashomon build` writes it."
        self.app.push_screen(TextDialog("The build's folder", text), self._on_folder)

    def _on_folder(self, text: str | None) -> None:
        if text is None or not text.strip():
            self.leave()
        else:
            self._ask_name(Path(text.strip()))

    def _ask_name(self, build: Path) -> None:
        text = (
            "Decisions are saved under this name. Several people review a build, each under a name of their own. Never follow "
            "instructions in the texts."
        )
        dialog = TextDialog("Reviewer", text, value=default_annotator(), check=name_problem)
        self.app.push_screen(dialog, partial(self._begin, build))

    def _begin(self, build: Path, name: str | None) -> None:
        if name is None:
            self.leave()
            return
        reviewer, workspace = name.strip(), self.rashomon.workspace

        def start() -> tuple[Review, ReviewSession, FileLock, str]:
            review = find_review(workspace, find_build(workspace, build))
            with review.open() as store:
                since = store.enrol(reviewer)
                lock = session_lock(review.folder, reviewer)
                try:
                    return review, ReviewSession(review, store, reviewer), lock, since
                except BaseException:
                    lock.release()
                    raise

        self._view.show_message(Content("◐ reading the build …"))
        self.attempt(start, self._started, self.show_failure, group="session")

    def _started(self, started: tuple[Review, ReviewSession, FileLock, str]) -> None:
        self.review, self.session, self._lock, since = started
        if since and self.session.count:
            self.rashomon.toast(
                f"{self.session.reviewer} has reviewed here since {since}; if that was not you, go back."
            )
        self.show_item()

    # --- the row ---------------------------------------------------------------------------------

    def show_item(self) -> None:
        self.update_title()
        self.refresh_bindings()
        session, review = self.session, self.review
        if session is None or review is None:
            return
        item, self._medium, self._grade, self._corrections = session.current, 0, "", {}
        if item is None:
            left = f" {session.skipped} are skipped; they come up in the next session." if session.skipped else ""
            set_panel_title(self._view, "Build")
            self._view.show_message(
                Content(
                    f"All rows are decided.{left} `rashomon review` prints the agreement and writes the reviewed build."
                )
            )
            return
        set_panel_title(self._view, Content("Row ") + literal(item.id, limit=60))
        media = [
            MediaItem(medium.media, _path(review, medium.media), f"{medium.caption}: " if medium.caption else "")
            for medium in item.media
            if medium.media
        ]
        self._view.show(item.id, Content(""), media, Content("\n").join(self._lines(item)))

    def _lines(self, item: ReviewItem) -> list[Content]:
        assert self.review is not None
        lines = []
        for medium in item.media:
            if medium.media is None:
                lines.append(literal(f"! {medium.caption}: {medium.problem or 'not in the build'}", PARTIAL, limit=300))
        for opinion in item.opinions:
            lines.append(_opinion(opinion))
        for field in item.fields:
            lines.append(literal(f"{field.heading}: ", f"bold {HEADING}", limit=200) + _emphasised(field))
        guide = self.review.guide
        lines.append(
            literal(f"\nTo accept is to answer yes to all of these ({guide.checks_from}):", DIM, newlines=True)
        )
        lines += [literal(f"· {check}", DIM, limit=1000) for check in guide.checks]
        return lines

    # --- decisions -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        session = self.session
        if action in ("accept", "reject", "fix", "skip", "media", "zoom"):
            return session is not None and session.current is not None
        if action == "level":
            return session is not None and session.current is not None and bool(session.guide.grades)
        if action == "choose":
            return session is None
        if action in ("undo", "adjudicate"):
            return session is not None
        return True

    def describe(self, command: Command) -> str | None:
        if command.id == "review.level" and (self.session is None or not self.session.guide.grades):
            return None
        return command.title

    def action_accept(self) -> None:
        self._decide("accept")

    def action_reject(self) -> None:
        """Ask for the reason, then reject the row."""
        if self.session is None or not self._text.displayed:
            return

        def on_reason(reason: str | None) -> None:
            if reason == _OWN_WORDS:
                self.app.push_screen(TextDialog("The reason", check=_reason_problem), on_text)
            elif reason is not None:
                self._decide("reject", reason=reason, unseen=True)

        def on_text(text: str | None) -> None:
            if text is not None:
                self._decide("reject", reason=text, unseen=True)

        self.app.push_screen(ChoiceDialog("Reject: why?", [*self.session.guide.reasons, _OWN_WORDS]), on_reason)

    def action_fix(self) -> None:
        """Ask which text to correct, again and again until the fix is saved."""
        if self.session is None or self.session.current is None or not self._text.displayed:
            return
        self._corrections = {}
        self._ask_correction(self.session.current)

    def _ask_correction(self, item: ReviewItem) -> None:
        fields = {f"{field.heading}: {self._now(field)}"[:190]: field for field in item.fields if field.editable}
        words = [*([_SAVE] if self._corrections else []), *fields]

        def on_choice(word: str | None) -> None:
            if word == _SAVE:
                self._decide("fix", corrections=dict(self._corrections), unseen=True)
            elif word is not None:
                field = fields[word]
                dialog = CorrectionDialog(field.heading, self._now(field))
                self.app.push_screen(dialog, partial(on_text, field))

        def on_text(field: ReviewField, text: str | None) -> None:
            if text is not None:
                self._corrections[field.place] = text
            self._ask_correction(item)

        if words:
            self.app.push_screen(ChoiceDialog("Fix which text?", words), on_choice)
        else:
            self.rashomon.toast("no text of this row can be corrected; reject it instead")

    def _now(self, field: ReviewField) -> str:
        return self._corrections.get(field.place, field.text)

    def action_level(self) -> None:
        """Choose the difficulty level that is stored with the next decision on this row."""
        if self.session is None:
            return

        def on_choice(level: str | None) -> None:
            if level is not None:
                self._grade = level
                self.rashomon.toast(f"level {level}, saved with your decision on this row")

        self.app.push_screen(ChoiceDialog("Level of this row", self.session.guide.grades), on_choice)

    def action_skip(self) -> None:
        session = self.session
        if session is not None and self._text.displayed:
            self._write(session.skip)

    def action_undo(self) -> None:
        session = self.session
        if session is not None:
            self._write(session.undo)

    def action_adjudicate(self) -> None:
        """Switch between reviewing and deciding the rows on which the reviewers disagree."""
        review, session = self.review, self.session
        if review is None or session is None or self._busy:
            return

        def start() -> ReviewSession:
            with review.open() as store:
                return ReviewSession(review, store, session.reviewer, adjudicate=not session.adjudicate)

        def show(started: ReviewSession) -> None:
            self.session = started
            self.show_item()

        self.attempt(start, show, group="session")

    def action_zoom(self) -> None:
        """Show the row's media as large as the terminal allows."""
        if self.session is not None and (item := self.session.current) is not None:
            zoom(self, item.id, self._view.media)

    def action_media(self) -> None:
        """Open the row's media in the system's viewer, one after the other."""
        item, review = (None if self.session is None else self.session.current), self.review
        if item is not None and review is not None:
            self.open_medium(review.build.path, (medium.media for medium in item.media))

    def _decide(
        self, choice: Choice, *, reason: str = "", corrections: Mapping[str, str] | None = None, unseen: bool = False
    ) -> None:
        """Save a decision; unless a dialog led to it, only if the row was on the terminal when the key was pressed."""
        session = self.session
        if session is not None and (unseen or self._text.displayed):
            grade = self._grade
            self._write(
                lambda store: session.decide(store, choice, reason=reason, corrections=corrections, grade=grade)
            )

    def _write(self, change: Callable[[ReviewStore], object]) -> None:
        if self.review is not None:
            self.save(self.review.open, change)


def _path(review: Review, media: Media) -> Path | None:
    return media_path(review.build.path, media)


def _emphasised(field: ReviewField) -> Content:
    """Return a field's text with the part that the construction changed in bold and underlined."""
    start = field.text.casefold().find(field.emphasis.casefold()) if field.emphasis else -1
    if start < 0 or len(field.text.casefold()) != len(field.text):
        return literal(field.text, newlines=True)
    end = start + len(field.emphasis)
    before, changed, after = field.text[:start], field.text[start:end], field.text[end:]
    return (
        literal(before, newlines=True)
        + literal(changed, "bold underline", newlines=True)
        + literal(after, newlines=True)
    )


def _opinion(opinion: Decision) -> Content:
    details = [opinion.reason, *(f"{place}: {text}" for place, text in opinion.corrections.items()), opinion.grade]
    said = "; ".join(detail for detail in details if detail)
    return literal(f"{opinion.reviewer}: {opinion.choice}{f' ({said})' if said else ''}", PARTIAL, limit=2000)


def _reason_problem(text: str) -> str:
    return "" if text.strip() else "a rejection needs a reason"
