"""The spatial subset (Appendix C.1): a rule reverses the one spatial relation, a model writes the question.

The paper has 151 left-right, 59 above-below and 61 in-front-of/behind samples, question and distractor generated, all
verified by people, and does not say how captions were found and reversed. The rules here are ours. They look for captions
whose reversal contradicts the image: `left over`, `right now`, `from above`, `under construction`, `behind the wheel` and
`in front of a laptop` (one is also behind it) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.clash.clash_constants import RELATIONS
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.construction.caption_checks import (
    ANSWER_CHECKS,
    CAPTION_CHECKS,
    FINAL_CHECKS,
    CaptionDraft,
    Check,
)
from benchmarks.clash.construction.caption_dialogue import CaptionDialogue, CaptionSteps, ConstructionModels, run_checks
from benchmarks.clash.construction.caption_word_checks import contains, word_set, words
from benchmarks.clash.construction.clash_construction import RejectedSample, collect_samples
from benchmarks.clash.construction.clash_construction_prompts import SPATIAL, add_inputs
from benchmarks.clash.construction.clash_construction_sets import PrintedPrompts, construction_prompts
from benchmarks.clash.sources.coco_captions import Caption, CocoFolder, UnusableCaption
from benchmarks.text.json_replies import line_field, read_object
from benchmarks.vocabulary import JSONObject, digest

_FORM = JSONObject({"question": (), "irrelevant_but_plausible": ()})


@dataclass(frozen=True, slots=True)
class SpatialReversal:
    """A caption with its one spatial relation reversed; ``original`` and ``conflicting`` are the relation's words."""

    relation: str
    original: str
    conflicting: str
    caption: str


def reverse_relation(caption: str) -> SpatialReversal | None:
    """Return the reversal of a caption with exactly one spatial relation that a rule can reverse, else None."""
    relations = list(_RELATION.finditer(caption))
    if len(relations) != 1:
        return None
    match = relations[0]
    phrase = match[0].casefold()
    rule = _RULES.get(phrase)
    before, after = (
        words(_LAST_CLAUSE.split(caption[: match.start()])[-1]),
        words(_CLAUSE.split(caption[match.end() :])[0]),
    )
    if rule is None or not rule.fits(before, after):
        return None
    cased = str.upper if match[0].isupper() else str.capitalize if match[0][0].isupper() else str
    opposite = cased(rule.opposite)
    return SpatialReversal(
        rule.relation, phrase, rule.opposite, caption[: match.start()] + opposite + caption[match.end() :]
    )


def construct_spatial(
    folder: Path, writer: BuildWriter, options: BuildOptions
) -> Iterator[ClashSample | RejectedSample]:
    """Yield the accepted spatial samples of COCO captions in ``folder``: up to ``options.per_stratum`` a relation.

    One sample an image, the rarer relation first; otherwise as
    :func:`benchmarks.clash.construction.clash_construction.construct`. Images without a
    caption that can be reversed are not noted.
    """
    models, prompts = ConstructionModels.of(options), construction_prompts(options)
    quotas = dict.fromkeys(RELATIONS, options.per_stratum)
    captions = _reversible(CocoFolder(folder), options.seed, quotas)
    return collect_samples("spatial", captions, _steps(options.seed, prompts), quotas, models, writer, _relation)


def neutral_question(draft: CaptionDraft) -> str | None:
    """Require a question that names neither relation, which would give an answer away."""
    relations = [phrase for phrase in (draft.original, draft.conflicting) if contains(draft.question, phrase)]
    return f"it names the relation {relations[0]!r}" if relations else None


SPATIAL_CAPTION_CHECKS: Mapping[str, Check] = {
    name: check for name, check in CAPTION_CHECKS.items() if name != "change-type"
}
SPATIAL_ANSWER_CHECKS: Mapping[str, Check] = {"spatial-question": neutral_question, **ANSWER_CHECKS}
"""The automatic checks of answers in the spatial subset, where the question is checked too."""


def _reversible(coco: CocoFolder, seed: int, quotas: Mapping[str, int]) -> Iterator[Caption | UnusableCaption]:
    for image_id in coco.images(seed):
        choices = [
            (RELATIONS.index(reversal.relation), digest([seed, "caption", image_id, number, text]), number, text)
            for number, text in coco.usable(image_id)
            if (reversal := reverse_relation(text)) is not None and quotas[reversal.relation]
        ]
        if choices:
            yield coco.caption(image_id, *min(choices)[2:])


def _relation(draft: CaptionDraft) -> str:
    return _RULES[draft.original].relation


def _steps(seed: int, prompts: PrintedPrompts) -> Callable[[Caption, Collection[str]], CaptionSteps]:
    def steps(caption: Caption, full: Collection[str]) -> CaptionSteps:
        reversal = reverse_relation(caption.text)
        if reversal is None:
            raise AssertionError("a caption that cannot be reversed was chosen")
        draft = CaptionDraft(caption.text, reversal.caption, "", "spatial", reversal.original, reversal.conflicting)
        run_checks(SPATIAL_CAPTION_CHECKS, draft)
        draft = replace(draft, image_only=reversal.original, text_only=reversal.conflicting)
        text = add_inputs(
            SPATIAL, original_caption=draft.original_caption, conflicting_caption=draft.conflicting_caption
        )

        def read(reply: str) -> CaptionDraft:
            fields = read_object(reply)
            return replace(
                draft,
                question=line_field(fields, "question"),
                distractor=line_field(fields, "irrelevant_but_plausible"),
            )

        dialogue = CaptionDialogue(f"clash-spatial-{caption.image_id}-{caption.number}", seed, prompts)
        draft = yield from dialogue.ask("writer", text, _FORM, read, draft)
        run_checks(SPATIAL_ANSWER_CHECKS, draft)
        for final in FINAL_CHECKS:
            yield from dialogue.check(final, draft)
        return draft

    return steps


