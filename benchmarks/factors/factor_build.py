"""Varied builds: the examples of another build, repeated in every cell of a design."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.base import Benchmark
from benchmarks.build import Build, BuildWriter
from benchmarks.errors import NothingUsableError, SpecError, did_you_mean
from benchmarks.factors import factor_texts
from benchmarks.factors.decisive_regions import Regions
from benchmarks.factors.factor_design import Design
from benchmarks.factors.factor_images import change_image, image_levels, needs_region
from benchmarks.factors.factor_instances import (
    BaseInstance,
    base_examples,
    base_rows,
    levels_key,
    read_row,
    repeat_example,
)
from benchmarks.factors.factor_levels import BUILT
from benchmarks.hash_collections import hash64
from benchmarks.instance_sampling import select
from benchmarks.media.image_files import load_image, read_media
from benchmarks.values import compare
from benchmarks.varied_names import MANIFEST_KEY
from benchmarks.vocabulary import Instance, Media, digest, part_to_json

MOST_CALLS = 100_000
"""The most calls of a design that needs no confirmation: more than a day at a call a second."""

_REMEMBERED = 1024
"""The changed images that are remembered: the instances of an example show the same few."""

_OWN_KEYS = ("format", "instances", "instances_sha256", "media", "media_sha256", MANIFEST_KEY)

_Row = tuple[dict[str, Any], list[BaseInstance]]


@dataclass(frozen=True, slots=True)
class VaryOptions:
    """Options of a varied build.

    Attributes:
        limit: The number of examples, None for all.
        seed: The seed by which they are drawn.
        regions: The decisive regions of the images.
        replace: True to replace another build.
    """

    limit: int | None = None
    seed: int = 0
    regions: Regions = field(default_factory=Regions)
    replace: bool = False


@dataclass(frozen=True, slots=True)
class DesignSize:
    """The size of a design over the examples of a build; in ``calls``, inputs that no factor changes count once."""

    examples: int
    cells: int
    full_cells: int
    instances: int
    calls: int


@dataclass(frozen=True)
class Variation:
    """A design over the examples of a build. Raises SpecError for a design that does not fit the build."""

    benchmark: Benchmark
    base: Build
    design: Design
    options: VaryOptions

    def __post_init__(self) -> None:
        self.base.require_plain()
        for condition in self.design.conditions:
            if condition not in self.benchmark.conditions:
                raise SpecError(f"no condition {condition!r}; {did_you_mean(condition, self.benchmark.conditions)}")
            if condition in self.benchmark.without_sources:
                raise SpecError(f"{condition} leaves out what factors change; leave it out.")

    def size(self) -> DesignSize:
        """Count the instances and calls, reading the build once or a few times. Raises SpecError for a factor without effect."""
        drawn = self._drawn()
        examples = 0
        shown: Counter[tuple[bool, bool]] = Counter()
        for example in base_examples(self.benchmark, self.base, self._prompt_set):
            if not _is_drawn(example[0].instance.group, drawn):
                continue
            examples += 1
            shown.update((bool(_images(item.instance)), bool(item.passages)) for item in self._included(example))
        parts = {
            name
            for pair in shown
            for name, has in zip(("image", "text", "both"), (*pair, all(pair)), strict=True)
            if has
        }
        for factor in self.design.factors:
            if factor.kind.part not in parts:
                noun = {"image": "image", "text": "passage", "both": "image with a passage"}[factor.kind.part]
                raise SpecError(f"{factor.name} changes nothing in this build, which shows no {noun}; leave it out.")
        cells = len(self.design.cells)
        calls = sum(count * self.design.calls(*pair) for pair, count in shown.items())
        return DesignSize(examples, cells, self.design.full_cells, shown.total() * cells, calls)

    def build(self, out: Path, progress: Callable[[], None] = lambda: None) -> Build:
        """Write the varied build into the folder ``out``; ``progress`` is called after each example.

        Examples that cannot have every level are left out, with the reason. Raises NothingUsableError if none is left,
        SourceError for an image without its region, and MediaError for one that cannot be read.
        """
        drawn = self._drawn()
        examples = calls = instances = 0
        with BuildWriter(out) as writer:
            images = _Images(self.base, self.design, self.options.regions, writer)
            for rows in self._examples():
                group = rows[0][1][0].instance.group
                if not _is_drawn(group, drawn):
                    continue
                items = [item for _, items in rows for item in items]
                if reason := self._misfit([item.instance for item in items]):
                    writer.add_skipped(self.base.benchmark, group, reason)
                    continue
                images_by_row = [images.add(self._media(row)) for row, _ in rows]
                for (row, _), changed in zip(rows, images_by_row, strict=True):
                    writer.add_row({"row": row, "images": changed})
                all_images = {sha256: facts for changed in images_by_row for sha256, facts in changed.items()}
                example = [BaseInstance(item.instance, item.passages, all_images) for item in items]
                repeated = list(repeat_example(self.benchmark, example, self.design))
                examples, instances = examples + 1, instances + len(repeated)
                calls += len({digest([part_to_json(part) for part in instance.parts]) for instance in repeated})
                progress()
            if not examples:
                raise NothingUsableError(
                    "no example can have every level of this design: " + "; ".join(_reasons(writer)) + "."
                )
            manifest = {key: value for key, value in self.base.manifest.items() if key not in _OWN_KEYS}
            facts = {
                "base": self.base.digest,
                "design": self.design.to_json(),
                "examples": examples,
                "cells": len(self.design.cells),
                "full cells": self.design.full_cells,
                "instances": instances,
                "distinct inputs": calls,
                "left out": sum(writer.skipped[self.base.benchmark].values()),
            }
            return writer.finish({**manifest, MANIFEST_KEY: facts}, replace=self.options.replace)

    @property
    def _prompt_set(self) -> str:
        return next(iter(self.benchmark.prompt_sets))

    def _drawn(self) -> set[int] | None:
        """Return the hashes of the drawn examples; None for all."""
        if self.options.limit is None:
            return None
        selection = select(
            _Instances(self.benchmark, self.base, self._prompt_set),
            stratify_by=self.benchmark.stratum,
            seed=self.options.seed,
            limit=self.options.limit,
        )
        return {hash64(instance.group) for instance in selection}

    def _examples(self) -> Iterator[list[_Row]]:
        """Yield the rows of each example with their instances; rows without an instance are dropped."""
        rows = (pair for pair in base_rows(self.benchmark, self.base, self._prompt_set) if pair[1])
        for _, siblings in groupby(rows, lambda pair: pair[1][0].instance.group):
            yield list(siblings)

    def _included(self, example: Sequence[BaseInstance]) -> list[BaseInstance]:
        conditions = self.design.conditions
        return [item for item in example if not conditions or item.instance.condition in conditions]

    def _media(self, row: dict[str, Any]) -> list[Media]:
        """Return the media that a row's instances show under any prompt set, each once."""
        media: dict[Media, None] = {}
        for prompt_set in self.benchmark.prompt_sets:
            for item in self._included(read_row(self.benchmark, self.base, row, prompt_set, {})):
                media.update((Media(part.sha256, part.suffix, part.modality), None) for part in _media(item.instance))
        return list(media)

    def _misfit(self, instances: Sequence[Instance]) -> str:
        """Return why an example cannot have every level; empty if it can."""
        levels = next((factor.levels for factor in self.design.factors if factor.name == "distance"), ())
        needed = [level for level in levels if level != BUILT]
        if not needed:
            return ""
        contradiction = self.benchmark.contradiction(instances)
        if contradiction is None:
            return "it has no value that contradicts the right one"
        for level in needed:
            value = factor_texts.value_at_distance(contradiction, level)
            if value is None:
                return "its right and its contradicting value are no numbers"
            if compare(value, contradiction.truth, instances[0].question).verdict != "different":
                return "a value at one of the distances may be the right one, such as 3.3 for 3"
        return ""


