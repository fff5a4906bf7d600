"""Repeats: instances that a run asks several times, with sampled answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from benchmarks.protocols.protocols import Protocol
from benchmarks.vocabulary import Generation, Instance, Request, digest

REPEAT: Final = "repeat"
"""The key of ``Instance.strata`` with the number of the repeat, from 1 on; absent from a run that asks once."""

_MARK = "~repeat-"


def in_repeat(name: str, number: int) -> str:
    """Return the id of an instance or an example in a repeat; in the first, ``name`` itself."""
    return name if number == 1 else f"{name}{_MARK}{number}"


def split_repeat(name: str) -> tuple[str, int]:
    """Return the id that :func:`in_repeat` was given, and the number of the repeat."""
    base, mark, number = name.rpartition(_MARK)
    return (base, int(number)) if mark and number.isdecimal() else (name, 1)


@dataclass(frozen=True)
class RepeatedInstances:
    """Instances, those of each example once for every repeat; an example's instances of one repeat stand together.

    A repeat is an example of its own, with siblings of its own, that is in the cluster of the example it repeats.
    """

    instances: Iterable[Instance]
    repeats: int

    def __iter__(self) -> Iterator[Instance]:
        if self.repeats == 1:
            yield from self.instances
            return
        for _, example in groupby(self.instances, key=lambda instance: instance.group):
            siblings = list(example)
            for number in range(1, self.repeats + 1):
                for instance in siblings:
                    yield replace(
                        instance,
                        id=in_repeat(instance.id, number),
                        group=in_repeat(instance.group, number),
                        strata={**instance.strata, REPEAT: str(number)},
                    )


class RepeatedProtocol(Protocol):
    """A protocol whose requests have a seed of their own in each repeat after the first, derived from the run's."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self.name = protocol.name

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        request, (_, number) = self._protocol.next(instance, generations), split_repeat(instance.id)
        if request is None or number == 1:
            return request
        seed = int(digest([request.decoding.seed, REPEAT, number])[:8], 16)
        return replace(request, decoding=replace(request.decoding, seed=seed))
