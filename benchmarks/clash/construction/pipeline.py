"""The construction of section 3.2 from COCO captions: a writing model, automatic checks, a checking model.

A caption's way is a generator that yields what it asks and is sent the reply (:func:`_way`). Captions go in waves, and all
that a wave asks at one time is asked together, so that several requests are under way; what comes out depends on the
replies alone, not on the order they arrive in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.base import Generation, JSONObject, Media
from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.clash.categories import categories, joined
from benchmarks.clash.construction.checks import (
    ANSWER_CHECKS,
    CAPTION_CHECKS,
    CHANGE_CHECKS,
    FINAL_CHECKS,
    CaptionDraft,
)
from benchmarks.clash.construction.dialogue import (
    CaptionDialogue,
    ConstructionModels,
    ModelRequest,
    RejectedCaption,
    Way,
    Who,
    check,
)
from benchmarks.clash.construction.prompts import ANSWERS, CONFLICTING_CAPTION, with_caption, with_inputs
from benchmarks.clash.sample import ClashSample
from benchmarks.clash.sources.coco import Caption, CocoFolder, UnusableCaption, read_picture
from benchmarks.media import MISSING
from benchmarks.text.json_replies import field, read_object

_SMALLEST_WAVE, _LARGEST_WAVE = 8, 64


def construct(folder: Path, writer: BuildWriter, options: BuildOptions) -> Iterator[ClashSample]:
    """The accepted samples of COCO captions in ``folder``: ``options.per_stratum`` of each kind of change, if so many come.

    One caption an image, in an order that the seed decides. What is rejected is noted with ``writer.add_skipped``, each
    reason beginning with the name of the check. Raises SpecError without a writing model, SourceError where the folder is
    not COCO's, RashomonError where a model can no longer be asked; what was answered is not asked again by the next build.
    """
    models = ConstructionModels.of(options)
    wanted = dict.fromkeys(CHANGE_CHECKS, options.per_stratum)
    found = CocoFolder(folder).captions(options.seed)
    return gather("coco", found, _way(options.seed), wanted, models, writer)


def gather(
    source: str,
    captions: Iterator[Caption | UnusableCaption],
    way: Callable[[Caption, Collection[str]], Way],
    wanted: dict[str, int],
    models: ConstructionModels,
    writer: BuildWriter,
    stratum: Callable[[CaptionDraft], str] = lambda draft: draft.change_type,
) -> Iterator[ClashSample]:
    """The samples that captions give, wave by wave, until ``wanted`` of each stratum are found or captions are used up.

    ``way`` gets the caption and the strata of which no more are wanted. ``wanted`` is counted down, between waves alone as
    far as ``captions`` can see.
    """
    while any(wanted.values()):
        # Not many more than are wanted, so that few are paid for and not used.
        size = max(_SMALLEST_WAVE, min(_LARGEST_WAVE, 2 * sum(wanted.values())))
        wave = list(_next(captions, size, source, writer))
        if not wave:
            return
        full = frozenset(name for name, left in wanted.items() if not left)
        outcomes = _together([way(caption, full) for caption in wave], models)
        for caption, outcome in zip(wave, outcomes, strict=True):
            if isinstance(outcome, RejectedCaption):
                writer.add_skipped(source, caption.row, str(outcome))
                continue
            kind = stratum(outcome)
            picture = read_picture(caption)
            if not wanted[kind]:
                writer.add_skipped(source, caption.row, str(_enough(kind, outcome)))
            elif picture is None:
                writer.add_skipped(source, caption.row, f"the image {MISSING}")
            else:
                wanted[kind] -= 1
                image = writer.add_media(*picture)
                relation = kind if outcome.change_type == "spatial" else ""
                yield _sample(source, caption, outcome, image, relation)


def _way(seed: int) -> Callable[[Caption, Collection[str]], Way]:
    def way(caption: Caption, full: Collection[str]) -> Way:
        desk = CaptionDialogue(f"clash-coco-{caption.image_id}-{caption.number}", seed)
        text = with_caption(CONFLICTING_CAPTION, caption.text)
        draft = yield from desk.ask("writer", text, None, lambda reply: _changed(caption.text, reply))
        check(CAPTION_CHECKS, draft)
        if draft.change_type in full:
            raise _enough(draft.change_type, draft)
        yield from desk.check(CHANGE_CHECKS[draft.change_type], draft)
        inputs = {
            "original_caption": draft.original_caption,
            "conflicting_caption": draft.conflicting_caption,
            "question": draft.question,
        }
        read = _answered(draft)
        draft = yield from desk.ask("writer", with_inputs(ANSWERS, **inputs), _ANSWERS_FORM, read, draft)
        check(ANSWER_CHECKS, draft)
        for final in FINAL_CHECKS:
            yield from desk.check(final, draft)
        return draft

    return way


_ANSWERS_FORM = JSONObject({"image_only": (), "text_only": (), "irrelevant_but_plausible": ()})


def _changed(caption: str, reply: str) -> CaptionDraft:
    found = read_object(reply)
    return CaptionDraft(
        original_caption=caption,
        conflicting_caption=field(found, "conflicting_caption"),
        question=field(found, "question"),
        change_type=field(found, "change_type").casefold(),
        original=field(found, "changed_words", "original"),
        conflicting=field(found, "changed_words", "conflicting"),
    )


def _answered(draft: CaptionDraft) -> Callable[[str], CaptionDraft]:
    def read(reply: str) -> CaptionDraft:
        found = read_object(reply)
        answers = (field(found, name) for name in _ANSWERS_FORM.properties)
        return replace(draft, **dict(zip(("image_only", "text_only", "distractor"), answers, strict=True)))

    return read


def _enough(kind: str, draft: CaptionDraft) -> RejectedCaption:
    return RejectedCaption("enough", f"no more {kind} changes are wanted", draft)


def _next(
    captions: Iterator[Caption | UnusableCaption], most: int, source: str, writer: BuildWriter
) -> Iterator[Caption]:
    for found in captions:
        if isinstance(found, UnusableCaption):
            writer.add_skipped(source, found.row, found.reason)
            continue
        yield found
        most -= 1
        if not most:
            return


def _together(ways: Iterable[Way], models: ConstructionModels) -> list[CaptionDraft | RejectedCaption]:
    """How each way ends. What they ask goes out together, round after round, to one model as long as any of them asks it:
    so few times as can be is another model of this machine loaded."""
    under_way = dict(enumerate(ways))
    ended: dict[int, CaptionDraft | RejectedCaption] = {}
    asks: dict[int, ModelRequest] = {}
    replies: dict[int, Generation | None] = dict.fromkeys(under_way)
    who: Who = "writer"
    while replies:
        for i, reply in replies.items():
            asks.pop(i, None)
            try:
                asks[i] = next(under_way[i]) if reply is None else under_way[i].send(reply)
            except StopIteration as end:
                ended[i] = end.value
            except RejectedCaption as rejected:
                ended[i] = rejected
        if not any(ask.who == who for ask in asks.values()):
            who = "checker" if who == "writer" else "writer"
        asked = [i for i, ask in asks.items() if ask.who == who]
        replies = dict(zip(asked, models.ask([asks[i] for i in asked]), strict=True))
    return [ended[i] for i in sorted(ended)]


def _sample(source: str, caption: Caption, draft: CaptionDraft, image: Media, relation: str) -> ClashSample:
    found = categories(draft.change_type, draft.original, draft.conflicting)
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
        category=joined(found, draft.change_type),
        source=source,
        relation=relation,
    )
