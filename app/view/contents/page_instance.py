"""An instance with the answer of each run, for display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.json_output.samples_json import VerdictJson
from app.report.samples.sample_detail import SampleDetail
from app.store.sample_lists import SampleRow
from app.text.text_escaping import clean
from app.view.contents.page_media import MediaFile, MediaFiles
from app.view.contents.page_types import (
    LONGEST,
    PromptMessage,
    PromptPart,
    Repeat,
    Sibling,
    ViewedAnswer,
    ViewedInstance,
)
from benchmarks.protocols.repeats import REPEAT
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import FOR_POLICIES, Generation, Media, Message, Origin, Part, Record, Verdict
from judges.human_labels_and_samples import blind_id

_LONGEST_PROMPT = 200_000
"""The characters of a text of a prompt that are displayed."""

_LONGEST_NAME = 24
"""The characters of an id's end that can name an instance."""

Prompt = tuple[tuple[PromptMessage, ...], ...]


@dataclass(frozen=True)
class RunAnswer:
    """A run's answer as it was read, with the other answers to the question."""

    detail: SampleDetail
    record: Record
    judge: str | None
    """The id of the judge whose label counts; None without a verdict."""
    row: SampleRow
    repeats: tuple[Repeat, ...]
    error: str | None
    """The answer's error without the folders of this machine."""


def sibling_names(ids: Sequence[str], conditions: Sequence[str]) -> list[str]:
    """Return a name for each instance of an example: its condition, and where others share it, the last part of its id."""
    ends = [id_.rpartition("/")[2] for id_ in ids]
    numbers, counts = Counter(zip(conditions, ends, strict=True)), Counter(conditions)
    positions: Counter[str] = Counter()
    names = []
    for end, condition in zip(ends, conditions, strict=True):
        positions[condition] += 1
        is_own = counts[condition] > 1 and numbers[condition, end] == 1 and not end.startswith(condition)
        if is_own and 0 < len(end) <= _LONGEST_NAME:
            names.append(f"{condition}: {clean(end)}")
        else:  # repetitions are numbered
            names.append(condition if positions[condition] == 1 else f"{condition} {positions[condition]}")
    return names


def display(text: str, limit: int = LONGEST) -> str:
    """Return a text for display, cut after ``limit`` characters."""
    text = clean(text[: limit + 1], newlines=True)
    return text if len(text) <= limit else f"{text[:limit]}\n... (cut here)"


def answer_text(record: Record) -> str:
    """Return the answer of a record for display, in full; empty where it is an error, or there is none."""
    answer = record.answer
    if answer is None or answer.finish_reason == "error":
        return ""
    return clean(visible_answer(answer.text), newlines=True)


def viewed_instance(
    number: int,
    siblings: Sequence[Sibling],
    answers: Sequence[RunAnswer | ViewedAnswer | None],
    media_files: MediaFiles,
) -> ViewedInstance | None:
    """Return an instance with the answers of all runs; None if none could be read.

    An answer that could not be read is displayed as it is given.
    """
    first = next((answer for answer in answers if isinstance(answer, RunAnswer)), None)
    if first is None:
        return None
    files: dict[Media, MediaFile] = {}
    for answer in answers:
        if isinstance(answer, RunAnswer):
            for medium, path in answer.detail.media:
                if medium not in files or (path is not None and files[medium].path is None):
                    files[medium] = MediaFile(medium, answer.detail.build)
    places = {medium: place for place, medium in enumerate(files)}
    instance, prompt = first.record.instance, _prompt(first.detail.steps, places)
    return ViewedInstance(
        number=number,
        id=clean(instance.id),
        condition=clean(instance.condition),
        question=display(instance.question),
        strata={clean(key): clean(value) for key, value in instance.strata.items() if key != REPEAT},
        references={
            clean(source): tuple(map(display, values))
            for source, values in instance.references.items()
            if not source.startswith(FOR_POLICIES)
        },
        media=tuple(media_files.describe(file) for file in files.values()),
        prompt=prompt,
        siblings=tuple(siblings),
        answers=tuple(
            _viewed_answer(answer, places, prompt, is_first=answer is first)
            if isinstance(answer, RunAnswer)
            else answer
            for answer in answers
        ),
    )


