"""Training rows of MMKC-Bench: keep to the image's own answer, whatever the external evidence says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.mmkc_bench.mmkc_constants import CONFLICT_CONDITIONS, IMAGE, ORIGINAL_CONDITIONS, form_of, letter_key
from benchmarks.training_rows import TrainingOptions, TrainingRow, by_group, draw
from benchmarks.vocabulary import Instance


def training_rows(instances: Iterable[Instance], options: TrainingOptions) -> Iterator[TrainingRow]:
    """Yield two rows per example: a question without evidence and one with conflicting evidence, drawn alike.

    The target of both is the true answer, by its letter for multiple choice. Questions whose true answer is unknown are left
    out.
    """
    for example in by_group(instances):
        for kind, conditions in (("no conflict", ORIGINAL_CONDITIONS), ("conflict", CONFLICT_CONDITIONS)):
            usable = [example[name] for name in conditions if name in example and _answer(example[name])]
            if usable:
                chosen = draw(options, kind, usable[0].group).choice(usable)
                yield TrainingRow(chosen, _answer(chosen), "conflict" if kind == "conflict" else "no conflict")


def _answer(instance: Instance) -> str:
    key = letter_key(IMAGE) if form_of(instance.condition) == "mc" else IMAGE
    return next(iter(instance.references.get(key, ())), "")
