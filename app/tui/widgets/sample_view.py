"""View of one record: media, answer, labels with reasons, references, siblings, and the prompt as sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import ItemGrid, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.sample_detail import SampleDetail
from app.store.samples import SampleRow
from app.tui.hostile_text import literal
from app.tui.theme import DIM, HEADING, OUTCOMES, Appearance
from app.tui.widgets.picture import Picture
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import SHOWN_TEXT, Generation, Media, Verdict
from judges.base import OVERRIDE

_SHORT_LIMIT = 2000
"""Characters of one text on display while the view is not expanded."""
_FULL_LIMIT = 200_000
_FEW = 4
"""The number of media up to which they are displayed at full size."""
MAX_PICTURES = 8
"""The number of media on display; an instance of four videos as frames has 32."""


class SampleView(VerticalScroll):
    """One record, set by :meth:`show`; ``expanded`` shows reasoning, raw replies and long texts in full."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.detail: SampleDetail | None = None
        self.expanded = False
        self._facts, self._text = Static(id="facts"), Static(id="text")
        self._media = ItemGrid(id="media", min_column_width=30)
        self._pictures = [Picture(facts=True) for _ in range(MAX_PICTURES)]

    def compose(self) -> ComposeResult:
        yield self._facts
        with self._media:
            yield from self._pictures
        yield self._text

    def show(self, detail: SampleDetail | None) -> None:
        """Show a record, or nothing."""
        same = self.detail is not None and detail is not None and detail.row.ordinal == self.detail.row.ordinal
        self.detail = detail
        lines = [] if detail is None else list(_lines(detail, self.expanded))
        self._facts.update(_facts(detail) if detail else Content("no answer selected"))
        self._show_media(detail.media if detail else ())
        self._text.update(Content("\n").join(lines))
        if not same:
            self.scroll_home(animate=False)

    def _show_media(self, media: Sequence[tuple[Media, Path | None]]) -> None:
        several = len(media) > 1
        self._media.set_class(several, "-several")
        self._media.set_class(has_many := len(media) > _FEW, "-many")
        self._media.min_column_width = 16 if has_many else 30
        for number, picture in enumerate(self._pictures):
            if number < len(media):
                picture.show(*media[number], f"{number + 1}  " if several else "")
            else:
                picture.show(None)

    def toggle_expanded(self) -> None:
        """Expand or collapse the view."""
        self.expanded = not self.expanded
        self.show(self.detail)


def sample_appearance(row: SampleRow) -> Appearance:
    """Return the appearance of a record's outcome: its label if it has one, with the glyph of right or wrong.

    A star marks an override, an unequal sign a label on which judges disagree.
    """
    outcome = OUTCOMES[row.outcome]
    marks = (" *" if row.overridden else "") + (" ≠" if row.disputed else "")
    return Appearance(outcome.glyph, (row.label or outcome.word) + marks, outcome.colour)


def _facts(detail: SampleDetail) -> Content:
    row, strata = detail.row, detail.record.instance.strata
    appearance = sample_appearance(row)
    lines = [
        literal(appearance, f"bold {appearance.colour}") + Content("  ") + literal(row.condition, "bold"),
        literal(row.id, DIM, limit=300),
        literal("  ".join(f"{key}: {value}" for key, value in strata.items()), DIM, limit=600),
    ]
    return Content("\n").join(line for line in lines if line.plain)


def _lines(detail: SampleDetail, expanded: bool) -> Iterator[Content]:
    record = detail.record
    limit = _FULL_LIMIT if expanded else _SHORT_LIMIT
    if len(detail.media) > MAX_PICTURES:
        yield Content.styled(f"and {len(detail.media) - MAX_PICTURES} more media (v opens them)", DIM)
    yield _heading("Answer")
    yield from _answer(detail, expanded, limit)
    if record.basis is not None:
        yield _heading("The model's own answer, on which this verdict is based")
        yield literal(visible_answer(record.basis.text), limit=limit, newlines=True)
    yield _heading("Labels")
    if not record.verdicts:
        yield Content.styled("none yet", DIM)
    for judge in sorted(record.verdicts, key=lambda judge: (not judge.startswith(OVERRIDE), judge)):
        yield from _verdict(record.verdicts[judge], expanded, limit)
    yield _heading("References")
    for source, values in record.instance.references.items():
        if not source.startswith(SHOWN_TEXT):
            yield literal(f"{source}: ", "bold", limit=100) + literal(" | ".join(values), limit=limit)
    if len(detail.siblings) > 1:
        yield from _siblings(detail)
    places = {media: place for place, (media, _) in enumerate(detail.media, start=1)}
    for number, messages in enumerate(detail.steps, start=1):
        yield _heading("The prompt as sent" + (f", step {number}" if len(detail.steps) > 1 else ""))
        for message in messages:
            if len(messages) > 1:
                yield literal(f"{message.role}:", "bold")
            yield literal("".join(_part(part, places) for part in message.parts), limit=limit, newlines=True)
    for remark in detail.remarks:
        yield literal(remark, DIM, newlines=True)


