"""The kinds of intervals and tests that are measured, and their rates."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from benchmarks.stats.calibration import MIN_CLUSTERS
from docs.simulated_clusters import BORROWED, DESIGNS, FEW, Array, Design, Study
from docs.simulated_estimates import (
    WIDTH,
    Results,
    area,
    bootstrap_ratio,
    bootstrap_share,
    brier,
    calibration_error,
    condition_difference,
    curve,
    independent_share,
    log_odds,
    mean_less_task,
    paired_difference,
    ratio_difference,
    share,
    share_of_some,
    stopped_share,
    task_mean,
    unpaired_difference,
)
from docs.simulated_tests import (
    agreement,
    corrected,
    mean_utility,
    non_inferiority,
    paired_test,
    ratio_test,
    uneven_test,
)

REPLICATES = 10_000
BOOTSTRAP_REPLICATES, CURVE_REPLICATES = 2_000, 1_000
"""The replicates of an interval by the bootstrap, and of one for a fitted curve."""
REFINED, DOUBT = 5, 3
"""A rate that misses its bound by less than ``DOUBT`` standard errors is measured anew, with this many times the replicates."""

LEAST, MOST_REJECTED = 0.93, 0.06


class Scenario(NamedTuple):
    """The arguments of a kind; ``usual`` for shares between .1 and .9."""

    arguments: tuple[float, ...]
    usual: bool = True


@dataclass(frozen=True)
class Kind:
    """Intervals or tests of a kind, as a function of a study and a scenario that yields what it found in each replicate."""

    names: tuple[str, ...]
    measure: Callable[..., Results]
    scenarios: tuple[Scenario, ...]
    most: int = REPLICATES
    """The most replicates."""
    test: bool = False
    designs: tuple[Design, ...] = DESIGNS

    def fails(self, rate: float, replicates: int) -> bool:
        """Return whether a coverage, or a rate of false positives, misses its bound by more than two standard errors."""
        bound = MOST_REJECTED if self.test else LEAST
        error = 2 * math.sqrt(bound * (1 - bound) / replicates)
        return rate > bound + error if self.test else rate < bound - error

    def is_doubtful(self, rate: float, replicates: int) -> bool:
        """Return whether a rate misses its bound, but by less than ``DOUBT`` standard errors."""
        bound = MOST_REJECTED if self.test else LEAST
        missed = rate - bound if self.test else bound - rate
        return 0 < missed < DOUBT * math.sqrt(bound * (1 - bound) / replicates)


def _scenarios(*arguments: tuple[float, ...], rare: Sequence[tuple[float, ...]] = ()) -> tuple[Scenario, ...]:
    return (*map(Scenario, arguments), *(Scenario(of, usual=False) for of in rare))


_TRUE_SHARES = _scenarios((0.1,), (0.3,), (0.5,), (0.9,))
_CHANGES = _scenarios((0.05, 0.15), (0.3, 0.3), rare=[(0.02, 0.02), (0.0, 0.03)])
_PAIRS = _scenarios((0.5, 0.5), (0.3, 0.5), (0.9, 0.8), (0.1, 0.1))
_CONFIDENT = _scenarios((1.5, 0.5), (1.0, 0.2), (0.5, -0.5))
_RATIOS = _scenarios((0.5, 0.6, 0.6), (0.1, 0.6, 0.6))
_MANY = tuple(design for design in DESIGNS if len(design.sizes) >= MIN_CLUSTERS)
_SINGLE = DESIGNS[-1:]

SECTIONS: Mapping[str, tuple[Kind, ...]] = {
    "Shares": (
        Kind(("share",), share, _TRUE_SHARES),
        Kind(("share of the answers that count",), share_of_some, _TRUE_SHARES),
        Kind((f"share, stopped at a width of {WIDTH:g}",), stopped_share, _TRUE_SHARES),
        Kind(("share of independent items",), independent_share, _TRUE_SHARES, designs=_SINGLE),
        Kind(("share in a benchmark's table",), bootstrap_share, _TRUE_SHARES, most=BOOTSTRAP_REPLICATES),
        Kind(("share among some labels",), bootstrap_ratio, _TRUE_SHARES, most=BOOTSTRAP_REPLICATES),
        Kind(("mean of three tasks",), task_mean, _TRUE_SHARES),
    ),
    "Differences": (
        Kind(("two runs",), paired_difference, _CHANGES),
        Kind(("two conditions of a run",), condition_difference, _CHANGES, most=BOOTSTRAP_REPLICATES),
        Kind(("two runs, share among some labels",), ratio_difference, _PAIRS, most=BOOTSTRAP_REPLICATES),
        Kind(("two studies",), unpaired_difference, _PAIRS),
        Kind(("mean of two tasks less a third",), mean_less_task, _TRUE_SHARES),
    ),
    "Confidences, curves, agreement, utility": (
        Kind(("Brier score",), brier, _CONFIDENT, most=BOOTSTRAP_REPLICATES),
        Kind(("calibration error",), calibration_error, _CONFIDENT, most=BOOTSTRAP_REPLICATES, designs=_MANY),
        Kind(("AUROC",), area, _scenarios((0.5, 0.5), (0.5, 0.75), (0.2, 0.75), rare=[(0.5, 0.95)])),
        Kind(("point of equality", "slope of a curve"), curve, _scenarios((-2.0, 4.0)), most=CURVE_REPLICATES),
        Kind(("mean log-odds",), log_odds, _scenarios((0.0,), (0.5,)), most=BOOTSTRAP_REPLICATES),
        Kind(
            ("agreement", "kappa", "AC1"),
            agreement,
            _scenarios((0.6, 0.5, 0.3, 0.2), (0.8, 0.5, 0.5), rare=[(0.6, 0.9, 0.1)]),
            most=BOOTSTRAP_REPLICATES,
        ),
        Kind(
            ("utility",),
            mean_utility,
            _scenarios((0.2, 0.3, 0.4), (0.1, 0.1, 0.1), rare=[(0.05, 0.02, 0.03)]),
            most=BOOTSTRAP_REPLICATES,
        ),
    ),
    "A judge and people": (
        Kind(
            ("corrected", "by people alone", "by the judge alone"), corrected, _TRUE_SHARES, most=BOOTSTRAP_REPLICATES
        ),
    ),
}
"""The kinds of intervals, by the heading of their table."""

TESTS: tuple[Kind, ...] = (
    Kind(("p of two runs",), paired_test, _scenarios((0.02,), (0.1,), (0.3,)), test=True),
    Kind(("p of two runs, uneven changes",), uneven_test, _scenarios((0.02,), (0.1,), (0.3,)), test=True),
    Kind(
        ("p of a share among some labels",),
        ratio_test,
        _RATIOS,
        most=BOOTSTRAP_REPLICATES,
        test=True,
    ),
    Kind(
        ("p of a share among some labels, one run abstains more",),
        ratio_test,
        _scenarios((0.5, 0.8, 0.4), (0.1, 0.8, 0.4)),
        most=BOOTSTRAP_REPLICATES,
        test=True,
    ),
    Kind(
        ("not worse than the margin",),
        non_inferiority,
        _scenarios((0.0, 0.03), (0.02, 0.05), (0.05, 0.15), (0.3, 0.3)),
        test=True,
    ),
)

_BORROWED_SHARES = _scenarios((0.3,), (0.5,))
BORROWED_CORRELATIONS = (0.2, 0.6)
BORROWED_KINDS: tuple[Kind, ...] = (
    Kind(("share",), share, _BORROWED_SHARES),
    Kind(("share in a benchmark's table",), bootstrap_share, _BORROWED_SHARES, most=BOOTSTRAP_REPLICATES),
    Kind(("difference of two runs",), paired_difference, _scenarios((0.05, 0.15), (0.3, 0.3))),
    Kind(("AUROC",), area, _scenarios((0.5, 0.75))),
    Kind(("p of two runs",), paired_test, _scenarios((0.1,), (0.3,)), test=True),
    Kind(("p of a share among some labels",), ratio_test, _RATIOS, most=BOOTSTRAP_REPLICATES, test=True),
)


@dataclass(frozen=True)
class Rate:
    """A measured coverage, or rate of false positives: the least or worst of the scenarios, and each of these."""

    kind: Kind
    name: str
    design: Design
    correlation: float
    borrowed: str
    rates: tuple[float, ...]
    replicates: tuple[int, ...]
    undefined: float
    """The greatest share of a scenario's replicates that have no interval; they do not count."""

    @property
    def worst(self) -> float:
        """The least coverage, or the highest rate of false positives."""
        return max(self.rates) if self.kind.test else min(self.rates)

    @property
    def failing(self) -> tuple[Scenario, ...]:
        """The scenarios that miss their bound."""
        of_each = zip(self.kind.scenarios, self.rates, self.replicates, strict=True)
        return tuple(scenario for scenario, rate, size in of_each if self.kind.fails(rate, size))

    @property
    def fails(self) -> bool:
        """True if a scenario misses its bound."""
        return bool(self.failing)

    @property
    def usual(self) -> list[float]:
        """The rates that count for the mean coverage."""
        if len(self.design.sizes) < FEW:
            return []
        return [rate for rate, scenario in zip(self.rates, self.kind.scenarios, strict=True) if scenario.usual]


