"""The newest answer of a run, with its question, label and picture."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.samples.sample_media import media_path
from app.store.run_tail import RunUpdate
from app.tui.hostile_text import literal
from app.tui.theme import DIM, outcome_appearance
from app.tui.widgets.terminal_picture import Picture
from app.tui.widgets.titled_panel import set_panel_title
from benchmarks.base import Benchmark
from benchmarks.vocabulary import Media, Record

_QUESTION_LIMIT, _ANSWER_LIMIT = 600, 3000  # characters


class NewestAnswer(Horizontal):
    """The newest answer, set by :meth:`show`."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: Record | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=True):
            yield Static(id="newest-text")
        yield Picture(id="newest-picture")

    def show(self, newest: RunUpdate, benchmark: Benchmark) -> None:
        """Display the newest answer, if there is one."""
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
        appearance = outcome_appearance(
            benchmark,
            instance.condition,
            outcome,
            verdict.label if verdict else None,
            verdict.behaviour if verdict else None,
        )
        truncated = " (truncated at the token limit)" if answer.finish_reason == "length" else ""
        reply = answer.error if answer.finish_reason == "error" else answer.text
        references = "; ".join(f"{source}: {', '.join(values)}" for source, values in instance.references.items())
        reason = f"  {verdict.reason}" if verdict is not None and verdict.reason else ""
        lines = [
            literal(instance.question, limit=_QUESTION_LIMIT, newlines=True),
            *[literal(references, DIM, limit=400)] * bool(references),
            literal(reply or "(empty)", "bold", limit=_ANSWER_LIMIT, newlines=True),
            literal(f"{appearance}{truncated}", appearance.colour) + literal(reason, DIM, limit=400),
        ]
        text.update(Content("\n").join(lines))
        set_panel_title(self, Content("Newest answer: ") + literal(instance.id, limit=80))
        media = next((part for part in instance.parts if isinstance(part, Media)), None)
        picture.show(media, media_path(Path(newest.data), media) if media and newest.data else None)
