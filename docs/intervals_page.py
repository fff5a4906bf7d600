"""The page "Intervals": the measured coverage of every interval, and the false positives of every test.

``.venv/bin/python docs/intervals_page.py [REPLICATES]`` simulates studies whose truth is known, computes the intervals with the
code that computes those of the tables, and writes ``docs/intervals.md``. The default takes 17 minutes of one core.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from docs.coverage_rates import (
    BOOTSTRAP_REPLICATES,
    BORROWED_CORRELATIONS,
    BORROWED_KINDS,
    CURVE_REPLICATES,
    DOUBT,
    LEAST,
    MOST_REJECTED,
    REFINED,
    REPLICATES,
    SECTIONS,
    TESTS,
    Kind,
    Rate,
    measure,
)
from docs.simulated_clusters import BORROWED, CORRELATIONS, DESIGNS, FEW, Design

PAGE = Path(__file__).with_name("intervals.md")
REFERENCE = "*Reference. New here? [Three paths](pages.md).*"

MEANS = (0.93, 0.97)
"""The range of the mean coverage over the usual cells: at least 20 clusters, and shares between .1 and .9."""


_CLUSTERS = """\
A cluster is all answers that share a picture, a page or a document. They are right or wrong together, so 10 questions about one
page are less evidence than questions about 10 pages. An answer that also shows a page of another cluster, such as a borrowed
picture, counts in both. One cluster alone gives no interval. Quantiles are Student's, with one degree of freedom less than there
are clusters.""".replace("\n", " ")

_METHODS = (
    ("share of answers", "score interval of the effective sample size, by sums over clusters", "clustered_wilson"),
    ("other metric between 0 and 1", "the same, by what each cluster adds to the metric", "metric_estimate"),
    ("mean of tasks", "the same, by the lesser of two effective sizes", "macro_average"),
    (
        "difference of two runs' shares",
        "from the intervals of gains and losses (Zou and Donner 2008)",
        "share_difference",
    ),
    ("other difference, kappa, AC1", "bootstrap variance, two half clusters (Bonett and Price 2012)", "estimate"),
    ("difference of two studies", "from both intervals (Newcombe 1998)", "independent_difference"),
    ("slope, mean log-odds", "Student's, by the variance of the bootstrap", "estimate"),
    ("point of equality", "bootstrap percentiles, widened (Hesterberg 2015)", "estimate"),
    ("calibration error", "basic bootstrap, from 0 where chance explains it", "calibration_error_estimate"),
    ("AUROC", "the share's, by the variance over clusters (Obuchowski 1997)", "auroc_estimate"),
    ("judge corrected by people", "the share's, by the bootstrap of PPI (Zrnic 2024)", "correct"),
    ("p of a share of all answers", "the larger of the interval's and the sign-flip test's", "paired_p"),
    ("p of another metric", "the same", "difference_p"),
    ("not worse than a margin", "one-sided bound of the difference", "non_inferiority_p"),
    ("share of independent items", "Wilson's score interval (1927)", "wilson"),
)

_SETTING = """\
`docs/intervals_page.py` measures this with the code that fills the tables, on simulated answers whose truth is known. The answers
of a page come from normal variables that are correlated within the page. A cell of a table has four numbers, in %, for
correlations of {correlations}; each is the least coverage over the true values. These are shares of 0.1, 0.3, 0.5 and 0.9,
and gains and losses of 0.05 and 0.15, 0.3 and 0.3; rare ones are gains and losses of 0.02 and 0.02, 0 and 0.03, an AUROC of
0.95, a label of 10% for kappa, and mistakes of 2% to 5% for the utility. Closed formulas have {all:,} replicates of each
true value (a Monte-Carlo error of {all_error} points), the bootstrap {bootstrap:,} ({bootstrap_error}) with 400 to 1,000
resamples, and curves {curves:,} ({curves_error}). What misses its bound by less than {doubt} errors is measured anew with
{refined} times as many.""".replace("\n", " ")

_TESTED = """\
Two runs do not differ in truth, or one is worse by exactly the margin; the highest rate over the true values, of tests at 5%. In
the second row, whole pages gain and single answers lose.""".replace("\n", " ")

_BORROWED_NOTE = """\
Each question shows a picture of another page, too, drawn at random. The three numbers: the own page alone decides, half and half,
the borrowed page alone; each is the worst of the correlations {correlations}.""".replace("\n", " ")


def page(
    sections: Mapping[str, Sequence[Rate]], tests: Sequence[Rate], borrowed: Sequence[Rate], replicates: int
) -> str:
    """Return the page as Markdown."""
    bootstrap, curves = min(replicates, BOOTSTRAP_REPLICATES), min(replicates, CURVE_REPLICATES)
    setting = _SETTING.format(
        correlations=_listed(CORRELATIONS),
        all=replicates,
        all_error=_monte_carlo_error(replicates),
        bootstrap=bootstrap,
        bootstrap_error=_monte_carlo_error(bootstrap),
        curves=curves,
        curves_error=_monte_carlo_error(curves),
        doubt=DOUBT,
        refined=REFINED,
    )
    intervals = [rate for rates in sections.values() for rate in rates]
    methods = [(number, method, f"`{function}`") for number, method, function in _METHODS]
    lines = ["# Intervals", "", REFERENCE, "", *_answer(intervals, tests, borrowed), "", setting]
    lines += ["", "## Clusters and methods", "", _CLUSTERS, "", *_table(("number", "method", "function"), methods)]
    for title, rates in sections.items():
        lines += ["", f"## {title}", "", *_rates_table(rates), *_undefined_note(rates)]
    lines += ["", "## False positives", "", _TESTED, "", *_rates_table(tests)]
    note = _BORROWED_NOTE.format(correlations=_listed(BORROWED_CORRELATIONS))
    lines += ["", "## Borrowed pictures", "", note, "", *_rates_table(borrowed), ""]
    return "\n".join(lines)


def _answer(intervals: Sequence[Rate], tests: Sequence[Rate], borrowed: Sequence[Rate]) -> Iterator[str]:
    covered = [*intervals, *(rate for rate in borrowed if not rate.kind.test)]
    rejected = [*tests, *(rate for rate in borrowed if rate.kind.test)]
    least, most = min(covered, key=lambda rate: rate.worst), max(rejected, key=lambda rate: rate.worst)
    mean = _mean(rate for cell in covered for rate in cell.usual)
    failing = [rate for rate in (*covered, *rejected) if rate.fails]
    yield (
        f"The least coverage of a 95% interval over {len(covered)} cells is {_percent(least.worst)}% ({_place(least)}). The mean "
        f"is {_percent(mean)}% over cells with at least {FEW} clusters and shares between 0.1 and 0.9. The highest rate of false "
        f"positives of a test at 5% is {_percent(most.worst)}% ({_place(most)})."
    )
    yield ""
    wanted = f"{LEAST:.0%} coverage or {MOST_REJECTED:.0%} false positives"
    if failing:
        yield (
            f"{len(failing)} of {len(covered) + len(rejected)} cells, in bold below, miss the requirement ({wanted}) by over "
            "two standard errors:"
        )
        yield ""
        yield from _failures(failing)
    else:
        yield f"All cells meet the requirement ({wanted}), up to two standard errors."
    yield from _unusual_means(intervals)


def _failures(failing: Sequence[Rate]) -> Iterator[str]:
    for (name, is_borrowed), cells in _by_name(failing).items():
        worst = _worst(cells)
        pictures = ", borrowed pictures" if is_borrowed else ""
        number = f"{len(cells)} cell{'s' * (len(cells) > 1)}"
        number += "" if any(scenario.usual for cell in cells for scenario in cell.failing) else ", rare values only"
        yield f"- {name}{pictures}: {number}; the worst {_percent(worst.worst)}% ({_place(worst, named=False)})"


def _unusual_means(intervals: Sequence[Rate]) -> Iterator[str]:
    """Yield the kinds whose mean coverage is outside the range, each side after an empty line."""
    means = {name: _mean(rates) for (name, _), cells in _by_name(intervals).items() if (rates := _usual(cells))}
    least, most = MEANS
    for words, outside in (
        (f"below {least:.0%}", {name: mean for name, mean in means.items() if mean < least}),
        (
            f"above {most:.0%}, so wider intervals than needed",
            {name: mean for name, mean in means.items() if mean > most},
        ),
    ):
        if outside:
            listed = ", ".join(f"{name} {_percent(mean)}%" for name, mean in outside.items())
            yield ""
            yield f"Mean coverage {words}: {listed}."


def _usual(cells: Iterable[Rate]) -> list[float]:
    return [rate for cell in cells for rate in cell.usual]


def _mean(rates: Iterable[float]) -> float:
    return float(np.mean([*rates]))


def _worst(rates: Sequence[Rate]) -> Rate:
    return (max if rates[0].kind.test else min)(rates, key=lambda rate: rate.worst)


def _by_name(rates: Iterable[Rate]) -> dict[tuple[str, bool], list[Rate]]:
    """Return rates by the name of their kind, apart for borrowed pictures."""
    groups: dict[tuple[str, bool], list[Rate]] = {}
    for rate in rates:
        groups.setdefault((rate.name, bool(rate.borrowed)), []).append(rate)
    return groups


def _listed(numbers: Iterable[float]) -> str:
    *first, last = (f"{number:g}" for number in numbers)
    return f"{', '.join(first)} and {last}"


def _monte_carlo_error(replicates: int) -> str:
    return f"{100 * math.sqrt(0.05 * 0.95 / replicates):.1f}"


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f}"


def _place(rate: Rate, *, named: bool = True) -> str:
    parts = [rate.name] if named else []
    parts += [
        rate.design.name,
        f"correlation {rate.correlation:g}",
        *([f"{rate.borrowed} decides"] if rate.borrowed else []),
    ]
    return ", ".join(parts)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _rates_table(rates: Sequence[Rate]) -> Iterator[str]:
    """Yield a table with a row for each kind, and a cell for each design with all its correlations."""
    rows = []
    for name in dict.fromkeys(rate.name for rate in rates):
        cells = []
        for design in DESIGNS:
            numbers: dict[str, list[Rate]] = {}
            for rate in rates:
                if (rate.name, rate.design) == (name, design):
                    numbers.setdefault(rate.borrowed or str(rate.correlation), []).append(rate)
            cells.append(" ".join(map(_number, numbers.values())))
        rows.append((name, *cells))
    yield from _table(("", *(design.name for design in DESIGNS)), rows)


def _number(rates: Sequence[Rate]) -> str:
    number = _percent(_worst(rates).worst)
    return f"**{number}**" if any(rate.fails for rate in rates) else number


def _undefined_note(rates: Sequence[Rate]) -> Iterator[str]:
    most = {name: max(cell.undefined for cell in cells) for (name, _), cells in _by_name(rates).items()}
    listed = ", ".join(f"{name} up to {part:.0%}" for name, part in most.items() if part > 0.01)
    if listed:
        yield ""
        yield f"Replicates without an interval, which do not count: {listed}."


def main(replicates: int = REPLICATES) -> None:
    """Measure all cells, and write the page."""
    start = time.monotonic()

    def rates(kinds: Sequence[Kind], cases: Callable[[Design], Iterable[tuple[float, str]]]) -> list[Rate]:
        measured = []
        for kind in kinds:
            for design in kind.designs:
                for correlation, borrowed in cases(design):
                    measured += measure(kind, design, correlation, replicates, borrowed)
            print(f"{time.monotonic() - start:6.0f} s  {', '.join(kind.names)}", flush=True)
        return measured

    def plain(design: Design) -> list[tuple[float, str]]:
        return [(correlation, "") for correlation in design.correlations]

    def with_pictures(design: Design) -> list[tuple[float, str]]:
        return [(correlation, borrowed) for borrowed in BORROWED for correlation in BORROWED_CORRELATIONS]

    sections = {title: rates(kinds, plain) for title, kinds in SECTIONS.items()}
    tests, borrowed = rates(TESTS, plain), rates(BORROWED_KINDS, with_pictures)
    PAGE.write_text(page(sections, tests, borrowed, replicates), encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
