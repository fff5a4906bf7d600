"""The instances of a sample: two tasks, each with the conflicting and the original caption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.clash import clash_categories, clash_prompts
from benchmarks.clash.clash_constants import (
    CONDITIONS,
    CONFLICT,
    CONFLICT_OPTION,
    CONFLICTING,
    DISTRACTOR,
    IMAGE,
    LETTERS,
    MULTIPLE_CHOICE,
    ROLES,
    TEXT,
    WITHOUT_SOURCES,
    Role,
    is_multiple_choice,
    letter_key,
)
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.without_sources import OPTIONS_ONLY, without_sources
from benchmarks.vocabulary import SHOWN_TEXT, Instance, digest


def instances(sample: ClashSample, prompt_set: Prompts, seed: int) -> Iterator[Instance]:
    """Yield the sample's four instances, in condition order.

    ``seed`` is the build's; with the sample's id it decides the order of the options, which is the same under both
    captions: the two prompts differ in the caption alone.
    """
    for condition in CONDITIONS:
        order = option_order(sample.id, seed) if condition in MULTIPLE_CHOICE else ()
        yield instance(sample, condition, prompt_set, order)


def all_instances(sample: ClashSample, prompt_set: Prompts, seed: int) -> Iterator[Instance]:
    """Yield the sample's instances, and then those that leave out the image, the caption or the question."""
    captions = {"conflicting": sample.conflicting_caption, "original": sample.original_caption}
    full = {instance.condition: instance for instance in instances(sample, prompt_set, seed)}
    yield from full.values()
    for condition, compared in WITHOUT_SOURCES.items():
        answers = role_answers(sample)
        choices = [answers[role] for role in option_order(sample.id, seed)] if is_multiple_choice(condition) else []
        image = sample.image if condition.endswith("image-only") else None
        caption = captions[compared[0].partition("-")[2]] if condition.endswith("text-only") else ""
        question = "" if condition.endswith(OPTIONS_ONLY) else sample.question
        hidden = [source for source, shown in ((IMAGE, image), (TEXT, caption)) if not shown]
        parts = clash_prompts.partial_parts(prompt_set, image, caption, question, choices)
        if sample.image is not None or not condition.endswith("image-only"):
            yield without_sources(full[compared[-1]], condition, parts, *hidden)


def instance(sample: ClashSample, condition: str, prompt_set: Prompts, order: tuple[Role, ...]) -> Instance:
    """Return one instance; ``order`` holds the roles of the options A to D, and is empty for an open question.

    References: the answer of each role and, for multiple choice, its letter. A role without an answer is left out. The
    original caption supports the image's answer, which stands under ``SHOWN_TEXT`` too.
    """
    answers = role_answers(sample)
    caption = sample.conflicting_caption if condition in CONFLICTING else sample.original_caption
    choices = [answers[role] for role in order]
    references = {str(role): (answer,) for role, answer in answers.items() if answer}
    references |= {letter_key(role): (letter,) for role, letter in zip(order, LETTERS, strict=False)}
    if condition not in CONFLICTING:
        # always-text is right under an original caption
        references |= {SHOWN_TEXT: references[IMAGE]}
        if order:
            references |= {f"{SHOWN_TEXT} letter": references[letter_key(IMAGE)]}
    return Instance(
        id=f"{sample.id}/{condition}",
        group=sample.id,
        condition=condition,
        question=sample.question,
        parts=clash_prompts.parts(prompt_set, sample.image, caption, sample.question, choices),
        references=references,
        strata=strata(sample),
    )


def role_answers(sample: ClashSample) -> Mapping[Role, str]:
    """Return the answer of each role."""
    return {
        IMAGE: sample.image_only,
        TEXT: sample.text_only,
        DISTRACTOR: sample.distractor,
        CONFLICT: CONFLICT_OPTION,
    }


def option_order(sample_id: str, seed: int) -> tuple[Role, ...]:
    """Return the roles of the options A to D; all 24 orders are equally likely."""
    return tuple(sorted(ROLES, key=lambda role: digest([seed, "options", sample_id, role])))


def strata(sample: ClashSample) -> dict[str, str]:
    """Return the strata: ``change``, ``source``, and ``category`` (object, attribute) or ``relation`` (spatial).

    A rejected sample also has ``rejected``, the check.
    """
    values = {"change": sample.change_type, "source": sample.source}
    if sample.category:
        values["category"] = clash_categories.category_stratum(sample.category)
    if sample.relation:
        values["relation"] = sample.relation
    if sample.rejected:
        values["rejected"] = sample.rejected
    return {name: value for name, value in values.items() if value}
