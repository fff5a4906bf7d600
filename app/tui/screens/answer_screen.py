"""The Answer screen: a person answers a benchmark's questions, timed; the answers are a run of the model ``person:NAME``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input

from app.annotation.answer_session import AnswerSession, Question, answer_lock, plan_answers
from app.annotation.default_annotator import default_annotator
from app.commands.people.answer_command import AnswerArguments, answer_spec
from app.report.samples.sample_media import media_path
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.screens.session_screen import SessionScreen, name_problem
from app.tui.screens.zoom_screen import zoom
from app.tui.theme import PARTIAL
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.dialogs import TextDialog
from app.tui.widgets.displayed_text import DisplayedText
from app.tui.widgets.sample_view import SampleView, number_media
from app.tui.widgets.titled_panel import panel, set_panel_title
from benchmarks.build import Build
from benchmarks.vocabulary import Media, Text

_ALL = "all"


class AnswerScreen(SessionScreen):
    """Answer a benchmark's questions: choose the build, a name and the number of examples, then type the answers."""

    name_ = "answer"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    AUTO_FOCUS = "#answer"

    def __init__(self) -> None:
        text = DisplayedText()
        super().__init__(text, SampleView(text=text, id="row"))
        self.session: AnswerSession | None = None
        self._folder, self._build = Path(), Path()
        self._builds: Mapping[str, Path] = {}
        self._lock: FileLock | None = None
        self._shown = 0
        """The number of questions displayed so far."""

    def heading(self) -> Content:
        session = self.session
        if session is None:
            return Content("Answer")
        name, person = (literal(text, "bold", limit=60) for text in (session.benchmark.name, session.person))
        return (
            Content("Answer  ")
            + name
            + Content("  as ")
            + person
            + Content(f"  {session.count:,} of {session.total:,} answered")
        )

    def body(self) -> ComposeResult:
        yield panel(self._view, "Question")
        yield panel(Input(placeholder="Enter saves it", id="answer", disabled=True, compact=True), "Your answer")

    def on_mount(self) -> None:
        self.attempt(self.rashomon.workspace.builds, self._choose, group="builds")

    def on_unmount(self) -> None:
        session, lock = self.session, self._lock
        if session is not None:
            with RunStore.open(self._folder) as store:
                session.close(store)
        if lock is not None:
            lock.release()

    def unsaved(self) -> str:
        field = self.query_one("#answer", Input)
        return "The answer that you typed is not saved." if field.value.strip() and not field.disabled else ""

    # --- who answers what ------------------------------------------------------------------------

    def _choose(self, builds: Mapping[str, Path]) -> None:
        if not builds:
            self._view.show_message(Content("No benchmark is built in this workspace; `rashomon build` builds one."))
            return

        def on_choice(word: str | None) -> None:
            if word is None:
                self.leave()
            else:
                text = "Your answers are saved under this name, as a run of the model person:NAME."
                dialog = TextDialog("Who answers?", text, value=default_annotator(), check=name_problem)
                self.app.push_screen(dialog, partial(self._ask_number, builds[word]))

        self._builds = builds
        if self.is_current:
            self.app.push_screen(ChoiceDialog("Answer which benchmark?", list(builds)), on_choice)
        else:
            self._view.show_message(Content("Press ctrl+b to choose a benchmark."))

    def action_choose(self) -> None:
        """Choose the benchmark, if none is being answered."""
        self._choose(self._builds)

    def _ask_number(self, build: Path, name: str | None) -> None:
        if name is None:
            self.leave()
            return
        text = "The same number gives everybody the same questions."
        dialog = TextDialog("How many examples?", text, value=_ALL, check=_number_problem)
        self.app.push_screen(dialog, partial(self._begin, build, name.strip()))

    def _begin(self, build: Path, name: str, number: str | None) -> None:
        if number is None:
            self.leave()
            return
        limit, workspace = None if number.strip() == _ALL else int(number), self.rashomon.workspace

        def start() -> tuple[Path, AnswerSession, FileLock]:
            benchmark = Build.open(build).benchmark
            data = None if build == workspace.build_folder(benchmark) else build
            folder = plan_answers(workspace, answer_spec(benchmark, AnswerArguments(name, data=data, limit=limit)))
            lock = answer_lock(folder)
            try:
                with RunStore.open(folder) as store:
                    return folder, AnswerSession(folder, store), lock
            except BaseException:
                lock.release()
                raise

        self._build = build
        self._view.show_message(Content("◐ reading the build …"))
        self.attempt(start, self._started, self.show_failure, group="session")

    def _started(self, started: tuple[Path, AnswerSession, FileLock]) -> None:
        self._folder, self.session, self._lock = started
        self.show_item()

    # --- the question ----------------------------------------------------------------------------

    def show_item(self) -> None:
        self.update_title()
        self.refresh_bindings()
        session, field = self.session, self.query_one("#answer", Input)
        if session is None:
            return
        question, self._medium = session.current, 0
        field.value, field.disabled = "", question is None
        if question is None:
            run = literal(self._folder.name, "bold", limit=100)
            self._view.show_message(
                Content("Everything is answered. The run is ") + run + Content(", like that of any model.")
            )
            return
        set_panel_title(self._view, f"Question {session.count + 1:,} of {session.total:,}")
        media = [(medium, media_path(self._build, medium)) for medium in question.media]
        self._shown += 1
        self._view.show(self._shown, Content(""), number_media(media), _question(question))
        field.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("skip", "media", "zoom"):
            return self.session is not None and self.session.current is not None
        return action != "choose" or self.session is None

    def on_input_submitted(self, event: Input.Submitted) -> None:
        session, text = self.session, event.value
        if session is not None and text.strip() and self._text.displayed:
            self._write(lambda store: session.answer(store, text))

    def action_skip(self) -> None:
        session = self.session
        if session is not None:
            self._write(session.skip)

    def action_zoom(self) -> None:
        """Show the question's media as large as the terminal allows."""
        zoom(self, "", self._view.media)

    def action_media(self) -> None:
        """Open the question's media in the system's viewer, one after the other."""
        question = None if self.session is None else self.session.current
        media = () if question is None else question.media
        self.open_medium(self._build, media)

    def _write(self, change: Callable[[RunStore], object]) -> None:
        """Save an answer in a thread; what is typed meanwhile belongs to no question."""
        self.query_one("#answer", Input).disabled = True
        self.save(partial(RunStore.open, self._folder), change)


def _question(question: Question) -> Content:
    """Return the messages as text, with a placeholder for each medium."""
    lines = []
    places = {media: place for place, media in enumerate(question.media, start=1)}
    for message in question.messages:
        if message.role != "user":
            lines.append(Content.styled(f"{message.role}:", "bold"))
        parts = []
        for part in message.parts:
            if isinstance(part, Text):
                parts.append(literal(part.text, newlines=True))
            elif isinstance(part, Media):
                marks = f", marked {', '.join(mark.label for mark in part.marks)}" if part.marks else ""
                number = f" {places[part]}" if len(places) > 1 else ""
                parts.append(literal(f"[{part.modality}{number}{marks}]", PARTIAL, limit=300))
        lines.append(Content.assemble(*parts))
    return Content("\n").join(lines)


def _number_problem(text: str) -> str:
    text = text.strip()
    if text == _ALL or (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 9):
        return ""
    return "write a number of examples, or all"