@dataclass(frozen=True)
class _Instances:
    """The instances of a build, read again by every iteration."""

    benchmark: Benchmark
    build: Build
    prompt_set: str

    def __iter__(self) -> Iterator[Instance]:
        return self.benchmark.instances(self.build, self.prompt_set)


class _Images:
    """The images of a varied build at the levels of its design, each changed once."""

    def __init__(self, base: Build, design: Design, regions: Regions, writer: BuildWriter) -> None:
        self._base = base
        self._regions = regions
        self._writer = writer
        self._levels: dict[str, dict[str, str]] = {}
        for levels in design.all_levels:
            self._levels[levels_key(levels)] = image_levels(levels)
        self._known: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()

    def add(self, media: Sequence[Media]) -> dict[str, dict[str, Any]]:
        """Store media at all levels; return the facts of the changed images, as a row of the build holds them."""
        changed: dict[str, dict[str, Any]] = {}
        for medium in media:
            if medium.modality != "image":
                self._keep(medium)
                continue
            facts = {key: self._changed(medium, key) for key in self._levels if key}
            if "" in self._levels:
                self._keep(medium)
            if facts:
                changed[medium.sha256] = facts
        return changed

    def _keep(self, medium: Media) -> None:
        if not self._writer.has_media(medium):
            self._writer.add_media(self._read(medium), medium.suffix)

    def _read(self, medium: Media) -> bytes:
        return read_media(self._base.media_path(medium), medium)

    def _changed(self, medium: Media, key: str) -> dict[str, Any]:
        name = (medium.sha256, key)
        if name in self._known:
            self._known.move_to_end(name)
            return self._known[name]
        data, levels = self._read(medium), self._levels[key]
        region = self._regions.of(medium.sha256, load_image(data).size) if needs_region(levels) else None
        image = change_image(data, medium.suffix, levels, region)
        stored = self._writer.add_media(image.data, image.suffix)
        self._known[name] = {
            "sha256": stored.sha256,
            "suffix": stored.suffix,
            "left": image.left,
            "top": image.top,
            "scale_x": image.scale_x,
            "scale_y": image.scale_y,
        }
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return self._known[name]


def _is_drawn(group: str, drawn: Collection[int] | None) -> bool:
    return drawn is None or hash64(group) in drawn


def _media(instance: Instance) -> list[Media]:
    return [part for part in instance.parts if isinstance(part, Media)]


def _images(instance: Instance) -> list[Media]:
    return [part for part in _media(instance) if part.modality == "image"]


def _reasons(writer: BuildWriter) -> list[str]:
    counts: Mapping[str, int] = next(iter(writer.skipped.values()), {})
    return [f"{reason} ({count} examples)" for reason, count in counts.items()] or ["the build has no examples"]
