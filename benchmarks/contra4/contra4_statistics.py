"""Statistics of a build's samples: by category (Figure 6) and by combination of modalities (Figure 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from benchmarks.contra4.contra4_constants import COMBINATIONS, NO_CATEGORY
from benchmarks.contra4.contra4_sample import Contra4Sample
from benchmarks.vocabulary import Table

_MOST_SPLITS = 3
"""The number of panels that fit side by side on a page; the samples of more splits are counted together."""

_MOST_VALUES = 20
"""The number of values of a split that have a bar of their own; rows of one's own can have any number of categories."""

_ROWS = list[tuple[str, tuple[int, ...]]]


def statistics_tables(samples: Sequence[Contra4Sample]) -> list[Table]:
    """Return the statistics as tables to draw, in a panel for each split: ``categories`` and ``modalities``.

    A split whose samples have no category is not among the categories.
    """
    splits: dict[str, list[Contra4Sample]] = {}
    for sample in samples:
        splits.setdefault(sample.split or sample.source, []).append(sample)
    if len(splits) > _MOST_SPLITS:
        splits = {f"{len(splits)} files": list(samples)}
    categorised = {
        split: members for split, members in splits.items() if any(sample.category != NO_CATEGORY for sample in members)
    }
    return [
        _table("categories", "Samples by category (Figure 6)", _rows(categorised, lambda sample: sample.category)),
        _table(
            "modalities",
            "Samples by their modalities (Figure 7)",
            _rows(splits, lambda sample: sample.modalities, COMBINATIONS),
        ),
    ]


def _rows(
    splits: Mapping[str, Sequence[Contra4Sample]], key: Callable[[Contra4Sample], str], first: Sequence[str] = ()
) -> _ROWS:
    """Return how many samples of each split have each value: the values of ``first`` in order, others by their counts.

    The rarest of more than 20 other values are counted together.
    """
    rows: _ROWS = []
    for split, members in splits.items():
        counts = Counter(map(key, members))
        others = sorted(counts.keys() - set(first), key=lambda value: (-counts[value], value))
        bars = [(value, counts[value]) for value in (*first, *others[:_MOST_VALUES])]
        if rest := others[_MOST_VALUES:]:
            bars.append((f"{len(rest)} others", sum(counts[value] for value in rest)))
        rows += [(f"{split}, {len(members):,} samples / {value}", (count,)) for value, count in bars]
    return rows


def _table(name: str, title: str, rows: _ROWS) -> Table:
    return Table(name, title, ("samples",), tuple(rows), chart="counts")
