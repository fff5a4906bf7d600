"""NewestAnswer: the answer that came last, with its question, its label and its picture."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.media import media_path
from app.store.tail import RunUpdate
from app.tui.hostile_text import literal
from app.tui.theme import DIM, outcome_look
from app.tui.widgets.picture import Picture
from benchmarks.base import Benchmark, Media, Record

_QUESTION, _ANSWER = 600, 3000  # characters


class NewestAnswer(Horizontal):
    """Give it what is newest by :meth:`show`."""

    DEFAULT_CSS = """
    NewestAnswer { height: 1fr; min-height: 4; border-top: solid $panel; padding: 0 1; }
    NewestAnswer VerticalScroll { width: 1fr; }
    NewestAnswer Picture { width: 44; margin-left: 1; }
    .-narrow NewestAnswer Picture, .-short NewestAnswer Picture { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: Record | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=True):
            yield Static(id="newest-text")
        yield Picture(id="newest-picture")

    def show(self, newest: RunUpdate, benchmark: Benchmark) -> None:
        """Show the newest answer; nothing where there is none."""
        record = newest.record
        if record is not None and record == self._shown:
            return
        self._shown = record
        text = self.query_one("#newest-text", Static)
        picture = self.query_one(Picture)
        if record is None or record.answer is None:
            text.update(Content.styled("no answer yet", DIM))
            picture.show(None)
            return
        instance, answer = record.instance, record.answer
        verdict = record.verdicts.get(newest.judge or "")
        outcome = "pending" if newest.judge is None else record.outcome(newest.judge)
        look = outcome_look(benchmark, instance.condition, outcome, verdict.label if verdict else None)
        cut = " (cut at the token limit)" if answer.finish_reason == "length" else ""
        said = answer.error if answer.finish_reason == "error" else answer.text
        shown = [
            literal(f"newest: {instance.id}  ", DIM) + literal(f"{look}{cut}", look.colour),
            literal(instance.question, limit=_QUESTION, newlines=True),
            literal(said or "(empty)", "bold", limit=_ANSWER, newlines=True),
        ]
        if verdict is not None and verdict.reason:
            shown.append(literal(verdict.reason, DIM, limit=400))
        text.update(Content("\n").join(shown))
        media = next((part for part in instance.parts if isinstance(part, Media)), None)
        picture.show(media, media_path(Path(newest.data), media) if media and newest.data else None)
