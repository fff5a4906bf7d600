"""An example under every condition that can be asked of it, the original setting first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.base import SHOWN_TEXT, Instance, Part
from benchmarks.mmkc_bench import prompts
from benchmarks.mmkc_bench.constants import (
    ANSWER,
    CONDITIONS,
    CONTEXT_MEMORY,
    DETECTION,
    DISTRACTOR,
    IMAGE,
    INTER_CONTEXT,
    ORIGINAL,
    TEXT,
    form_of,
    letter_key,
)
from benchmarks.mmkc_bench.example import Example


def instances(example: Example, prompt_set: str) -> Iterator[Instance]:
    """The example's instances, in the order of the conditions.

    Left out: the true text where it is not known or another fact of the row asks about it, single sentences where it is not
    known which one is altered or there are none to tell apart, open questions without the counter answers in words.
    """
    for condition in CONDITIONS:
        if _asks(example, condition):
            yield instance(example, condition, prompt_set)


def instance(example: Example, condition: str, prompt_set: str) -> Instance:
    """The example under one condition."""
    detects = condition in DETECTION
    return Instance(
        id=f"{example.id}/{condition}",
        group=example.id,
        condition=condition,
        question=prompts.DETECTION if detects else example.open_query,
        parts=_detection(example, condition) if detects else _question(example, condition, prompt_set),
        references=_agreement(condition) if detects else _references(example, condition),
        strata={"dataset": example.dataset, "type": example.kind, "instance": example.instance},
    )


def _asks(example: Example, condition: str) -> bool:
    if condition == "coarse-non-conflict":
        return example.control and bool(example.right)
    if condition.startswith("fine-"):
        return example.dataset == "EK" and all(example.sentences)
    if condition.endswith("-open"):
        return all(example.counter_answers) and bool(example.open_query)
    return not condition.endswith("-mc") or bool(example.mcq_query)


def _question(example: Example, condition: str, prompt_set: str) -> tuple[Part, ...]:
    form = form_of(condition)
    shown = 0 if condition in ORIGINAL else 1 if condition in CONTEXT_MEMORY else 2
    evidence = [(example.images[place + 1 : place + 2], example.wrong[place]) for place in range(shown)]
    asked = example.mcq_query if form == "mc" else example.open_query
    return prompts.question(prompt_set, form, asked, example.images[:1], evidence)


def _detection(example: Example, condition: str) -> tuple[Part, ...]:
    text = {
        "coarse-conflict": example.wrong[0],
        "coarse-non-conflict": example.right,
        "fine-conflict": example.sentences[0],
        "fine-non-conflict": example.sentences[1],
    }[condition]
    return prompts.detection(example.images[1:2], text)


def _references(example: Example, condition: str) -> Mapping[str, tuple[str, ...]]:
    """The answers of each source and, for multiple choice, their letters; what is not known is absent.

    In the original setting nothing contradicts the image, so the policies are told that all there is supports its answer.
    """
    shown = 1 if condition in CONTEXT_MEMORY else 2 if condition in INTER_CONTEXT else 0
    answers = {
        IMAGE: (example.own_answer,),
        TEXT: example.counter_answers[:shown],
        DISTRACTOR: (example.distractor,),
    }
    letters = {
        IMAGE: (example.own_letter,),
        TEXT: example.counter_letters[:shown],
        DISTRACTOR: (example.distractor_letter,),
    }
    made = dict(answers)
    if form_of(condition) == "mc":
        made |= {letter_key(source): values for source, values in letters.items()}
    if not shown:
        made[SHOWN_TEXT] = answers[IMAGE]
        if form_of(condition) == "mc":
            made[f"{SHOWN_TEXT} letter"] = letters[IMAGE]
    return {key: known for key, values in made.items() if (known := tuple(value for value in values if value))}


def _agreement(condition: str) -> Mapping[str, tuple[str, ...]]:
    """Whether the document agrees: with what is true of the image, with itself, and so what the right answer is."""
    right = "Yes" if condition.endswith("non-conflict") else "No"
    return {IMAGE: (right,), TEXT: ("Yes",), ANSWER: (right,)}
