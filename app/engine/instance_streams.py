"""Instances of builds and runs as they are read from disk, one at a time, by every iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.engine.unsupported_media import ExclusionCounts, supports
from app.store.run_facts import ExcludedInstances
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import SourceError, SpecError
from benchmarks.hash_collections import DuplicateHashes
from benchmarks.prompt_template import Prompts
from benchmarks.vocabulary import Instance, Modality, Text

NOTHING_SELECTED = "these conditions, strata and limit select no instance; widen them."


@dataclass(frozen=True)
class BuildInstances:
    """The instances of a build under one prompt set, in order; those without sources, too, unless the build is varied."""

    benchmark: Benchmark
    build: Build
    prompt_set: Prompts

    def __iter__(self) -> Iterator[Instance]:
        with self.build.reading():
            for instance in self._read():
                _check_texts(instance)
                yield instance

    def _read(self) -> Iterator[Instance]:
        if not self.build.is_varied:
            return self.benchmark.all_instances(self.build, self.prompt_set)
        from benchmarks.factors.factor_instances import instances_of  # with the code that constructs passages

        # Without sources, all cells of a varied build would show the same.
        return instances_of(self.benchmark, self.build, self.prompt_set)


def _check_texts(instance: Instance) -> None:
    """Raise TypeError for an instance of an edited build that no run could be read with."""
    shown = (part.text for part in instance.parts if isinstance(part, Text))
    words = (word for words in instance.references.values() for word in words)
    own = (instance.id, instance.group, instance.condition, instance.question)
    for text in (*own, *instance.strata.values(), *shown, *words):
        if not isinstance(text, str):
            raise TypeError(f"a text is of the type {type(text).__name__}")


@dataclass(frozen=True)
class PartOfInstances:
    """The instances of the ``final`` examples of a question set, if ``is_final``, or of all others."""

    instances: Iterable[Instance]
    final: Collection[str]
    is_final: bool

    def __iter__(self) -> Iterator[Instance]:
        return (instance for instance in self.instances if (instance.group in self.final) == self.is_final)


@dataclass(frozen=True)
class RunInstances:
    """The instances of a run, in order: those of a selection that a model which takes ``takes`` can answer."""

    selection: Iterable[Instance]
    takes: Sequence[Modality]
    count: int

    def __iter__(self) -> Iterator[Instance]:
        return (instance for instance in self.selection if supports(instance, self.takes))

    def __len__(self) -> int:
        return self.count


NO_INSTANCES = RunInstances((), (), 0)


def run_instances(
    selection: Iterable[Instance], takes: Sequence[Modality], build: Build
) -> tuple[RunInstances, ExcludedInstances]:
    """Read a selection of a build's instances once, and return those that a model can answer and a count of the others.

    Raises SpecError if nothing is selected, SourceError if two instances have the same id.
    """
    counts, names = ExclusionCounts(takes), DuplicateHashes()
    for instance in selection:
        names.add(instance.id)
        counts.add(instance)
    excluded = counts.excluded()
    if not excluded.of:
        raise SpecError(NOTHING_SELECTED)
    if repeated := _first_repeated(selection, names.repeated()):
        raise SourceError(f"{build.path} holds the id {repeated!r} more than once; build it again.")
    return RunInstances(selection, takes, counts.supported), excluded


def _first_repeated(instances: Iterable[Instance], hashes: set[int]) -> str | None:
    """Return the first id that occurs more than once, given the hashes of those that may; None if there is none."""
    if not hashes:
        return None
    counts = Counter(instance.id for instance in instances if hash(instance.id) in hashes)
    return next((name for name, count in counts.items() if count > 1), None)
