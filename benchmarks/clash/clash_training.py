"""The training split (section 4.4, Appendix A.3): the open task on one caption of each sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.clash.clash_constants import CONFLICT_OPTION, IMAGE, TEXT
from benchmarks.training_rows import TrainingOptions, TrainingRow, by_group, draw
from benchmarks.vocabulary import Instance

CONFLICT_ANSWER = CONFLICT_OPTION.rstrip(".")
"""The answer that the open-ended instruction requires on a conflict (Appendix B.3, without a full stop)."""


def training_rows(instances: Iterable[Instance], options: TrainingOptions) -> Iterator[TrainingRow]:
    """Yield a row per sample: the open task on the conflicting or on the original caption, with equal probability.

    Which one is drawn by the seed and the sample alone. The target is the conflict sentence, or the image-grounded answer.
    """
    for example in by_group(instances):
        original = example["open-original"]
        if draw(options, "caption", original.group).random() < 0.5:
            conflict = example["open-conflicting"]
            ignoring = conflict.references.get(TEXT) or conflict.references[IMAGE]
            yield TrainingRow(conflict, CONFLICT_ANSWER, "conflict", ignoring[0])
        else:
            yield TrainingRow(original, original.references[IMAGE][0], "no conflict", CONFLICT_ANSWER)
