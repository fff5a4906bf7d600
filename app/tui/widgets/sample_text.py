"""Texts of a sample: references, answers, labels with their reasons, and the prompt as sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from textual.content import Content

from app.report.samples.reference_lines import reference_lines
from app.report.samples.sample_detail import SampleDetail
from app.report.samples.sample_rows import origin_clause
from app.store.sample_lists import SampleRow
from app.tui.hostile_text import literal
from app.tui.theme import DIM, HEADING, OUTCOMES, Appearance, outcome_appearance
from benchmarks.answer_quality import is_cut_reasoning
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.reasoning import read_reply
from benchmarks.vocabulary import Generation, Media, Verdict

_SHORT_LIMIT = 2000
"""Characters of one text on display while the sample is not expanded."""
_FULL_LIMIT = 200_000


def heading(text: str) -> Content:
    """Return a heading with an empty line above; ``text`` may be hostile."""
    return literal(f"\n{text}", f"bold {HEADING}", newlines=True)


def sample_appearance(row: SampleRow) -> Appearance:
    """Return the appearance of a record's outcome: its label if it has one, with the glyph of right or wrong.

    A star marks an override, an unequal sign a label on which judges disagree.
    """
    outcome = OUTCOMES[row.outcome]
    marks = (" *" if row.overridden else "") + (" ≠" if row.disputed else "")
    return Appearance(outcome.glyph, (row.label or outcome.word) + marks, outcome.colour)


def references_text(references: Iterable[tuple[str, Sequence[str]]], *, limit: int = _SHORT_LIMIT) -> Content:
    """Return a line for each source, such as "image says 88", or "text says red (B)" for an option with its letter."""
    lines = reference_lines(references)
    width = min(24, max((len(name) for name, _, _ in lines), default=0))
    return Content("\n").join(
        literal(f"{name:{width}}  ", DIM, limit=60)
        + literal(value, "bold", limit=limit, newlines=True)
        + literal(f" ({letter})" if letter else "", limit=60)
        for name, value, letter in lines
    )


def question_text(detail: SampleDetail, expanded: bool) -> Content:
    """Return the question of a sample."""
    return literal(detail.record.instance.question, "bold", limit=_limit(expanded), newlines=True)


def sample_text(detail: SampleDetail, expanded: bool) -> Content:
    """Return the texts of a sample after its question; ``expanded`` includes reasoning, raw replies and long texts."""
    return Content("\n").join(_lines(detail, expanded))


def _limit(expanded: bool) -> int:
    return _FULL_LIMIT if expanded else _SHORT_LIMIT


def _lines(detail: SampleDetail, expanded: bool) -> Iterator[Content]:
    record, limit = detail.record, _limit(expanded)
    yield references_text(record.instance.references.items(), limit=limit)
    yield heading("Answer")
    yield from _answer(detail, expanded, limit)
    if record.basis is not None:
        yield heading("The model's own answer, on which this verdict is based")
        yield literal(visible_answer(record.basis.text), limit=limit, newlines=True)
    yield heading("Label")
    yield from _labels(detail, expanded, limit)
    yield heading("Instance")
    yield literal(record.instance.id, DIM, limit=300)
    strata = record.instance.strata
    if strata:
        yield literal("  ".join(f"{key}: {value}" for key, value in strata.items()), DIM, limit=600)
    places = {media: place for place, (media, _) in enumerate(detail.media, start=1)}
    for number, messages in enumerate(detail.steps, start=1):
        yield heading("Prompt as sent" + (f", step {number}" if len(detail.steps) > 1 else ""))
        for message in messages:
            if len(messages) > 1:
                yield literal(f"{message.role}:", "bold")
            yield literal("".join(_part(part, places) for part in message.parts), limit=limit, newlines=True)
    for remark in detail.remarks:
        yield literal(remark, DIM, newlines=True)


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
    visible, reasons = reply = read_reply(generation.text)
    cut = is_cut_reasoning(generation.text, reply, generation.finish_reason, len(generation.tokens))
    none = "(no answer: cut while reasoning)" if cut else "(no answer: only reasoning)" if reasons else "(empty)"
    yield literal(visible, limit=limit, newlines=True) if visible else Content.styled(none, DIM)
    hidden_characters = len(generation.text.strip()) - len(visible)
    if hidden_characters > 0 and expanded:
        yield Content.styled("with its reasoning:" if reasons else "as it was generated:", DIM)
        yield literal(generation.text, DIM, limit=limit, newlines=True)
    elif hidden_characters > 0:
        what = "of reasoning" if reasons else "around the answer"
        yield Content.styled(f"({hidden_characters:,} characters {what} hidden; t shows them)", DIM)
    facts = [] if generation.completion_tokens is None else [f"{generation.completion_tokens} tokens"]
    if generation.prefill_s is not None or generation.decode_s is not None:
        facts.append(f"{(generation.prefill_s or 0) + (generation.decode_s or 0):.1f} s")
    if generation.origin is not None:
        yield literal(origin_clause(generation.origin), DIM)
    if generation.finish_reason == "length":
        yield Content.styled(" ".join(["! truncated at the token limit", *facts]), OUTCOMES["error"].colour)
    elif facts:
        yield Content.styled(", ".join(facts), DIM)


def _labels(detail: SampleDetail, expanded: bool, limit: int) -> Iterator[Content]:
    """Yield the verdicts, the one that counts first."""
    record, judges = detail.record, detail.judges
    if not record.verdicts:
        yield Content.styled("none yet", DIM)
    ranks = {judge: rank for rank, judge in enumerate(judges)}
    counting = next((judge for judge in judges if judge in record.verdicts), None)
    for judge in sorted(record.verdicts, key=lambda judge: (ranks.get(judge, len(ranks)), judge)):
        verdict, condition = record.verdicts[judge], record.instance.condition
        appearance = outcome_appearance(
            detail.benchmark, condition, record.outcome(judge), verdict.label, verdict.behaviour
        )
        if judge == counting:
            appearance = sample_appearance(detail.row)  # with the marks of the list
        yield from _verdict(verdict, appearance, expanded, limit)


def _verdict(verdict: Verdict, appearance: Appearance, expanded: bool, limit: int) -> Iterator[Content]:
    flags = f" ({', '.join(verdict.flags)})" if verdict.flags else ""
    yield (
        literal(appearance, f"bold {appearance.colour}", limit=200)
        + literal(f"{flags}  ", limit=200)
        + literal(verdict.judge, limit=120)
        + literal(f": {verdict.reason}" if verdict.reason else "", DIM, limit=limit, newlines=True)
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
