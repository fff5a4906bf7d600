"""The quality controls of section 3.3: automatic checks on words, and checks put to a language model (Appendix B.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from benchmarks.base import JSONObject
from benchmarks.clash.construction.prompts import (
    ANSWERS_CHECK,
    ATTRIBUTE_CHECK,
    OBJECT_CHECK,
    QUESTIONS_CHECK,
    with_inputs,
)
from benchmarks.clash.construction.word_checks import (
    COUNTS,
    contains,
    matches,
    mentions,
    naming,
    same_rest,
    without,
    word_set,
    words,
)
from benchmarks.text.answer_equality import same_value
from benchmarks.text.json_replies import UnreadableReply, field, read_object

YesNo = Literal["Yes", "No"]

BINARY = (
    *(("man", "woman"), ("men", "women"), ("open", "close"), ("open", "closed"), ("opened", "closed")),
    *(("opening", "closing"), ("dark", "light"), ("indoor", "outdoor"), ("indoors", "outdoors")),
)
"""Words with two states (Appendix B.1), with their inflections; a change from one to the other is refused."""

SUBJECTIVE = word_set(
    # The first prompt of Appendix B.1, then what the attribute check of B.2 adds.
    "beautiful small large big medium moderate modern young old fast slow elegant scary tall short "
    "stylish fancy cheap impressive"
)


@dataclass(frozen=True, slots=True)
class CaptionDraft:
    """A sample in the making; the answers are empty until they are written.

    ``original`` and ``conflicting`` are the changed words.
    """

    original_caption: str
    conflicting_caption: str
    question: str
    change_type: str
    original: str
    conflicting: str
    image_only: str = ""
    text_only: str = ""
    distractor: str = ""


Check = Callable[[CaptionDraft], str | None]
"""Why a draft is refused, or None."""


def change_type(draft: CaptionDraft) -> str | None:
    """Section 3.2, stage 1: an object or an attribute is changed. Spatial changes are made by rule and not asked this."""
    return None if draft.change_type in ("object", "attribute") else f"it is {draft.change_type!r}"


def original_word(draft: CaptionDraft) -> str | None:
    """Section 3.3 (i) of the caption: the original word appears in the source caption."""
    return None if contains(draft.original_caption, draft.original) else "it is not in the original caption"


def conflicting_word(draft: CaptionDraft) -> str | None:
    """Section 3.3 (ii) of the caption: the conflicting word appears in the modified caption."""
    return None if contains(draft.conflicting_caption, draft.conflicting) else "it is not in the conflicting caption"


def one_change(draft: CaptionDraft) -> str | None:
    """Exactly one element is changed (section 3.2): without it the captions are the same.

    Letter case, punctuation, a and an and verbs that agree do not count, nor singular and plural where the change is one of
    number.
    """
    before, after = words(draft.original), words(draft.conflicting)
    if before == after:
        return "nothing is changed"
    number = any(word in COUNTS or word.isdecimal() for word in (*before, *after))
    rests = [
        (one, other)
        for one in without(draft.original_caption, draft.original)
        for other in without(draft.conflicting_caption, draft.conflicting)
    ]
    return None if any(same_rest(*pair, number=number) for pair in rests) else "the captions differ elsewhere too"


def binary_state(draft: CaptionDraft) -> str | None:
    """Words with two states are not changed (Appendix B.1)."""
    before, after = _exchanged(draft)
    for pair in BINARY:
        for one, other in (pair, pair[::-1]):
            if one in before and other in after:
                return f"{one} is changed to {other}"
    return None


def subjective(draft: CaptionDraft) -> str | None:
    """Subjective words are not changed (Appendix B.1)."""
    before, after = _exchanged(draft)
    found = sorted((before | after) & SUBJECTIVE)
    return f"{found[0]} is subjective" if found else None


def image_answer(draft: CaptionDraft) -> str | None:
    """Section 3.3 (i) of the answers: the image-only answer matches the original word."""
    return None if matches(draft.image_only, draft.original) else "it does not match the original word"


def text_answer(draft: CaptionDraft) -> str | None:
    """Section 3.3 (ii) of the answers: the text-only answer corresponds to the conflicting word."""
    return None if matches(draft.text_only, draft.conflicting) else "it does not match the conflicting word"


def distractor(draft: CaptionDraft) -> str | None:
    """Section 3.3 (iii) of the answers: the distractor appears in neither caption, in singular or plural."""
    for which, caption in (("original", draft.original_caption), ("conflicting", draft.conflicting_caption)):
        if mentions(caption, draft.distractor):
            return f"it is in the {which} caption"
    return None if naming(draft.distractor) else "it names nothing"


def distinct(draft: CaptionDraft) -> str | None:
    """The three answers are mutually exclusive (Appendix B.1)."""
    answers = (draft.image_only, draft.text_only, draft.distractor)
    return "two answers are the same" if any(same_value(a, b) for a, b in combinations(answers, 2)) else None


CAPTION_CHECKS: Mapping[str, Check] = {
    "change-type": change_type,
    "original-word": original_word,
    "conflicting-word": conflicting_word,
    "one-change": one_change,
    "binary-state": binary_state,
    "subjective": subjective,
}
"""In their order, before a model is paid to check the caption."""

ANSWER_CHECKS: Mapping[str, Check] = {
    "image-answer": image_answer,
    "text-answer": text_answer,
    "distractor": distractor,
    "distinct-answers": distinct,
}
"""In their order, before a model is paid to check question and answers."""


def refused(checks: Mapping[str, Check], draft: CaptionDraft) -> tuple[str, str] | None:
    """The first check that refuses a draft and its reason, or None."""
    for name, check in checks.items():
        reason = check(draft)
        if reason is not None:
            return name, reason
    return None


def _exchanged(draft: CaptionDraft) -> tuple[set[str], set[str]]:
    """The changed words that are on one side alone: in `small dog` to `small cat`, dog and cat."""
    before, after = set(words(draft.original)), set(words(draft.conflicting))
    return before - after, after - before


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A check of Appendix B.2: its prompt, what it is given, and the reply to each field that lets a draft pass."""

    name: str
    prompt: str
    inputs: Callable[[CaptionDraft], Mapping[str, str]]
    wanted: Mapping[str, YesNo]

    @property
    def form(self) -> JSONObject:
        """What the reply must look like."""
        return JSONObject(dict.fromkeys(self.wanted, ("Yes", "No")))

    def text(self, draft: CaptionDraft) -> str:
        """What the model is asked about ``draft``."""
        return with_inputs(self.prompt, **self.inputs(draft))

    def refused(self, reply: str) -> str | None:
        """Why the reply refuses the draft, or None. Raises Unreadable where a field that decides is not Yes or No."""
        found: dict[str, Any] = read_object(reply)
        for name, wanted in self.wanted.items():
            said = field(found, name).capitalize()
            if said not in ("Yes", "No"):
                raise UnreadableReply(f"the field {name} is neither Yes nor No")
            if said != wanted:
                return f"{name} is {said}"
        return None