# --- the rules -----------------------------------------------------------------------------------

_RELATION = re.compile(
    r"\b(?:left|right|above|below|over|under|underneath|beneath|on top of|on top|in front of|in front|behind)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,.;:()]")
_LAST_CLAUSE = re.compile(r"[,.;:(]")

_Fits = Callable[[Sequence[str], Sequence[str]], bool]
"""A test of a rule on the words before and after the relation in its clause."""


@dataclass(frozen=True, slots=True)
class _Rule:
    relation: str
    opposite: str
    fits: _Fits


_ENDS = word_set(
    "and or but with as while is are was were be being in on at by to of that which who whose there from for near next "
    "beside during looking holding wearing standing sitting eating waiting getting having has have"
)
_PREPOSITIONS = word_set("on to at in toward towards from of")
_OWNERS = word_set("the his her its their our my your one's")
_WHERE = word_set("far lower upper bottom top very")
_SIDED = word_set("side hand arm leg foot eye ear shoulder knee wrist paw wing corner lane half")
_NOT_A_SIDE = word_set("place time track way direction moment size order one to")

_NOT_BEFORE_ABOVE = word_set("from of and the mentioned see")
_NOT_ABOVE = word_set("average all ground zero freezing")
_NOT_UNDER = word_set(
    "construction renovation repair repairs way attack control influence cover water arm arms pressure guard sun moon sky "
    "skies sunlight light lights lighting cloud clouds conditions supervision wraps stars sunset weather neath remodel "
    "remodeling umbrella umbrellas parasol tree trees canopy tent roof covers blanket blankets"
)
_CAN_BE_UNDER = word_set(
    "table desk counter shelf bench bed chair couch sofa car bus truck van tree bridge umbrella blanket cabinet "
    "refrigerator fridge stove sink towel box book books"
)
# Whoever faces one of these is behind it and in front of it.
_FACED = word_set(
    "laptop laptops computer computers monitor monitors keyboard screen screens desk desks table tables plate plates food "
    "meal cake pizza piano microphone steering wheel"
)
_NOT_FRONT = _FACED | word_set("camera cameras sky skies background backdrop sunset mirror mirrors")
_NOT_BEFORE_BEHIND = word_set("from left its his her their close fall falling lag lagging")
_NOT_BEHIND = _FACED | word_set("scene scenes bars camera schedule closed times home")


def _object(after: Sequence[str]) -> list[str]:
    """Return the words after a relation that name a thing: at most five."""
    thing: list[str] = []
    for word in after[:5]:
        if word in _ENDS:
            break
        thing.append(word)
    return thing


def _is_side(before: Sequence[str], after: Sequence[str]) -> bool:
    if after[:1] and after[0] in _SIDED:
        return list(after[:2]) != ["side", "up"]
    place = [word for word in before[-3:] if word not in _WHERE][-2:]
    placed = len(place) == 2 and place[0] in _PREPOSITIONS and place[1] in _OWNERS
    return placed and not (after and after[0] in _NOT_A_SIDE)


def _is_above(before: Sequence[str], after: Sequence[str]) -> bool:
    thing = _object(after)
    return bool(thing) and thing[0] not in _NOT_ABOVE and not (before and before[-1] in _NOT_BEFORE_ABOVE)


def _is_under(before: Sequence[str], after: Sequence[str]) -> bool:
    thing = _object(after)
    return bool(thing) and not _NOT_UNDER.intersection(thing)


def _is_on_top(before: Sequence[str], after: Sequence[str]) -> bool:
    return bool(_CAN_BE_UNDER.intersection(_object(after)))


def _is_in_front(before: Sequence[str], after: Sequence[str]) -> bool:
    thing = _object(after)
    return bool(thing) and not _NOT_FRONT.intersection(thing)


def _is_behind(before: Sequence[str], after: Sequence[str]) -> bool:
    thing = _object(after)
    return bool(thing) and not _NOT_BEHIND.intersection(thing) and not (before and before[-1] in _NOT_BEFORE_BEHIND)


_RULES = {
    "left": _Rule("left-right", "right", _is_side),
    "right": _Rule("left-right", "left", _is_side),
    "above": _Rule("above-below", "below", _is_above),
    "below": _Rule("above-below", "above", _is_above),
    **dict.fromkeys(("under", "underneath", "beneath"), _Rule("above-below", "above", _is_under)),
    "on top of": _Rule("above-below", "underneath", _is_on_top),
    "in front of": _Rule("front-behind", "behind", _is_in_front),
    "behind": _Rule("front-behind", "in front of", _is_behind),
}