def _siblings(detail: SampleDetail) -> Iterator[Content]:
    yield _heading("Same example ([ and ] switch)")
    names = _names(detail.siblings)
    width = max(len(name) for name in names)
    for row, name in zip(detail.siblings, names, strict=True):
        appearance, current = sample_appearance(row), row.ordinal == detail.row.ordinal
        yield (
            Content("> " if current else "  ")
            + literal(f"{name:{min(width, 40)}}  ", "bold" if current else "", limit=60)
            + literal(appearance, appearance.colour, limit=60)
            + literal(f"  {row.answer[:40]}", DIM)
        )


def _names(rows: Sequence[SampleRow]) -> list[str]:
    """Return the conditions; one that occurs twice gets the end of the instance's id, as in "image-only wrong"."""
    conditions = [row.condition for row in rows]
    return [
        f"{row.condition} {row.id.rpartition('/')[2]}" if conditions.count(row.condition) > 1 else row.condition
        for row in rows
    ]


def _answer(detail: SampleDetail, expanded: bool, limit: int) -> Iterator[Content]:
    generations = detail.record.generations
    for number, generation in enumerate(generations, start=1):
        if len(generations) > 1:
            yield Content.styled(f"step {number}", "bold")
        yield from _generation(generation, expanded, limit)
    if not generations:
        yield Content.styled("not answered yet", DIM)


def _generation(generation: Generation, expanded: bool, limit: int) -> Iterator[Content]:
    if generation.finish_reason == "error":
        yield literal(f"! error: {generation.error or 'unknown'}", OUTCOMES["error"].colour, newlines=True)
        return
    visible = visible_answer(generation.text)
    yield literal(visible, limit=limit, newlines=True) if visible else Content.styled("(empty)", DIM)
    hidden_characters = len(generation.text.strip()) - len(visible)
    if hidden_characters > 0 and expanded:
        yield Content.styled("with its reasoning:", DIM)
        yield literal(generation.text, DIM, limit=limit, newlines=True)
    elif hidden_characters > 0:
        yield Content.styled(f"({hidden_characters:,} characters of reasoning hidden; t shows them)", DIM)
    facts = [] if generation.completion_tokens is None else [f"{generation.completion_tokens} tokens"]
    if generation.prefill_s is not None or generation.decode_s is not None:
        facts.append(f"{(generation.prefill_s or 0) + (generation.decode_s or 0):.1f} s")
    if generation.finish_reason == "length":
        yield Content.styled(" ".join(["! truncated at the token limit", *facts]), OUTCOMES["error"].colour)
    elif facts:
        yield Content.styled(", ".join(facts), DIM)


def _verdict(verdict: Verdict, expanded: bool, limit: int) -> Iterator[Content]:
    label = verdict.label or verdict.status
    flags = f" ({', '.join(verdict.flags)})" if verdict.flags else ""
    yield (
        literal(f"{verdict.judge}: ", "bold", limit=120)
        + literal(f"{label}{flags}", limit=200)
        + literal(f"  {verdict.reason}", DIM, limit=limit, newlines=True)
    )
    if verdict.raw is not None and expanded:
        yield literal(f"  raw reply: {verdict.raw}", DIM, limit=limit, newlines=True)
    elif verdict.raw is not None:
        yield Content.styled("  (t shows the raw reply)", DIM)


def _part(part: object, places: Mapping[Media, int]) -> str:
    if isinstance(part, Media):
        marks = f", {len(part.marks)} marks drawn" if part.marks else ""
        place = f"{places[part]}, " if len(places) > 1 else ""
        return f"[{part.modality.upper()} {place}{part.sha256[:8]}{marks}]\n"
    return str(getattr(part, "text", ""))


def _heading(text: str) -> Content:
    return Content(f"\n{text}").stylize(f"bold {HEADING}")