def _changed(draft: CaptionDraft) -> dict[str, str]:
    return {"original": draft.original, "conflicting": draft.conflicting}


def _answers(draft: CaptionDraft) -> dict[str, str]:
    return {"word_1": draft.image_only, "word_2": draft.text_only, "word_3": draft.distractor}


def _question(draft: CaptionDraft) -> dict[str, str]:
    return {
        "question": draft.question,
        "changed_words": f"{draft.original}, {draft.conflicting}",
        "answers": f"{draft.image_only}, {draft.text_only}, {draft.distractor}",
    }


ATTRIBUTE = ModelCheck(
    "attribute-check", ATTRIBUTE_CHECK, _changed, {"change_is_attribute": "Yes", "change_is_objective": "Yes"}
)
OBJECT = ModelCheck(
    "object-check",
    OBJECT_CHECK,
    _changed,
    {"change_is_object": "Yes", "change_is_synonym": "No", "change_is_ambiguous": "No", "change_is_relevant": "Yes"},
)
ANSWERS = ModelCheck(
    "answers-check",
    ANSWERS_CHECK,
    _answers,
    {"ans_is_synonym": "No", "ans_is_ambiguous": "No", "ans_is_relevant": "Yes", "ans_is_visible": "Yes"},
)
QUESTIONS = ModelCheck(
    "questions-check",
    QUESTIONS_CHECK,
    _question,
    {"question_is_clear": "Yes", "question_is_focused": "Yes", "question_is_answerable": "Yes"},
)

CHANGE_CHECKS: Mapping[str, ModelCheck] = {"attribute": ATTRIBUTE, "object": OBJECT}
"""The check of the changed words, by kind of change; a spatial change, made by rule, has none."""

FINAL_CHECKS = (ANSWERS, QUESTIONS)
"""In their order, on the finished sample."""