def measure(
    kind: Kind, design: Design, correlation: float, replicates: int = REPLICATES, borrowed: str = ""
) -> list[Rate]:
    """Return the rates of a kind in a design, one for each of its names."""
    fewest = min(replicates, kind.most)
    rates, sizes, undefined = [], [], np.zeros(len(kind.names))
    for number, scenario in enumerate(kind.scenarios):
        key = "|".join(map(str, (*kind.names, design.name, correlation, borrowed, number)))
        random = np.random.default_rng(zlib.crc32(key.encode()))
        study = Study(random, np.array(design.sizes), correlation, fewest, BORROWED.get(borrowed))
        results = _results(kind, study, scenario)
        if fewest < replicates and any(kind.is_doubtful(rate, fewest) for rate in np.nanmean(results, 0).tolist()):
            more = min(replicates, REFINED * fewest)
            results = _results(kind, replace(study, replicates=more), scenario)
        rates.append(np.nanmean(results, 0).tolist())
        sizes.append(len(results))
        undefined = np.maximum(undefined, np.isnan(results).mean(0))
    return [
        Rate(kind, name, design, correlation, borrowed, tuple(of[place] for of in rates), tuple(sizes), float(missing))
        for place, (name, missing) in enumerate(zip(kind.names, undefined, strict=True))
    ]


def _results(kind: Kind, study: Study, scenario: Scenario) -> Array:
    results = np.array(list(kind.measure(study, *scenario.arguments)), float)
    return results.reshape(study.replicates, len(kind.names))
