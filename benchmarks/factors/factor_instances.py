"""Instances of builds, with those of a varied build repeated in every cell of its design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from benchmarks.base import Benchmark, Contradiction
from benchmarks.build import Build
from benchmarks.errors import SourceError, SpecError
from benchmarks.factors import factor_texts
from benchmarks.factors.factor_design import Design
from benchmarks.factors.factor_images import ChangedImage, image_levels
from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.varied_names import MANIFEST_KEY, in_cell
from benchmarks.vocabulary import Instance, Media, Part

ImageFacts = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""The changed images of a row: the sha256 of the original to the levels' key to the facts of the changed one."""


@dataclass(frozen=True, slots=True)
class BaseInstance:
    """An instance before it is repeated: with the passages of its row, and the changed images."""

    instance: Instance
    passages: Sequence[str]
    images: ImageFacts


class _OneRow(Build):
    """A build of a single row, as its benchmark reads it."""

    def __init__(self, build: Build, row: dict[str, Any]) -> None:
        super().__init__(build.path, build.manifest)
        object.__setattr__(self, "_row", row)

    def rows(self) -> Iterator[dict[str, Any]]:
        yield self._row  # type: ignore[attr-defined]


def instances_of(benchmark: Benchmark, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
    """Yield the instances of any build, in its order, with the parts of ``prompt_set``.

    Raises SpecError for a prompt file where the build varies the order of image and text.
    """
    if not build.is_varied:
        with build.reading():
            yield from benchmark.instances(build, prompt_set)
        return
    benchmark.check(build, prompt_set)
    design = Design.from_json(build.manifest[MANIFEST_KEY].get("design"))
    if isinstance(prompt_set, PromptTemplate) and any(factor.name == "order" for factor in design.factors):
        raise SpecError(
            f"{build.path} varies the order of image and text, which a prompt file fixes; use a prompt set of {benchmark.name}, "
            "or a build without the factor order."
        )
    for example in base_examples(benchmark, build, prompt_set):
        yield from repeat_example(benchmark, example, design)


def base_examples(benchmark: Benchmark, build: Build, prompt_set: Prompts) -> Iterator[list[BaseInstance]]:
    """Yield the instances of each example of a build, before they are repeated; a varied build's with its changed images."""
    instances = (item for _, items in base_rows(benchmark, build, prompt_set) for item in items)
    for _, siblings in groupby(instances, lambda item: item.instance.group):
        yield list(siblings)


def base_rows(
    benchmark: Benchmark, build: Build, prompt_set: Prompts
) -> Iterator[tuple[dict[str, Any], list[BaseInstance]]]:
    """Yield each row of a build in its benchmark's format, with its instances. Raises SourceError for a damaged one."""
    for row in build.rows():
        base = row.get("row") if build.is_varied else row
        images = row.get("images") if build.is_varied else {}
        if not isinstance(base, dict) or not isinstance(images, dict):
            raise SourceError(f"{build.path} holds a damaged row; make it again with `rashomon vary`.")
        yield base, read_row(benchmark, build, base, prompt_set, images)


def read_row(
    benchmark: Benchmark, build: Build, row: dict[str, Any], prompt_set: Prompts, images: ImageFacts
) -> list[BaseInstance]:
    """Return the instances of a row in its benchmark's format."""
    with build.reading():
        instances = benchmark.instances(_OneRow(build, row), prompt_set)
        return [BaseInstance(instance, benchmark.passages(row, instance), images) for instance in instances]


def repeat_example(benchmark: Benchmark, example: Sequence[BaseInstance], design: Design) -> Iterator[Instance]:
    """Yield an example's instances in every cell, in the order of the cells."""
    contradiction = benchmark.contradiction([item.instance for item in example])
    for number, levels in enumerate(design.all_levels):
        for item in example:
            if not design.conditions or item.instance.condition in design.conditions:
                yield _in_cell(benchmark, item, contradiction, levels, number)


def _in_cell(
    benchmark: Benchmark,
    item: BaseInstance,
    contradiction: Contradiction | None,
    levels: Mapping[str, str],
    number: int,
) -> Instance:
    base = item.instance
    references, wrong = base.references, None
    if "distance" in levels and contradiction is not None and base.references.get("text") == (contradiction.value,):
        wrong = factor_texts.value_at_distance(contradiction, levels["distance"])
        if wrong is not None:
            references = {**references, "text": (wrong,)}
    parts, changed_passages = base.parts, []
    for passage in item.passages:
        stated = passage
        if wrong is not None and contradiction is not None:
            stated = factor_texts.replace_value(passage, contradiction.value, wrong)
        changed = factor_texts.change_passage(stated, levels)
        parts = factor_texts.replace_passage(parts, passage, changed)
        changed_passages.append(changed)
    parts = tuple(_changed_part(part, item.images, levels) for part in parts)
    parts = factor_texts.with_image_statement(parts, factor_texts.image_statement(levels))
    if "order" in levels:
        parts = factor_texts.in_order(benchmark, parts, changed_passages, levels["order"])
    return replace(
        base,
        id=in_cell(base.id, number),
        group=in_cell(base.group, number),
        parts=parts,
        references=references,
        strata={**base.strata, **levels},
    )


def levels_key(levels: Mapping[str, str]) -> str:
    """Return the key of the levels of an image."""
    return ",".join(f"{name}={level}" for name, level in image_levels(levels).items())


def _changed_part(part: Part, images: ImageFacts, levels: Mapping[str, str]) -> Part:
    key = levels_key(levels)
    if not key or not isinstance(part, Media) or part.modality != "image":
        return part
    try:
        facts = images[part.sha256][key]
        changed = ChangedImage(b"", facts["suffix"], facts["left"], facts["top"], facts["scale_x"], facts["scale_y"])
        return Media(facts["sha256"], facts["suffix"], marks=tuple(changed.move(mark) for mark in part.marks))
    except (KeyError, TypeError) as error:
        raise SourceError(
            "an image of this build is missing at some levels; make it again with `rashomon vary`."
        ) from error
