"""Two runs' answers to one instance, beside its picture."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.compare.instances import AnswerSummary, InstanceComparison
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL, Appearance, outcome_appearance
from app.tui.widgets.panel import panel, set_panel_title
from app.tui.widgets.picture import Picture
from benchmarks.base import Benchmark
from benchmarks.vocabulary import Instance

_QUESTION_LIMIT = 400


class AnswerPair(Vertical):
    """A panel with the question of an instance, its references and picture, and two answers, set by :meth:`show`."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        panel(self)

    def compose(self) -> ComposeResult:
        yield Static(id="question")
        with Horizontal(id="beside"):
            yield Picture()
            with VerticalScroll(id="both", can_focus=False):
                yield Static(id="both-text")

    def show_message(self, message: str) -> None:
        """Show a message, which may be hostile, or nothing."""
        set_panel_title(self, "")
        self.query_one("#question", Static).update(literal(message))
        self.query_one("#both-text", Static).update("")
        self.query_one(Picture).show(None)

    def show(self, comparison: InstanceComparison, labels: Sequence[str], benchmark: Benchmark) -> None:
        """Show an instance; ``labels`` are the names of the two runs."""
        instance = comparison.instance
        set_panel_title(self, literal(instance.condition))
        question = literal(instance.question, newlines=True, limit=_QUESTION_LIMIT)
        self.query_one("#question", Static).update(Content("\n").join([question, references_line(instance)]))
        self.query_one(Picture).show(*(comparison.media[0] if comparison.media else (None,)))
        answers = []
        for label, summary in zip(labels, comparison.answers, strict=True):
            answers += [literal(label, "bold"), answer_text(summary, benchmark, instance.condition), Content("")]
        self.query_one("#both-text", Static).update(Content("\n").join(answers))
        self.query_one("#both").scroll_home(animate=False)


def references_line(instance: Instance) -> Content:
    """Return the values that the sources state, in one line."""
    sources = [f"{source} says {' | '.join(values)}" for source, values in instance.references.items()]
    return literal("   ".join(sources), PARTIAL)


def answer_text(summary: AnswerSummary | None, benchmark: Benchmark, condition: str) -> Content:
    """Return the label of an answer, its text, and the judge's reason."""
    if summary is None:
        return Content.styled("does not include this instance", DIM)
    appearance = outcome_appearance(benchmark, condition, summary.outcome, summary.label)
    lines = [literal(appearance, appearance.colour)]
    if summary.truncated:
        lines.append(Content.styled("! truncated at the token limit", PARTIAL))
    lines.append(literal(summary.answer, newlines=True) if summary.answer else Content.styled("(empty)", DIM))
    if summary.reason:
        lines.append(literal(summary.reason, DIM))
    return Content("\n").join(lines)


def label_cell(benchmark: Benchmark, condition: str, outcome: str) -> list[tuple[str, str]]:
    """Return a table cell for ``outcome``, a label or the reason why there is none."""
    appearance: Appearance
    if outcome in benchmark.labels:
        appearance = outcome_appearance(benchmark, condition, "labelled", outcome)
    else:
        appearance = outcome_appearance(benchmark, condition, outcome, None)
    return [(str(appearance), appearance.colour)]
