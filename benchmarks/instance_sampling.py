"""Reproducible subsets of a benchmark's instances: equal on every machine."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.hash_collections import HashOrder, hash64
from benchmarks.varied_names import example_of
from benchmarks.vocabulary import WITHOUT_SOURCES, Instance


@dataclass(frozen=True)
class Selection:
    """The selected instances, in their original order. They are not held: every iteration reads ``instances`` again."""

    instances: Iterable[Instance]
    conditions: Collection[str] = ()
    named_only: Collection[str] = ()
    strata: Mapping[str, Collection[str]] = field(default_factory=dict)
    seed: int = 0
    drawn: Sequence[int] | None = None
    """The sorted ranks of the drawn examples; None for all."""

    def __iter__(self) -> Iterator[Instance]:
        if self.drawn is None:
            yield from self._matching()
            return
        for instance, rank in _ranked(self._matching(), self.seed):
            place = bisect_left(self.drawn, rank)
            if place < len(self.drawn) and self.drawn[place] == rank:
                yield instance

    def _matching(self) -> Iterator[Instance]:
        return (
            i
            for i in self.instances
            if self._has_condition(i.condition)
            and all(i.strata.get(key) in values for key, values in self.strata.items())
        )

    def _has_condition(self, condition: str) -> bool:
        if condition in self.named_only:
            return condition in self.conditions or WITHOUT_SOURCES in self.conditions
        return condition in self.conditions or {*self.conditions} <= {WITHOUT_SOURCES}


def select(
    instances: Iterable[Instance],
    *,
    stratify_by: str,
    seed: int,
    limit: int | None = None,
    conditions: Collection[str] | None = None,
    named_only: Collection[str] = (),
    strata: Mapping[str, Collection[str]] | None = None,
) -> Selection:
    """Return the selected instances, in their original order.

    ``instances`` are iterated up to three times, and again by every iteration of the result; an iterator is read into a list.
    Otherwise they are not held in memory, only 16 bytes of an example if there is a ``limit``.

    ``conditions`` and ``strata`` (key to values) filter instances; None or an empty collection selects all, except
    for the conditions ``named_only``, which have to be named; ``WITHOUT_SOURCES`` among the names adds all of them. A filter may
    remove single instances of an example; ``limit`` then selects or drops the rest of the example as a whole. ``limit``
    counts examples (groups) and is divided among the values of ``strata[stratify_by]`` by largest remainder. Only ``seed``
    and the groups' ids decide which examples are drawn. Raises SpecError for an unknown name, for a ``limit`` below 1, and
    if no instance remains.
    """
    if limit is not None and limit < 1:
        raise SpecError(f"the limit is {limit}, but must be at least 1; it counts examples.")
    if iter(instances) is instances:
        instances = list(instances)
    selection = Selection(
        instances,
        frozenset(conditions or ()),
        frozenset(named_only),
        {key: frozenset(values) for key, values in (strata or {}).items() if values},
        seed,
    )
    if selection.conditions or selection.strata:
        _check_names(instances, conditions or (), selection)
        if next(iter(selection), None) is None and next(iter(instances), None) is not None:
            raise SpecError("no instance matches all of the conditions and strata; name fewer of them.")
    if limit is None:
        return selection
    drawn = _drawn_groups(selection, limit, stratify_by, seed)
    return replace(selection, drawn=drawn)


def _check_names(instances: Iterable[Instance], conditions: Collection[str], selection: Selection) -> None:
    """Raise SpecError for a condition, stratum key or stratum value that no instance has."""
    filters = selection.strata
    known_conditions: dict[str, None] = {}
    known_keys: dict[str, None] = {}
    sought: set[tuple[str, str | None]] = {(key, value) for key, values in filters.items() for value in values}
    for instance in instances:
        known_conditions[instance.condition] = None
        if filters:
            known_keys.update(dict.fromkeys(instance.strata))
            sought.difference_update((key, instance.strata.get(key)) for key in filters)
    if WITHOUT_SOURCES in conditions and not known_conditions.keys() & selection.named_only:
        raise SpecError(f"this build has no condition that leaves sources out; leave {WITHOUT_SOURCES} out.")
    for name in conditions:
        if name not in known_conditions and name != WITHOUT_SOURCES:
            raise SpecError(f"no condition {name!r}; {did_you_mean(name, known_conditions)}")
    for key, values in filters.items():
        if key not in known_keys:
            raise SpecError(f"no stratum {key!r}; {did_you_mean(key, known_keys)}")
        for value in sorted(values):
            if (key, value) in sought:
                known_values = dict.fromkeys(i.strata[key] for i in instances if key in i.strata)
                raise SpecError(f"no {key} {value!r}; {did_you_mean(value, known_values)}")


def _ranked(instances: Iterable[Instance], seed: int) -> Iterator[tuple[Instance, int]]:
    """Yield instances, each with the rank of its group: the hash by which groups are shuffled.

    The repetitions of an example in a varied build have the same rank, and are drawn together.
    """
    group, rank = None, 0
    for instance in instances:
        if instance.group != group:  # siblings are mostly neighbours
            group = instance.group
            rank = hash64(f"{seed}|subset|{example_of(group)}")
        yield instance, rank


def _drawn_groups(instances: Iterable[Instance], limit: int, stratify_by: str, seed: int) -> array[int]:
    """Return the sorted ranks of ``limit`` groups, drawn from each stratum in proportion to its size."""
    numbers: dict[str, int] = {}
    order, before = HashOrder(), None
    for instance, rank in _ranked(instances, seed):
        if rank != before:
            stratum = instance.strata.get(stratify_by, "")
            order.add(rank, numbers.setdefault(stratum, len(numbers)))
            before = rank
    sizes = [0] * len(numbers)
    for _, number in _distinct_ranks(order):
        sizes[number] += 1
    shares = _largest_remainder({name: sizes[number] for name, number in numbers.items()}, limit)
    remaining = [shares[name] for name in numbers]
    drawn = array("Q")
    for rank, number in _distinct_ranks(order):
        if remaining[number]:
            remaining[number] -= 1
            drawn.append(rank)
    return drawn


def _distinct_ranks(order: HashOrder) -> Iterator[tuple[int, int]]:
    """Yield each rank once, with the stratum of its group's first instance."""
    before = None
    for rank, number in order:
        if rank != before:
            yield rank, number
            before = rank


def _largest_remainder(sizes: Mapping[str, int], seats: int) -> dict[str, int]:
    """Return the number of ``seats`` of each name, in proportion to ``sizes`` (largest remainder method)."""
    total = sum(sizes.values())
    seats = min(seats, total)
    shares = {name: seats * size // total for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(seats * sizes[name] % total), name))
    for name in by_remainder[: seats - sum(shares.values())]:
        shares[name] += 1
    return shares
