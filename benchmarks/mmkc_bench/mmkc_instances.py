"""The instances of an example under all conditions it allows, the original setting first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.mmkc_bench import mmkc_prompts
from benchmarks.mmkc_bench.mmkc_constants import (
    ANSWER,
    CONDITIONS,
    CONTEXT_MEMORY,
    DETECTION_CONDITIONS,
    DISTRACTOR,
    IMAGE,
    INTER_CONTEXT,
    ORIGINAL_CONDITIONS,
    TEXT,
    WITHOUT_SOURCES,
    form_of,
    letter_key,
    truth_key,
)
from benchmarks.mmkc_bench.mmkc_example import Example
from benchmarks.mmkc_bench.mmkc_options import format_query, read_options
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.without_sources import OPTIONS_ONLY, without_sources
from benchmarks.vocabulary import SHOWN_TEXT, Instance, Part


def instances(example: Example, prompt_set: Prompts) -> Iterator[Instance]:
    """Yield the example's instances, in the order of the conditions.

    Skipped conditions: the true text if it is unknown or if another fact of the row asks about it; single sentences if
    the altered one is unknown or there is only one text; open questions without the counter answers in words.
    """
    for condition in CONDITIONS:
        if _is_available(example, condition):
            yield instance(example, condition, prompt_set)


def all_instances(example: Example, prompt_set: Prompts) -> Iterator[Instance]:
    """Yield the example's instances, and then those that leave out the image or the question."""
    full = {instance.condition: instance for instance in instances(example, prompt_set)}
    yield from full.values()
    for condition, (compared,) in WITHOUT_SOURCES.items():
        if compared not in full or not full[compared].references.get(truth_key(compared)):
            continue
        if compared in DETECTION_CONDITIONS:
            parts = mmkc_prompts.detection_parts(prompt_set, (), _document(example, compared))
            yield without_sources(full[compared], condition, parts, IMAGE)
            continue
        form = form_of(condition)
        query = example.mcq_query if form == "mc" else example.open_query
        if condition.endswith(OPTIONS_ONLY):
            query = format_query("", tuple(read_options(query).values()))
        yield without_sources(
            full[compared], condition, mmkc_prompts.closed_parts(prompt_set, form, query), IMAGE, TEXT
        )


def instance(example: Example, condition: str, prompt_set: Prompts) -> Instance:
    """Return the example's instance under one condition."""
    detects = condition in DETECTION_CONDITIONS
    return Instance(
        id=f"{example.id}/{condition}",
        group=example.id,
        condition=condition,
        question=mmkc_prompts.DETECTION_INSTRUCTION if detects else example.open_query,
        parts=_detection(example, condition, prompt_set) if detects else _question(example, condition, prompt_set),
        references=_agreement(condition) if detects else _references(example, condition),
        strata={"dataset": example.dataset, "type": example.kind, "instance": example.instance},
    )


def _is_available(example: Example, condition: str) -> bool:
    if condition == "coarse-non-conflict":
        return example.control and bool(example.right)
    if condition.startswith("fine-"):
        return example.dataset == "EK" and all(example.sentences)
    if condition.endswith("-open"):
        return all(example.counter_answers) and bool(example.open_query)
    return not condition.endswith("-mc") or bool(example.mcq_query)


def _question(example: Example, condition: str, prompt_set: Prompts) -> tuple[Part, ...]:
    form = form_of(condition)
    n_texts = 0 if condition in ORIGINAL_CONDITIONS else 1 if condition in CONTEXT_MEMORY else 2
    evidence = [(example.images[place + 1 : place + 2], example.wrong[place]) for place in range(n_texts)]
    query = example.mcq_query if form == "mc" else example.open_query
    return mmkc_prompts.question_parts(prompt_set, form, query, example.images[:1], evidence)


def _detection(example: Example, condition: str, prompt_set: Prompts) -> tuple[Part, ...]:
    return mmkc_prompts.detection_parts(prompt_set, example.images[1:2], _document(example, condition))


def _document(example: Example, condition: str) -> str:
    return {
        "coarse-conflict": example.wrong[0],
        "coarse-non-conflict": example.right,
        "fine-conflict": example.sentences[0],
        "fine-non-conflict": example.sentences[1],
    }[condition]


def _references(example: Example, condition: str) -> Mapping[str, tuple[str, ...]]:
    """Return the answers of each source and, for multiple choice, their letters; unknown values are absent.

    In the original setting nothing contradicts the image, so the policies treat the whole input as supporting its
    answer.
    """
    n_texts = 1 if condition in CONTEXT_MEMORY else 2 if condition in INTER_CONTEXT else 0
    answers = {
        IMAGE: (example.own_answer,),
        TEXT: example.counter_answers[:n_texts],
        DISTRACTOR: (example.distractor,),
    }
    letters = {
        IMAGE: (example.own_letter,),
        TEXT: example.counter_letters[:n_texts],
        DISTRACTOR: (example.distractor_letter,),
    }
    references = dict(answers)
    if form_of(condition) == "mc":
        references |= {letter_key(source): values for source, values in letters.items()}
    if not n_texts:
        references[SHOWN_TEXT] = answers[IMAGE]
        if form_of(condition) == "mc":
            references[f"{SHOWN_TEXT} letter"] = letters[IMAGE]
    return {
        key: present for key, values in references.items() if (present := tuple(value for value in values if value))
    }


def _agreement(condition: str) -> Mapping[str, tuple[str, ...]]:
    """Return whether the document agrees with the image and with itself, and so the right answer."""
    right_answer = "Yes" if condition.endswith("non-conflict") else "No"
    return {IMAGE: (right_answer,), TEXT: ("Yes",), ANSWER: (right_answer,)}
