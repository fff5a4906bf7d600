"""Training rows of CMC-Bench and of a user's own table: each example with agreeing and with conflicting evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.cmc_bench.constants import CONFLICT_CONDITIONS
from benchmarks.training_rows import ABSTENTION, Target, TrainingOptions, TrainingRow, by_group, draw
from benchmarks.vocabulary import Instance

NAMED_CONFLICT = "The image and the text disagree: the image says {image}, the text says {text}."
"""The target that names a conflict. Ours; no paper gives one."""


def training_rows(instances: Iterable[Instance], options: TrainingOptions) -> Iterator[TrainingRow]:
    """Yield two rows per example: the aligned one, and one of its conflicts, drawn by the seed and the example alone.

    So half of the rows conflict, as in CLASH's training. The answer to a conflict of which neither source is right is always
    named or refused, since there is no right answer to learn.
    """
    for example in by_group(instances):
        aligned = example.get("aligned")
        conflicts = [example[condition] for condition in CONFLICT_CONDITIONS if condition in example]
        if aligned is None or not conflicts:
            continue
        yield TrainingRow(aligned, aligned.references["image"][0], "no conflict")
        conflict = draw(options, "conflict", aligned.group).choice(conflicts)
        yield TrainingRow(conflict, _target(conflict, options.target), "conflict")


def _target(instance: Instance, target: Target) -> str:
    image, text = (instance.references[source][0] for source in ("image", "text"))
    if target == "abstain":
        return ABSTENTION
    if target == "answer" and instance.condition != "both-wrong":
        return image if instance.condition == "image-correct" else text
    return NAMED_CONFLICT.format(image=image, text=text)
