"""The rates of all types of the data, types that the paper does not name among them, weighted by their instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.mmkc_bench.mmkc_constants import (
    CONDITIONS,
    DATASETS,
    DETECTION_CONDITIONS,
    RATES,
    ROW_TYPES,
    dataset_of,
)
from benchmarks.mmkc_bench.mmkc_metrics import shares
from benchmarks.tables.declared_tables import Column, Grid, Sheets
from benchmarks.vocabulary import Cell, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NAME = "all-types"

_LABELS = (*RATES, "CORRECT", "WRONG")
_RATES = {
    condition: {"CORRECT": "Accuracy"} if condition in DETECTION_CONDITIONS else RATES for condition in CONDITIONS
}
"""The labels whose shares are displayed under each condition, with the names of these."""


def unnamed_types(runs: Mapping[str, Answers]) -> tuple[str, ...]:
    """Return the types of the answers that the paper does not name, sorted."""
    types = {kind.strata.get("type", "") for answers in runs.values() for kind in answers.kinds}
    return tuple(sorted(types.difference(ROW_TYPES, ("",))))


def all_types_table(runs: Mapping[str, Answers], parts: Sequence[Sheets]) -> Table | None:
    """Return the table of all types of ``runs``, with the rows of each of ``parts``; None if the paper names all of them."""
    unnamed = unnamed_types(runs)
    if not unnamed:
        return None
    kinds = (*ROW_TYPES, *unnamed)
    datasets = (*DATASETS, *unnamed)
    grid = Grid(
        (len(CONDITIONS), len(kinds), len(_LABELS)),
        lambda kind, labels: _places(kind, labels, kinds),
    )
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for sheets in parts:
        for run, answers in sheets.runs.items():
            counts = answers.count(lambda kind: (kind.strata.get("type", ""), kind.condition))
            for place, condition in enumerate(CONDITIONS):
                asked = {kind for kind in kinds if counts[kind, condition]}
                for label, rate in _RATES[condition].items() if asked else ():
                    columns = _columns(kinds, datasets, asked, _examples_by_type(counts), _LABELS.index(label))
                    cells = sheets.sheet(run, grid).cells(columns, place)
                    rows.append((f"{run} / {condition} / {rate}", cells))
    notes = (
        f"Unknown types, which the paper does not name: {', '.join(unnamed)}. The paper's tables leave them out.",
        "EK: unweighted mean of its sub-types. Avg.: of the types that a condition asks about, weighted by their instances in "
        "the data.",
        "Intervals: 95%, over entities, each with all its facts.",
    )
    return parts[0].finish(NAME, "All types of the data", (*datasets, "Avg."), rows, *notes)


def _places(kind: AnswerKind, labels: Iterable[str], kinds: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    row_type = kind.strata.get("type")
    if row_type in kinds and kind.condition in CONDITIONS:
        at = CONDITIONS.index(kind.condition), kinds.index(row_type)
        yield from ((*at, _LABELS.index(label)) for label in labels if label in _LABELS)


def _examples_by_type(counts: Mapping[tuple[str, str], int]) -> Mapping[str, int]:
    """Return the number of examples of each type: the most answers under a condition, which has one of each."""
    examples: Counter[str] = Counter()
    for (row_type, _), count in counts.items():
        examples[row_type] = max(examples[row_type], count)
    return examples


def _columns(
    kinds: Sequence[str], datasets: Sequence[str], asked: Collection[str], examples: Mapping[str, int], outcome: int
) -> Iterator[Column]:
    """Yield a column for each data set, and their average weighted by the examples, of the types that a condition asks about."""
    members = {
        dataset: [i for i, kind in enumerate(kinds) if dataset_of(kind) == dataset and kind in asked]
        for dataset in datasets
    }
    weights = {
        dataset: sum(examples[kind] for kind in kinds if dataset_of(kind) == dataset)
        for dataset, places in members.items()
        if places
    }

    def share(dataset: str, counts: Array) -> Array:
        places = members[dataset]
        if not places:
            return np.full(counts.shape[:-2], np.nan)
        value: Array = shares(counts, outcome)[..., places].mean(-1)
        return value

    def mean(counts: Array) -> Array:
        total: Array = sum(weight * share(dataset, counts) for dataset, weight in weights.items()) / sum(
            weights.values()
        )  # type: ignore[assignment]
        return total

    for name in datasets:
        yield Column(
            lambda counts, name=name: share(name, counts),  # type: ignore[misc]
            lambda totals, name=name: totals[members[name]].sum(),  # type: ignore[misc]
            lambda totals: "no answer that counts",
        )
    yield Column(mean, reason=lambda totals: "a type has no answer that counts")