def unreadable_answer(outcome: str, message: str) -> ViewedAnswer:
    """Return an answer that cannot be read, with the message as its error."""
    return ViewedAnswer(
        id="",
        outcome=outcome,  # type: ignore[arg-type]
        label=None,
        judge="",
        reason="",
        behaviour=None,
        answer="",
        length=0,
        reasoning="",
        error=message,
        truncated=False,
        overridden=False,
        completion_tokens=None,
        prompt_tokens=None,
        seconds=None,
        origin=None,
        own_answer=None,
        prompt=(),
        verdicts={},
        remarks=(),
        repeats=(),
    )


def _viewed_answer(read: RunAnswer, places: Mapping[Media, int], first: Prompt, *, is_first: bool) -> ViewedAnswer:
    record, row = read.record, read.row
    answer = record.answer
    verdict = None if read.judge is None else record.verdicts.get(read.judge)
    text = answer_text(record)
    prompt = () if is_first else _prompt(read.detail.steps, places)
    basis = record.basis
    return ViewedAnswer(
        id=blind_id(record),
        outcome=row.outcome,
        label=clean(row.label) if row.label is not None and row.outcome in ("right", "wrong") else None,
        judge=clean(read.judge or ""),
        reason="" if verdict is None else display(verdict.reason),
        behaviour=None if verdict is None or verdict.behaviour is None else clean(verdict.behaviour),
        answer=text[:LONGEST],
        length=len(text),
        reasoning=_reasoning(record.generations),
        error=display(read.error or "unknown") if answer is not None and answer.finish_reason == "error" else None,
        truncated=record.is_cut_off,
        overridden=row.overridden,
        completion_tokens=None if answer is None else answer.completion_tokens,
        prompt_tokens=None if answer is None else answer.prompt_tokens,
        seconds=None if answer is None else _seconds(answer),
        origin=None if answer is None else _origin(answer.origin),
        own_answer=None if basis is None else display(visible_answer(basis.text)),
        prompt=() if prompt == first else prompt,
        verdicts={clean(judge): _verdict(verdict) for judge, verdict in record.verdicts.items()},
        remarks=tuple(display(remark) for remark in read.detail.remarks),
        repeats=read.repeats,
    )


def _origin(origin: Origin | None) -> Origin | None:
    if origin is None:
        return None
    return Origin(clean(origin.run), clean(origin.name), clean(origin.instance), origin.same)


def _verdict(verdict: Verdict) -> VerdictJson:
    return VerdictJson(
        status=verdict.status,
        label=None if verdict.label is None else clean(verdict.label),
        reason=display(verdict.reason),
        raw=None if verdict.raw is None else display(verdict.raw),
        behaviour=None if verdict.behaviour is None else clean(verdict.behaviour),
    )


def _seconds(answer: Generation) -> float | None:
    if answer.prefill_s is None and answer.decode_s is None:
        return None
    return (answer.prefill_s or 0) + (answer.decode_s or 0)


def _reasoning(generations: Sequence[Generation]) -> str:
    """Return the replies of all steps but the last, and what of the last one is not the answer."""
    earlier = [f"Step {step}: {generation.text}" for step, generation in enumerate(generations[:-1], 1)]
    if not generations or generations[-1].finish_reason == "error":
        return display("\n\n".join(earlier))
    text = generations[-1].text.strip()
    answer = visible_answer(text)
    rest = text if not answer or not text.endswith(answer) else text[: len(text) - len(answer)]
    return display("\n\n".join([*earlier, *([rest.strip()] if rest.strip() else [])]))


def _prompt(steps: Sequence[Sequence[Message]], places: Mapping[Media, int]) -> Prompt:
    return tuple(tuple(_message(message, places) for message in messages) for messages in steps)


def _message(message: Message, places: Mapping[Media, int]) -> PromptMessage:
    return PromptMessage(role=message.role, parts=tuple(_part(part, places) for part in message.parts))


def _part(part: Part, places: Mapping[Media, int]) -> PromptPart:
    if isinstance(part, Media):
        return PromptPart(medium=places[part])
    return PromptPart(text=display(part.text, _LONGEST_PROMPT))
