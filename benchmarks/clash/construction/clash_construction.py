"""The construction of section 3.2 from COCO captions: a writing model, automatic checks, a checking model.

A caption's steps are a generator that yields its requests and is sent the replies (:func:`_steps`). Captions go in waves,
and the pending requests of a wave are sent in a batch. The result depends only on the replies, not on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.clash.clash_categories import join_categories, shared_categories
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.construction.caption_checks import (
    ANSWER_CHECKS,
    CAPTION_CHECKS,
    CHANGE_CHECKS,
    FINAL_CHECKS,
    CaptionDraft,
)
from benchmarks.clash.construction.caption_dialogue import (
    CaptionDialogue,
    CaptionSteps,
    ConstructionModels,
    ModelRequest,
    ModelRole,
    RejectedCaption,
    run_checks,
)
from benchmarks.clash.construction.clash_construction_sets import PrintedPrompts, construction_prompts
from benchmarks.clash.sources.clash_source_row import parse_sample
from benchmarks.clash.sources.coco_captions import Caption, CocoFolder, UnusableCaption, read_caption_image
from benchmarks.media import MISSING
from benchmarks.rows.reader_types import RowProblem
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.json_replies import line_field, read_object
from benchmarks.vocabulary import Generation, JSONObject, Media

_SMALLEST_WAVE, _LARGEST_WAVE = 8, 64

ENOUGH = "enough"
"""The reason for a caption that is not wanted any more."""

NO_CHANGE = "no-change"
"""The reason for a caption that the writer leaves as it is, as the official prompt lets it."""

_UNCHECKED = (ENOUGH, NO_CHANGE, "unparsed", "error")
"""The reasons that say nothing about a sample's quality."""


@dataclass(frozen=True, slots=True)
class RejectedSample:
    """A complete sample that a check rejected, and the bytes and the suffix of its image."""

    sample: ClashSample
    data: bytes
    suffix: str


def construct(folder: Path, writer: BuildWriter, options: BuildOptions) -> Iterator[ClashSample | RejectedSample]:
    """Yield the samples of the COCO captions in ``folder``: up to ``options.per_stratum`` accepted ones a kind of change.

    One caption per image, in an order that the seed decides. All rejections are recorded with ``writer.add_skipped``; each
    reason begins with the name of the check. Raises SpecError without a writing model, SourceError if the folder is not
    COCO's, RashomonError if a model stops answering; the next build reuses the replies so far.
    """
    models, prompts = ConstructionModels.of(options), construction_prompts(options)
    quotas = dict.fromkeys(CHANGE_CHECKS, options.per_stratum)
    captions = CocoFolder(folder).captions(options.seed)
    return collect_samples("coco", captions, _steps(options.seed, prompts), quotas, models, writer)


def collect_samples(
    source: str,
    captions: Iterator[Caption | UnusableCaption],
    steps: Callable[[Caption, Collection[str]], CaptionSteps],
    quotas: dict[str, int],
    models: ConstructionModels,
    writer: BuildWriter,
    stratum: Callable[[CaptionDraft], str] = lambda draft: draft.change_type,
) -> Iterator[ClashSample | RejectedSample]:
    """Yield samples, wave by wave, until the ``quotas`` of all strata are filled or the captions run out.

    ``steps`` receives the caption and the strata that are full. ``quotas`` are counted down as samples are accepted;
    ``captions`` sees the change only between waves.
    """
    while any(quotas.values()):
        # Not many more than are still needed, so that few paid replies go unused.
        size = max(_SMALLEST_WAVE, min(_LARGEST_WAVE, 2 * sum(quotas.values())))
        wave = list(_next(captions, size, source, writer))
        if not wave:
            return
        full = frozenset(name for name, quota in quotas.items() if not quota)
        outcomes = _run_batch([steps(caption, full) for caption in wave], models)
        for caption, outcome in zip(wave, outcomes, strict=True):
            if isinstance(outcome, RejectedCaption):
                writer.add_skipped(source, caption.row, str(outcome))
                if rejected_sample := _rejected(source, caption, outcome, stratum):
                    yield rejected_sample
                continue
            kind = stratum(outcome)
            picture = read_caption_image(caption)
            if not quotas[kind]:
                writer.add_skipped(source, caption.row, str(_enough(kind, outcome)))
            elif picture is None:
                writer.add_skipped(source, caption.row, f"the image {MISSING}")
            else:
                quotas[kind] -= 1
                yield _sample(source, caption, outcome, writer.add_media(*picture), kind)


def _rejected(
    source: str, caption: Caption, rejection: RejectedCaption, stratum: Callable[[CaptionDraft], str]
) -> RejectedSample | None:
    """Return the sample of a rejected caption; None if it is incomplete or could be no sample of anyone's."""
    draft = rejection.draft
    if draft is None or not draft.distractor or rejection.check in _UNCHECKED:
        return None
    sample = replace(_sample(source, caption, draft, None, stratum(draft)), rejected=rejection.check)
    try:
        parse_sample(sample.to_row(), source, unfiltered=True)
    except RowProblem:
        return None
    picture = read_caption_image(caption)
    return RejectedSample(sample, *picture) if picture is not None else None


