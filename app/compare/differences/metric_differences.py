"""Table of differences: every metric of every run against its baseline, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.compare.runs.run_pairs import PairedDifference, RunPair, counted_in_both
from app.text.plural import count_of
from benchmarks.stats.intervals import INTERVALS
from benchmarks.stats.paired_tests import holm_by_hypothesis, hypothesis_numbers
from benchmarks.vocabulary import Cell, Estimate, Table

CORRECTED = "p (Holm)"
COLUMNS = ("baseline", "run", "difference", "n", "only baseline", "only run", "p", CORRECTED)


def differences_table(pairs: Sequence[RunPair], names: Sequence[str]) -> Table:
    """Return a table with a row for each run and metric, over the instances that count in both runs."""
    keys = [(pair, name) for pair in pairs for name in names]
    differences = [pair.compare(pair.label_metrics.of[name]) for pair, name in keys]
    tested = [
        (pair.second.name, hypothesis) for pair in pairs for hypothesis in hypothesis_numbers(names, pair.label_metrics)
    ]
    corrected = holm_by_hypothesis([difference.p for difference in differences], tested)
    rows = tuple(
        (f"{pair.second.label} / {name}", _cells(difference, p))
        for (pair, name), difference, p in zip(keys, differences, corrected, strict=True)
    )
    runs = [run for pair in pairs for run in (pair.first, pair.second)]
    answers = counted_in_both(runs, pairs[0].label_metrics) if pairs else "labelled in both"
    baselines = list(dict.fromkeys(pair.first.label for pair in pairs))
    notes = [
        f"difference: the run less the baseline ({', '.join(baselines)}), over the n answers {answers}.",
        INTERVALS,
        "only baseline, only run: answers that the metric counts in the baseline alone, in the run alone. p: the larger of that "
        "of the interval and that of the sign-flip test over clusters.",
    ]
    table = Table("differences", "Differences", COLUMNS, rows, tuple(notes))
    corrected_for = (
        f"{CORRECTED}: corrected for {correction(pairs, names, table)} (Holm 1979). A p of .000 is below .0005."
    )
    return replace(table, notes=(*notes, corrected_for))


def correction(pairs: Sequence[RunPair], names: Sequence[str], table: Table) -> str:
    """Return the number of comparisons that the p values of a table of differences are corrected for, and why it is not more.

    Metrics of which one follows from the other are one comparison.
    """
    of_pair = hypothesis_numbers(names, pairs[0].label_metrics) if pairs else []
    hypotheses = [(place, hypothesis) for place in range(len(pairs)) for hypothesis in of_pair]
    column = table.columns.index(CORRECTED)
    tested = [
        hypothesis
        for hypothesis, (_, cells) in zip(hypotheses, table.rows, strict=True)
        if isinstance(cell := cells[column], Estimate) and cell.value is not None
    ]
    count = len(set(tested))
    comparisons = count_of(count, "comparison")
    if len(pairs) > 1:
        comparisons += " of all runs"
    dependent = len(tested) - count
    return f"{comparisons}; metrics that follow from one another count once" if dependent else comparisons


def _cells(paired: PairedDifference, corrected: float | None) -> tuple[Cell, ...]:
    def without_interval(value: Estimate) -> Estimate:
        return Estimate(value.value, n=value.n, reason=value.reason)

    def p_value(p: float | None) -> Estimate:
        return Estimate(p, n=paired.difference.n, reason=paired.difference.reason)

    return (
        without_interval(paired.first),
        without_interval(paired.second),
        paired.difference,
        paired.difference.n,
        paired.lost,
        paired.gained,
        p_value(paired.p),
        p_value(corrected),
    )
