"""A part of a benchmark's instances: the same one every time, on every machine."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from benchmarks.base import Instance, did_you_mean
from benchmarks.errors import SpecError


def select(
    instances: Iterable[Instance],
    *,
    stratify_by: str,
    seed: int,
    limit: int | None = None,
    conditions: Collection[str] | None = None,
    strata: Mapping[str, Collection[str]] | None = None,
) -> list[Instance]:
    """The chosen instances, in their order.

    ``conditions`` and ``strata`` (key to wanted values) keep the instances that have what they name, None or empty keeps
    all. A condition, or a stratum that differs within an example, takes single instances out of it; what is left of an
    example ``limit`` takes or leaves whole. ``limit`` counts examples (groups), shared out over the values of
    ``strata[stratify_by]`` by largest remainder; which ones is decided by ``seed`` and the group's id alone. Raises
    SpecError for a name that does not occur, for a ``limit`` below 1, and where nothing is left.
    """
    if limit is not None and limit < 1:
        raise SpecError(f"the limit is {limit}; it counts examples and must be at least 1.")
    every = list(instances)
    wanted = {key: set(values) for key, values in (strata or {}).items() if values}
    _check_names(every, conditions or (), wanted)
    kept = [
        i
        for i in every
        if (not conditions or i.condition in conditions)
        and all(i.strata.get(key) in values for key, values in wanted.items())
    ]
    if every and not kept:
        raise SpecError("no instance has all of the conditions and strata that were asked for; name fewer of them.")
    if limit is None:
        return kept
    chosen = _chosen_groups(kept, limit, stratify_by, seed)
    return [i for i in kept if i.group in chosen]


def _check_names(every: list[Instance], conditions: Collection[str], wanted: Mapping[str, Collection[str]]) -> None:
    known_conditions = dict.fromkeys(i.condition for i in every)
    for name in conditions:
        if name not in known_conditions:
            raise SpecError(f"there is no condition {name!r}; {did_you_mean(name, known_conditions)}")
    known_keys = dict.fromkeys(key for i in every for key in i.strata)
    for key, values in wanted.items():
        if key not in known_keys:
            raise SpecError(f"there is no stratum {key!r}; {did_you_mean(key, known_keys)}")
        known_values = dict.fromkeys(i.strata[key] for i in every if key in i.strata)
        for value in sorted(values):
            if value not in known_values:
                raise SpecError(f"there is no {key} {value!r}; {did_you_mean(value, known_values)}")


def _chosen_groups(kept: list[Instance], limit: int, stratify_by: str, seed: int) -> set[str]:
    stratum: dict[str, str] = {}
    for instance in kept:
        stratum.setdefault(instance.group, instance.strata.get(stratify_by, ""))
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for group, name in stratum.items():
        groups[name].append(group)
    shares = _largest_remainder({name: len(ids) for name, ids in groups.items()}, limit)
    return {
        group for name, ids in groups.items() for group in sorted(ids, key=lambda g: _rank(seed, g))[: shares[name]]
    }


def _largest_remainder(sizes: Mapping[str, int], seats: int) -> dict[str, int]:
    total = sum(sizes.values())
    seats = min(seats, total)
    shares = {name: seats * size // total for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(seats * sizes[name] % total), name))
    for name in by_remainder[: seats - sum(shares.values())]:
        shares[name] += 1
    return shares


def _rank(seed: int, group: str) -> str:
    return hashlib.sha256(f"{seed}|subset|{group}".encode("utf-8", "surrogatepass")).hexdigest()
