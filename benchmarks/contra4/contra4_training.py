"""Training rows of Contra4: constructed questions that pass a filter of the round-trip consistency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.contra4.contra4_constants import LETTERS
from benchmarks.contra4.contra4_instances import answer_forms, instances
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Instance, Media

CANDIDATES = "candidates.jsonl"
"""The file of a build with all candidates that models have voted on, and the filters that each passes."""


def training_rows(
    samples: Iterable[Contra4Sample],
    candidates: Iterable[Mapping[str, Any]],
    options: TrainingOptions,
    *,
    rendered: bool,
) -> Iterator[TrainingRow]:
    """Yield a row for each question that passes ``options.filter``: first the build's, then other ``candidates``.

    A question is shown with its pictures where all its scenes have some, else by their captions. A candidate's scene has the
    media of the build's scene with its name.
    """
    scenes: dict[tuple[str, str], Scene] = {}
    names = set()
    for sample in samples:
        scenes.update({(scene.source, scene.name): scene for scene in sample.scenes})
        names.add(sample.row_id)
        if options.filter in sample.filters:
            yield from _row(sample, options.prompt_set, rendered)
    for candidate in candidates:
        if candidate["id"] not in names and options.filter in candidate["filters"]:
            yield from _row(_sample(candidate, scenes), options.prompt_set, rendered)


def _sample(candidate: Mapping[str, Any], scenes: Mapping[tuple[str, str], Scene]) -> Contra4Sample:
    shown = tuple(
        scenes.get((source, name)) or Scene(source, name, modality, caption)
        for source, name, modality, caption in candidate["scenes"]
    )
    return Contra4Sample(
        row_id=candidate["id"],
        question=candidate["question"],
        scenes=shown,
        answer=LETTERS.index(candidate["answer"]),
        gold=candidate["answer"],
        negatives=candidate["negatives"],
        category=candidate["category"],
        source="captioned",
        filters=tuple(candidate["filters"]),
    )


def _row(sample: Contra4Sample, prompt_set: str, rendered: bool) -> Iterator[TrainingRow]:
    shown = {instance.condition: instance for instance in instances(sample, prompt_set, rendered=rendered)}
    for condition in ("media", "rendered", "gold-captions"):
        if condition in shown and _only_images(shown[condition]):
            instance = shown[condition]
            yield TrainingRow(instance, answer_forms(instance)[sample.answer], "no conflict")
            return


def _only_images(instance: Instance) -> bool:
    return all(part.modality == "image" for part in instance.parts if isinstance(part, Media))
