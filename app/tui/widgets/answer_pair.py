"""Two runs' answers to one instance, below its question and beside its picture."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from app.compare.differences.instance_comparison import AnswerSummary, InstanceComparison
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL, Appearance, outcome_appearance
from app.tui.widgets.sample_text import references_text
from app.tui.widgets.sample_view import SampleView, number_media
from app.tui.widgets.titled_panel import panel, set_panel_title
from benchmarks.base import Benchmark

_QUESTION_LIMIT = 400


class AnswerPair(SampleView):
    """A panel with an instance and two answers to it, set by :meth:`show_pair`."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(facts=False, id=id)
        self.can_focus = False
        panel(self)

    def show_message(self, message: Content) -> None:
        """Show a message instead of a sample."""
        set_panel_title(self, "")
        super().show_message(message)

    def show_pair(self, comparison: InstanceComparison, labels: Sequence[str], benchmark: Benchmark) -> None:
        """Show an instance; ``labels`` are the names of the two runs."""
        instance = comparison.instance
        set_panel_title(self, literal(instance.condition))
        lines = [references_text(instance.references.items())]
        for label, summary in zip(labels, comparison.answers, strict=True):
            lines += [Content(""), literal(label, "bold"), answer_text(summary, benchmark, instance.condition)]
        question = literal(instance.question, "bold", newlines=True, limit=_QUESTION_LIMIT)
        self.show(instance.id, question, number_media(comparison.media), Content("\n").join(lines))


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
