"""The quality controls of section 3.3: automatic word checks, and checks by a language model (Appendix B.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from benchmarks.clash.construction.caption_word_checks import (
    COUNTS,
    contains,
    content_words,
    matches,
    mentions,
    remove_phrase,
    same_remainder,
    word_set,
    words,
)
from benchmarks.clash.construction.clash_construction_prompts import (
    ANSWERS_CHECK,
    ATTRIBUTE_CHECK,
    OBJECT_CHECK,
    QUESTIONS_CHECK,
    add_inputs,
)
from benchmarks.text.json_replies import UnreadableReply, line_field, read_object
from benchmarks.values import compare
from benchmarks.vocabulary import JSONObject

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
    """A sample under construction; the answers are empty until they are written.

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
"""A check of a draft; returns the reason for a refusal, or None."""


def change_type(draft: CaptionDraft) -> str | None:
    """Require an object or attribute change (section 3.2, stage 1); rule-made spatial changes skip this check."""
    return None if draft.change_type in ("object", "attribute") else f"it is {draft.change_type!r}"


def original_word(draft: CaptionDraft) -> str | None:
    """Require the original word in the source caption (section 3.3 (i), captions)."""
    return None if contains(draft.original_caption, draft.original) else "it is not in the original caption"


def conflicting_word(draft: CaptionDraft) -> str | None:
    """Require the conflicting word in the modified caption (section 3.3 (ii), captions)."""
    return None if contains(draft.conflicting_caption, draft.conflicting) else "it is not in the conflicting caption"


def single_change(draft: CaptionDraft) -> str | None:
    """Require exactly one changed element (section 3.2): without it the captions are the same.

    Letter case, punctuation, a and an and verbs that agree do not count, nor singular and plural where the change is one of
    number.
    """
    before, after = words(draft.original), words(draft.conflicting)
    if before == after:
        return "nothing is changed"
    number = any(word in COUNTS or word.isdecimal() for word in (*before, *after))
    rests = [
        (original_rest, conflicting_rest)
        for original_rest in remove_phrase(draft.original_caption, draft.original)
        for conflicting_rest in remove_phrase(draft.conflicting_caption, draft.conflicting)
    ]
    return None if any(same_remainder(*pair, number=number) for pair in rests) else "the captions differ elsewhere too"


def binary_state(draft: CaptionDraft) -> str | None:
    """Refuse a change between the two states of a word (Appendix B.1)."""
    before, after = _exchanged(draft)
    for pair in BINARY:
        for old, new in (pair, pair[::-1]):
            if old in before and new in after:
                return f"{old} is changed to {new}"
    return None


def subjective(draft: CaptionDraft) -> str | None:
    """Refuse a change of subjective words (Appendix B.1)."""
    before, after = _exchanged(draft)
    words_changed = sorted((before | after) & SUBJECTIVE)
    return f"{words_changed[0]} is subjective" if words_changed else None


def image_answer(draft: CaptionDraft) -> str | None:
    """Require the image-only answer to match the original word (section 3.3 (i), answers)."""
    return None if matches(draft.image_only, draft.original) else "it does not match the original word"


def text_answer(draft: CaptionDraft) -> str | None:
    """Require the text-only answer to match the conflicting word (section 3.3 (ii), answers)."""
    return None if matches(draft.text_only, draft.conflicting) else "it does not match the conflicting word"


def distractor(draft: CaptionDraft) -> str | None:
    """Require the distractor in neither caption, in singular or plural (section 3.3 (iii), answers)."""
    for which, caption in (("original", draft.original_caption), ("conflicting", draft.conflicting_caption)):
        if mentions(caption, draft.distractor):
            return f"it is in the {which} caption"
    return None if content_words(draft.distractor) else "it names nothing"


def distinct(draft: CaptionDraft) -> str | None:
    """Require three mutually exclusive answers (Appendix B.1)."""
    for answer, other in combinations((draft.image_only, draft.text_only, draft.distractor), 2):
        result = compare(answer, other, draft.question)
        if result.verdict != "different":
            return f"{answer!r} and {other!r}: {result.reason}"
    return None


CAPTION_CHECKS: Mapping[str, Check] = {
    "change-type": change_type,
    "original-word": original_word,
    "conflicting-word": conflicting_word,
    "one-change": single_change,
    "binary-state": binary_state,
    "subjective": subjective,
}
"""The checks of a caption, in order; they run before a model is paid to check it."""

ANSWER_CHECKS: Mapping[str, Check] = {
    "image-answer": image_answer,
    "text-answer": text_answer,
    "distractor": distractor,
    "distinct-answers": distinct,
}
"""The checks of the answers, in order; they run before a model is paid to check question and answers."""


def first_refusal(checks: Mapping[str, Check], draft: CaptionDraft) -> tuple[str, str] | None:
    """Return the name and reason of the first check that refuses a draft, or None."""
    for name, check in checks.items():
        reason = check(draft)
        if reason is not None:
            return name, reason
    return None


def _exchanged(draft: CaptionDraft) -> tuple[set[str], set[str]]:
    """Return the changed words of only one caption: in `small dog` to `small cat`, dog and cat."""
    before, after = set(words(draft.original)), set(words(draft.conflicting))
    return before - after, after - before


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A check of Appendix B.2: its prompt, its inputs, and the reply to each field that lets a draft pass."""

    name: str
    prompt: str
    inputs: Callable[[CaptionDraft], Mapping[str, str]]
    expected_answers: Mapping[str, YesNo]

    @property
    def form(self) -> JSONObject:
        """The required form of the reply."""
        return JSONObject(dict.fromkeys(self.expected_answers, ("Yes", "No")))

    def text(self, draft: CaptionDraft) -> str:
        """Return the prompt about ``draft``."""
        return add_inputs(self.prompt, **self.inputs(draft))

    def refused(self, reply: str) -> str | None:
        """Return why the reply refuses the draft, or None. Raises UnreadableReply for a field that is not Yes or No."""
        fields: dict[str, Any] = read_object(reply)
        for name, expected in self.expected_answers.items():
            answer = line_field(fields, name).capitalize()
            if answer not in ("Yes", "No"):
                raise UnreadableReply(f"the field {name} is neither Yes nor No")
            if answer != expected:
                return f"{name} is {answer}"
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
"""The model checks of a finished sample, in order."""
