"""Training rows of CMC-Bench and of a user's own table: each example with agreeing and with conflicting evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from benchmarks.cmc_bench.cmc_constants import CONFLICT_CONDITIONS
from benchmarks.training_rows import ABSTENTION, Target, TrainingOptions, TrainingRow, by_group, draw
from benchmarks.vocabulary import Instance, Media, Pages

NAMED_CONFLICT = "The image and the text disagree: the image says {image}, the text says {text}."
"""The target that names a conflict. Ours; no paper gives one."""

READ_BOTH = "Image: {image}\nText: {text}\n"
"""The beginning of the target ``compare``, with and without a conflict. Ours.

A model that must begin with its verdict has to compare inside its head what it has not yet read; one that writes both values
first compares words that stand before it.
"""
DISAGREE, AGREE = "The image and the text disagree.", "Answer: {}"

_SINGLE = ("image-only", "text-only")


def training_rows(
    instances: Iterable[Instance], options: TrainingOptions, pages: Callable[[Instance], Pages]
) -> Iterator[TrainingRow]:
    """Yield three rows per example: the aligned one, one of its conflicts, and one of its sources by itself.

    A conflict as found has no aligned one, and an example without any conflict gives no row. The last two are drawn by the seed
    and the example alone. Without rows of a single source, a model unlearns to answer where it has nothing to compare. The
    answer to a conflict of which neither source is right is always named or refused, since there is no right answer to learn.
    ``pages`` tells an example's own picture from a borrowed one.
    """
    for example in by_group(instances):
        aligned = example.get("aligned")
        conflicts = [example[condition] for condition in CONFLICT_CONDITIONS if condition in example]
        if not conflicts:
            continue
        own = _own_images(example.values(), pages)
        if aligned is not None:
            yield TrainingRow(
                aligned, _agreed(aligned, options.target), "no conflict", _named(aligned, options.target), own
            )
        group = conflicts[0].group
        conflict = draw(options, "conflict", group).choice(conflicts)
        target = _target(conflict, options.target)
        ignored = [value for source in ("image", "text") if (value := conflict.references[source][0]) != target]
        rejected = draw(options, "rejected", group).choice(ignored)
        yield TrainingRow(conflict, target, "conflict", rejected, own)
        if singles := [c for c in _SINGLE if c in example and example[c].strata.get("correct") != "none"]:
            single = example[draw(options, "single", group).choice(singles)]
            (answer,) = (single.references[source][0] for source in ("image", "text") if source in single.references)
            yield TrainingRow(single, answer, "no conflict", ABSTENTION, own)


def _own_images(example: Iterable[Instance], pages: Callable[[Instance], Pages]) -> tuple[Media, ...]:
    """Return the pictures of an example that were not borrowed from another one."""
    shown = ((instance, part) for instance in example for part in instance.parts if isinstance(part, Media))
    return tuple(dict.fromkeys(media for instance, media in shown if media.sha256 in pages(instance).own))


def _agreed(instance: Instance, target: Target) -> str:
    answer, text = (instance.references[source][0] for source in ("image", "text"))
    return READ_BOTH.format(image=answer, text=text) + AGREE.format(answer) if target == "compare" else answer


def _target(instance: Instance, target: Target) -> str:
    if target == "answer" and instance.condition != "both-wrong":
        return instance.references["image" if instance.condition == "image-correct" else "text"][0]
    return _named(instance, target)


def _named(instance: Instance, target: Target) -> str:
    """Return the answer that names a conflict, in the form of the target."""
    image, text = (instance.references[source][0] for source in ("image", "text"))
    if target == "abstain":
        return ABSTENTION
    if target == "compare":
        return READ_BOTH.format(image=image, text=text) + DISAGREE
    return NAMED_CONFLICT.format(image=image, text=text)
