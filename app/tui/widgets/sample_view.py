"""SampleView: one sample: its media, answer, labels with reasons, references, siblings, the prompt as it was sent."""

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
from app.tui.theme import OUTCOMES, Appearance
from app.tui.widgets.picture import Picture
from benchmarks.base import SHOWN_TEXT, Media, Verdict
from benchmarks.text.answer_text import visible_answer
from judges.base import OVERRIDE

_SHORT = 2000
"""Characters of one text that are shown until all is asked for."""
_FEW = 4
"""More media than that are shown smaller."""
MOST_PICTURES = 8
"""So many of a sample's media are shown; a row of four videos as frames has 32."""


class SampleView(VerticalScroll):
    """One sample; :meth:`show` shows another. ``whole`` shows reasoning, raw replies and long texts in full."""

    DEFAULT_CSS = """
    SampleView { padding: 0 1; width: 1fr; height: 1fr; scrollbar-size: 1 1; }
    SampleView Static { height: auto; }
    SampleView ItemGrid { height: auto; grid-gutter: 0 2; }
    SampleView Picture { height: auto; }
    SampleView Picture > HalfCells, SampleView Picture > SixelImage, SampleView Picture > TGPImage { height: 14; }
    SampleView .-several Picture > HalfCells, SampleView .-several Picture > SixelImage,
    SampleView .-several Picture > TGPImage { height: 8; }
    SampleView .-many Picture > HalfCells, SampleView .-many Picture > SixelImage,
    SampleView .-many Picture > TGPImage, .-short SampleView Picture > HalfCells,
    .-short SampleView Picture > SixelImage, .-short SampleView Picture > TGPImage { height: 5; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.detail: SampleDetail | None = None
        self.whole = False
        self._facts, self._told = Static(id="facts"), Static(id="told")
        self._media = ItemGrid(id="media", min_column_width=30)
        self._pictures = [Picture(facts=True) for _ in range(MOST_PICTURES)]

    def compose(self) -> ComposeResult:
        yield self._facts
        with self._media:
            yield from self._pictures
        yield self._told

    def show(self, detail: SampleDetail | None) -> None:
        """Show a sample, or nothing."""
        again = self.detail is not None and detail is not None and detail.row.ordinal == self.detail.row.ordinal
        self.detail = detail
        told = [] if detail is None else list(_told(detail, self.whole))
        self._facts.update(_facts(detail) if detail else Content("no sample is chosen"))
        self._show_media(detail.media if detail else ())
        self._told.update(Content("\n").join(told))
        if not again:
            self.scroll_home(animate=False)

    def _show_media(self, media: Sequence[tuple[Media, Path | None]]) -> None:
        several = len(media) > 1
        self._media.set_class(several, "-several")
        self._media.set_class(many := len(media) > _FEW, "-many")
        self._media.min_column_width = 16 if many else 30
        for number, picture in enumerate(self._pictures):
            if number < len(media):
                picture.show(*media[number], f"{number + 1}  " if several else "")
            else:
                picture.show(None)

    def toggle_whole(self) -> None:
        """Show everything in full, or not any more."""
        self.whole = not self.whole
        self.show(self.detail)


def look_of(row: SampleRow) -> Appearance:
    """How a sample's state is shown: its label where it has one, with the glyph of right or wrong.

    A star is an override, an unequal sign a label that judges disagree on.
    """
    look = OUTCOMES[row.fate]
    marks = (" *" if row.overridden else "") + (" ≠" if row.disputed else "")
    return Appearance(look.glyph, (row.label or look.word) + marks, look.colour)


def _facts(detail: SampleDetail) -> Content:
    row, strata = detail.row, detail.record.instance.strata
    look = look_of(row)
    lines = [
        literal(look, f"bold {look.colour}") + Content("  ") + literal(row.condition, "bold"),
        literal(row.id, "#909090", limit=300),
        literal("  ".join(f"{key}: {value}" for key, value in strata.items()), "#909090", limit=600),
    ]
    return Content("\n").join(line for line in lines if line.plain)


def _told(detail: SampleDetail, whole: bool) -> Iterator[Content]:
    record = detail.record
    limit = 200_000 if whole else _SHORT
    if len(detail.media) > MOST_PICTURES:
        yield Content.styled(f"and {len(detail.media) - MOST_PICTURES} more media, which v opens outside", "#909090")
    yield _heading("Answer")
    yield from _answer(detail, whole, limit)
    if record.basis is not None:
        yield _heading("Its own answer, by which this one is judged")
        yield literal(visible_answer(record.basis.text), limit=limit, newlines=True)
    yield _heading("Labels")
    if not record.verdicts:
        yield Content.styled("none yet", "#909090")
    for judge in sorted(record.verdicts, key=lambda judge: (not judge.startswith(OVERRIDE), judge)):
        yield from _verdict(record.verdicts[judge], whole, limit)
    yield _heading("References")
    for source, values in record.instance.references.items():
        if not source.startswith(SHOWN_TEXT):
            yield literal(f"{source}: ", "bold", limit=100) + literal(" | ".join(values), limit=limit)
    if len(detail.siblings) > 1:
        yield _heading("The same example ([ and ] go there)")
        names = _names(detail.siblings)
        width = max(len(name) for name in names)
        for row, name in zip(detail.siblings, names, strict=True):
            look, here = look_of(row), row.ordinal == detail.row.ordinal
            yield (
                Content("> " if here else "  ")
                + literal(f"{name:{min(width, 40)}}  ", "bold" if here else "", limit=60)
                + literal(look, look.colour, limit=60)
                + literal(f"  {row.answer[:40]}", "#909090")
            )
    places = {media: place for place, (media, _) in enumerate(detail.media, start=1)}
    for number, messages in enumerate(detail.steps, start=1):
        yield _heading("The prompt as sent" + (f", step {number}" if len(detail.steps) > 1 else ""))
        for message in messages:
            if len(messages) > 1:
                yield literal(f"{message.role}:", "bold")
            yield literal("".join(_part(part, places) for part in message.parts), limit=limit, newlines=True)
    for remark in detail.remarks:
        yield literal(remark, "#909090", newlines=True)


def _names(rows: Sequence[SampleRow]) -> list[str]:
    """The conditions; of one that an example has twice also how the instance's name ends, as in "image-only wrong"."""
    conditions = [row.condition for row in rows]
    return [
        f"{row.condition} {row.id.rpartition('/')[2]}" if conditions.count(row.condition) > 1 else row.condition
        for row in rows
    ]


