"""Instances of a large build in a temporary file, for forms that come back to them as the user types."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from benchmarks.lazy_sequence import LazySequence
from benchmarks.rows.record_file import RecordFile
from benchmarks.vocabulary import Instance, instance_from_json, instance_to_json

_HELD = 50_000
"""The most instances that are held in memory, some 60 MB."""


def held_instances(instances: Iterator[Instance]) -> Sequence[Instance]:
    """Return instances as a sequence: a tuple if there are few of them, otherwise in a temporary file."""
    first = tuple(islice(instances, _HELD))
    following = next(instances, None)
    return first if following is None else InstanceFile(chain(first, [following], instances))


class InstanceFile(LazySequence[Instance]):
    """Instances in a temporary file; memory holds 12 bytes of each."""

    def __init__(self, instances: Iterable[Instance]) -> None:
        self._records = RecordFile()
        for instance in instances:
            self._records.append(instance_to_json(instance))

    def __len__(self) -> int:
        return len(self._records)

    def item(self, place: int) -> Instance:
        return instance_from_json(self._records[place])


@dataclass(frozen=True)
class InstanceSubset(LazySequence[Instance]):
    """The instances at ``places`` of ``instances``, in that order."""

    instances: Sequence[Instance]
    places: array[int]

    def __len__(self) -> int:
        return len(self.places)

    def item(self, place: int) -> Instance:
        return self.instances[self.places[place]]


class PlacedInstances:
    """Instances whose iteration sets ``place`` to the place of the one that it yields."""

    def __init__(self, instances: Sequence[Instance]) -> None:
        self._instances = instances
        self.place = -1

    def __iter__(self) -> Iterator[Instance]:
        for place, instance in enumerate(self._instances):
            self.place = place
            yield instance
