"""Reproducible subsets of a benchmark's instances: equal on every machine."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.vocabulary import Instance


def select(
    instances: Iterable[Instance],
    *,
    stratify_by: str,
    seed: int,
    limit: int | None = None,
    conditions: Collection[str] | None = None,
    strata: Mapping[str, Collection[str]] | None = None,
) -> list[Instance]:
    """Return the selected instances, in their original order.

    ``conditions`` and ``strata`` (key to values) filter instances; None or an empty collection selects all. A filter may
    remove single instances of an example; ``limit`` then selects or drops the rest of the example as a whole. ``limit``
    counts examples (groups) and is divided among the values of ``strata[stratify_by]`` by largest remainder. Only ``seed``
    and the groups' ids decide which examples are drawn. Raises SpecError for an unknown name, for a ``limit`` below 1, and
    if no instance remains.
    """
    if limit is not None and limit < 1:
        raise SpecError(f"the limit is {limit}, but must be at least 1; it counts examples.")
    candidates = list(instances)
    filters = {key: set(values) for key, values in (strata or {}).items() if values}
    _check_names(candidates, conditions or (), filters)
    matching = [
        i
        for i in candidates
        if (not conditions or i.condition in conditions)
        and all(i.strata.get(key) in values for key, values in filters.items())
    ]
    if candidates and not matching:
        raise SpecError("no instance matches all of the conditions and strata; name fewer of them.")
    if limit is None:
        return matching
    groups = _drawn_groups(matching, limit, stratify_by, seed)
    return [i for i in matching if i.group in groups]


def _check_names(
    instances: list[Instance], conditions: Collection[str], filters: Mapping[str, Collection[str]]
) -> None:
    """Raise SpecError for a condition, stratum key or stratum value that no instance has."""
    known_conditions = dict.fromkeys(i.condition for i in instances)
    for name in conditions:
        if name not in known_conditions:
            raise SpecError(f"no condition {name!r}; {did_you_mean(name, known_conditions)}")
    known_keys = dict.fromkeys(key for i in instances for key in i.strata)
    for key, values in filters.items():
        if key not in known_keys:
            raise SpecError(f"no stratum {key!r}; {did_you_mean(key, known_keys)}")
        known_values = dict.fromkeys(i.strata[key] for i in instances if key in i.strata)
        for value in sorted(values):
            if value not in known_values:
                raise SpecError(f"no {key} {value!r}; {did_you_mean(value, known_values)}")


def _drawn_groups(instances: list[Instance], limit: int, stratify_by: str, seed: int) -> set[str]:
    """Return the ids of ``limit`` groups, drawn from each stratum in proportion to its size."""
    stratum: dict[str, str] = {}
    for instance in instances:
        stratum.setdefault(instance.group, instance.strata.get(stratify_by, ""))
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for group, name in stratum.items():
        groups[name].append(group)
    shares = _largest_remainder({name: len(ids) for name, ids in groups.items()}, limit)
    return {
        group for name, ids in groups.items() for group in sorted(ids, key=lambda g: _rank(seed, g))[: shares[name]]
    }


def _largest_remainder(sizes: Mapping[str, int], seats: int) -> dict[str, int]:
    """Return the number of ``seats`` of each name, in proportion to ``sizes`` (largest remainder method)."""
    total = sum(sizes.values())
    seats = min(seats, total)
    shares = {name: seats * size // total for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(seats * sizes[name] % total), name))
    for name in by_remainder[: seats - sum(shares.values())]:
        shares[name] += 1
    return shares


def _rank(seed: int, group: str) -> str:
    """Return the key by which a stratum's groups are shuffled."""
    return hashlib.sha256(f"{seed}|subset|{group}".encode("utf-8", "surrogatepass")).hexdigest()