def _answer(detail: SampleDetail, whole: bool, limit: int) -> Iterator[Content]:
    for number, made in enumerate(detail.record.generations, start=1):
        if len(detail.record.generations) > 1:
            yield Content.styled(f"step {number}", "bold")
        if made.finish_reason == "error":
            yield literal(f"! error: {made.error or 'not told'}", OUTCOMES["error"].colour, newlines=True)
            continue
        visible = visible_answer(made.text)
        yield literal(visible, limit=limit, newlines=True) if visible else Content.styled("(empty)", "#909090")
        hidden = len(made.text.strip()) - len(visible)
        if hidden > 0 and whole:
            yield Content.styled("with its reasoning:", "#909090")
            yield literal(made.text, "#909090", limit=limit, newlines=True)
        elif hidden > 0:
            yield Content.styled(f"({hidden:,} characters of reasoning are left out; t shows all)", "#909090")
        facts = [] if made.completion_tokens is None else [f"{made.completion_tokens} tokens"]
        if made.prefill_s is not None or made.decode_s is not None:
            facts.append(f"{(made.prefill_s or 0) + (made.decode_s or 0):.1f} s")
        if made.finish_reason == "length":
            yield Content.styled(" ".join(["! cut at the token limit", *facts]), OUTCOMES["error"].colour)
        elif facts:
            yield Content.styled(", ".join(facts), "#909090")
    if not detail.record.generations:
        yield Content.styled("not answered yet", "#909090")


def _verdict(verdict: Verdict, whole: bool, limit: int) -> Iterator[Content]:
    said = verdict.label or verdict.status
    flags = f" ({', '.join(verdict.flags)})" if verdict.flags else ""
    yield (
        literal(f"{verdict.judge}: ", "bold", limit=120)
        + literal(f"{said}{flags}", limit=200)
        + literal(f"  {verdict.reason}", "#909090", limit=limit, newlines=True)
    )
    if verdict.raw is not None and whole:
        yield literal(f"  replied: {verdict.raw}", "#909090", limit=limit, newlines=True)
    elif verdict.raw is not None:
        yield Content.styled("  (t shows its raw reply)", "#909090")


def _part(part: object, places: Mapping[Media, int]) -> str:
    if isinstance(part, Media):
        marks = f", {len(part.marks)} marks drawn" if part.marks else ""
        place = f"{places[part]}, " if len(places) > 1 else ""
        return f"[{part.modality.upper()} {place}{part.sha256[:8]}{marks}]\n"
    return str(getattr(part, "text", ""))


def _heading(text: str) -> Content:
    return Content(f"\n{text}").stylize("bold #56b4e9")
