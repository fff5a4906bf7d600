"""The table of differences: every figure, every run against its baseline, with what is sure about it."""

from __future__ import annotations

from collections.abc import Sequence

from app.compare.pairs import PairedDifference, RunPair
from benchmarks.base import Cell, Estimate, Table
from benchmarks.stats.paired_tests import holm_of_hypotheses, hypotheses

COLUMNS = ("baseline", "run", "difference", "n", "lost", "gained", "p", "p (Holm)")


def differences_table(pairs: Sequence[RunPair], names: Sequence[str]) -> Table:
    """A row for each run and figure, over the instances that both runs have labelled."""
    found = [(pair, name, pair.compare(pair.figures.of[name])) for pair in pairs for name in names]
    tested = [(pair.second.name, hypothesis) for pair in pairs for hypothesis in hypotheses(names, pair.figures)]
    corrected = holm_of_hypotheses([each.p for _, _, each in found], tested)
    rows = tuple(
        (f"{pair.second.label} / {name}", _cells(each, p))
        for (pair, name, each), p in zip(found, corrected, strict=True)
    )
    tests = len({hypothesis for (_, _, each), hypothesis in zip(found, tested, strict=True) if each.p is not None})
    against = list(dict.fromkeys(pair.first.label for pair in pairs))
    notes = [
        f"difference: the run less the baseline ({', '.join(against)}), over the n answers that both have labelled, with its "
        "95% percentile bootstrap interval, both runs of an example drawn together.",
        "lost, gained: answers that the figure counts in the baseline alone, in the run alone. Where they stand, p is the exact "
        "sign-flip test over examples, which with one answer an example is McNemar's exact test; elsewhere p is the "
        "permutation test that exchanges the two runs' answers example by example, 9,999 draws.",
        f"p (Holm): corrected for the {tests} tests of this table (Holm 1979); figures of which one follows "
        "from the other are one test. A p of .000 is one below .0005.",
    ]
    if any(each.difference.low is not None and each.difference.low == each.difference.high for _, _, each in found):
        notes.append("An interval of no width means that no answer differs, not that the difference is certain.")
    return Table("differences", "Differences", COLUMNS, rows, tuple(notes))


def _cells(found: PairedDifference, corrected: float | None) -> tuple[Cell, ...]:
    def bare(value: Estimate) -> Estimate:
        return Estimate(value.value, n=value.n, reason=value.reason)

    def chance(p: float | None) -> Estimate:
        return Estimate(p, n=found.difference.n, reason=found.difference.reason)

    counts = (found.lost, found.gained)
    return (
        bare(found.first),
        bare(found.second),
        found.difference,
        found.difference.n,
        *counts,
        chance(found.p),
        chance(corrected),
    )
