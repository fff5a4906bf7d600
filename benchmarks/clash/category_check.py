"""How far our categories are the published ones: sample by sample, and by what a model scores in each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.clash.categories import split, word_lists
from benchmarks.clash.sample import Sample
from benchmarks.clash.terms import ATTRIBUTE_CATEGORIES, OBJECT_CATEGORIES, OTHER

Way = Literal["left out", "in each", "published"]
WAYS: tuple[Way, ...] = ("left out", "in each", "published")
"""What becomes of a sample of several categories: it is in no column, in each of its columns, or (by the published field)
in no column."""

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Difference:
    """A sample whose category is not the published one, and why."""

    image_id: str
    change_type: str
    original: str
    conflicting: str
    ours: str
    published: str
    cause: str


@dataclass(frozen=True, slots=True)
class Rate:
    """``hits`` of ``n`` samples of a column; ``value`` is n/a (None) for an empty one."""

    hits: int
    n: int

    @property
    def value(self) -> float | None:
        return self.hits / self.n if self.n else None


def differences(samples: Iterable[Sample]) -> Iterator[Difference]:
    """The samples whose category differs from their published one; those without a published one are passed over."""
    for s in samples:
        if s.published_category is None or set(split(s.published_category)) == set(split(s.category)):
            continue
        yield Difference(
            s.image_id,
            s.change_type,
            s.changed_original,
            s.changed_conflicting,
            s.category,
            s.published_category,
            _cause(s, s.published_category),
        )


def rates(hits: Sequence[tuple[Sample, bool]], way: Way) -> Mapping[str, Mapping[str, Rate]]:
    """The rate of hits in each column of Tables 8 and 9, by kind of change."""
    found: dict[str, dict[str, Rate]] = {}
    for kind, columns in (("object", OBJECT_CATEGORIES), ("attribute", ATTRIBUTE_CATEGORIES)):
        found[kind] = {}
        for category in columns:
            chosen = [hit for sample, hit in hits if sample.change_type == kind and category in _counted(sample, way)]
            found[kind][category] = Rate(sum(chosen), len(chosen))
    return found


def comes_out(rate: Rate, published: float, sd: float) -> bool:
    """Whether a published mean of 1,000 bootstrap resamples can have come from these counts.

    The mean of the resamples lies within 3 standard errors, ``sd / sqrt(1000)``, of the rate itself; ``published`` and
    ``sd`` are fractions, printed to four decimals.
    """
    return rate.value is not None and abs(rate.value - published) <= 3 * sd / math.sqrt(_RESAMPLES) + 5e-5


def _counted(sample: Sample, way: Way) -> tuple[str, ...]:
    names = split(sample.category if way != "published" else sample.published_category or "")
    return names if way == "in each" or len(names) == 1 else ()


def _cause(sample: Sample, published: str) -> str:
    if split(sample.category) != (OTHER,):
        return f"both words are in the printed list of {sample.category}"
    lists = word_lists().get(sample.change_type, {})
    words = (sample.changed_original.strip().lower(), sample.changed_conflicting.strip().lower())
    missing = [
        f"{word!r} is not in the printed list of {name}"
        for name in split(published)
        for word in words
        if word not in lists.get(name, frozenset())
    ]
    return "; ".join(missing)
