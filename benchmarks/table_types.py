"""Result tables, their cells, and metrics that are made of counts of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Chart = Literal[
    "stacked",
    "turned",
    "bars",
    "heat",
    "counts",
    "sunburst",
    "risk-coverage",
    "reliability",
    "confidence",
    "preference",
    "curves",
    "lines",
]


@dataclass(frozen=True, slots=True, eq=False)
class LabelMetrics:
    """Figures that are made of counts of labels.

    Each of ``of`` is a function of an array of counts of shape (..., conditions, labels) and returns shape (...); counts
    need not be whole numbers, and nan is undefined. Two of them are equal only if they are one object.
    """

    conditions: tuple[str, ...]
    labels: tuple[str, ...]
    of: Mapping[str, Callable[[Any], Any]]
    unparsed: str | None = None
    """The label that an answer without one counts as, where the counts are of answers; see :meth:`Benchmark.answer_metrics`."""
    lower_is_better: Mapping[str, bool] = field(default_factory=dict)
    """True for a metric of which lower values are better, False for higher ones; no entry where neither is, as for a bias."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval. ``value`` None is n/a, and ``reason`` says why. ``n`` is the number of answers behind it.

    ``sd`` is the bootstrap standard deviation, if a paper prints it. ``missing`` is the number of answers that it would rest on,
    too, had they a label.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str = ""
    sd: float | None = None
    missing: int = 0


Cell = Estimate | str | int | None


@dataclass(frozen=True, slots=True)
class Table:
    """A result table: ``rows`` are (row label, cells in the order of ``columns``)."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...] = ()
    percent: bool = False
    """Flag to display its values, which are fractions, in percent, as the paper does."""
    judges: tuple[str, ...] | None = None
    """The judges whose labels it uses, if not those of the requested judge; empty if it uses none."""
    chart: Chart | None = None
    """The kind of its figure, None for no figure. ``stacked`` has shares that fill a bar; ``bars``, ``lines`` and ``heat`` take
    any columns; ``risk-coverage`` takes the coverage and the risk, ``reliability`` the confidence and the share that is right,
    ``confidence`` a mean for each column, ``preference`` log-odds and the columns of labels.

    Rows of one plot are named ``RUN / WHAT``; for shares as rows (``turned``), ``RUN / WHAT / SHARE``, and each column is a bar;
    of ``curves``, ``RUN / FACTOR / DOSE``. Tables of a build's examples have ``counts``: as bars in panels (``PANEL / WHAT``), or
    of phrases as a ``sunburst`` of their words."""
    drawn: tuple[str, ...] = ()
    """The columns that its figure shows; empty for all."""
    published: int = 0
    """The number of its last rows that are a paper's; two notes at the end are on them."""