def _steps(seed: int, prompts: PrintedPrompts) -> Callable[[Caption, Collection[str]], CaptionSteps]:
    def steps(caption: Caption, full: Collection[str]) -> CaptionSteps:
        dialogue = CaptionDialogue(f"clash-coco-{caption.image_id}-{caption.number}", seed, prompts)
        text = prompts.caption(caption.text)
        draft = yield from dialogue.ask("writer", text, None, lambda reply: _changed(caption.text, reply, prompts))
        run_checks(CAPTION_CHECKS, draft)
        if draft.change_type in full:
            raise _enough(draft.change_type, draft)
        yield from dialogue.check(CHANGE_CHECKS[draft.change_type], draft)
        parsed_draft = _answered(draft)
        draft = yield from dialogue.ask("writer", prompts.answers(draft), _ANSWERS_FORM, parsed_draft, draft)
        run_checks(ANSWER_CHECKS, draft)
        for final in FINAL_CHECKS:
            yield from dialogue.check(final, draft)
        return draft

    return steps


_ANSWERS_FORM = JSONObject({"image_only": (), "text_only": (), "irrelevant_but_plausible": ()})


def _changed(caption: str, reply: str, prompts: PrintedPrompts) -> CaptionDraft:
    if prompts.gives_up(visible_answer(reply)):
        raise RejectedCaption(NO_CHANGE, "the writer sees no change that the prompt allows", reply=reply)
    fields = read_object(reply)
    return CaptionDraft(
        original_caption=caption,
        conflicting_caption=line_field(fields, "conflicting_caption"),
        question=line_field(fields, "question"),
        change_type=line_field(fields, "change_type").casefold(),
        original=line_field(fields, "changed_words", "original"),
        conflicting=line_field(fields, "changed_words", "conflicting"),
    )


def _answered(draft: CaptionDraft) -> Callable[[str], CaptionDraft]:
    def read(reply: str) -> CaptionDraft:
        fields = read_object(reply)
        answers = (line_field(fields, name) for name in _ANSWERS_FORM.properties)
        return replace(draft, **dict(zip(("image_only", "text_only", "distractor"), answers, strict=True)))

    return read


def _enough(kind: str, draft: CaptionDraft) -> RejectedCaption:
    return RejectedCaption(ENOUGH, f"no more {kind} changes are wanted", draft)


def _next(
    captions: Iterator[Caption | UnusableCaption], limit: int, source: str, writer: BuildWriter
) -> Iterator[Caption]:
    for caption in captions:
        if isinstance(caption, UnusableCaption):
            writer.add_skipped(source, caption.row, caption.reason)
            continue
        yield caption
        limit -= 1
        if not limit:
            return


def _run_batch(runs: Iterable[CaptionSteps], models: ConstructionModels) -> list[CaptionDraft | RejectedCaption]:
    """Return the outcome of each caption's steps.

    Requests go out in rounds, to one model as long as any caption needs it, so that a local machine switches models as
    rarely as possible.
    """
    unfinished = dict(enumerate(runs))
    outcomes: dict[int, CaptionDraft | RejectedCaption] = {}
    asks: dict[int, ModelRequest] = {}
    replies: dict[int, Generation | None] = dict.fromkeys(unfinished)
    role: ModelRole = "writer"
    while replies:
        for i, reply in replies.items():
            asks.pop(i, None)
            try:
                asks[i] = next(unfinished[i]) if reply is None else unfinished[i].send(reply)
            except StopIteration as end:
                outcomes[i] = end.value
            except RejectedCaption as rejected:
                outcomes[i] = rejected
        if not any(ask.role == role for ask in asks.values()):
            role = "checker" if role == "writer" else "writer"
        selected = [i for i, ask in asks.items() if ask.role == role]
        replies = dict(zip(selected, models.ask([asks[i] for i in selected]), strict=True))
    return [outcomes[i] for i in sorted(outcomes)]


def _sample(source: str, caption: Caption, draft: CaptionDraft, image: Media | None, kind: str) -> ClashSample:
    names = shared_categories(draft.change_type, draft.original, draft.conflicting)
    return ClashSample(
        image_id=str(caption.image_id),
        image=image,
        original_caption=draft.original_caption,
        conflicting_caption=draft.conflicting_caption,
        question=draft.question,
        change_type=draft.change_type,
        image_only=draft.image_only,
        text_only=draft.text_only,
        distractor=draft.distractor,
        changed_original=draft.original,
        changed_conflicting=draft.conflicting,
        category=join_categories(names, draft.change_type),
        source=source,
        relation=kind if draft.change_type == "spatial" else "",
    )
