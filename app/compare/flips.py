"""Which label became which between two runs, and how far they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from app.compare.pairs import Array, RunPair
from app.compare.run_view import RunViews
from benchmarks.base import Benchmark, Cell, Estimate, Table
from benchmarks.failure_table import OUTCOMES
from benchmarks.stats.intervals import cohen_kappa, estimate, resample
from judges.agreement import raw_agreement

_ALL = "all"
_NOBODY = "no answer is labelled in both runs"
_ONE_LABEL = "both runs have one and the same label everywhere, so agreement by chance is 1 too"


def flips_table(pairs: Sequence[RunPair], sides: RunViews) -> Table:
    """From the baseline's labels (rows) to the run's (columns), over all shared instances; what has no label has its own."""
    found = [(pair, pair.flips()) for pair in pairs]
    known = shown([counts for _, counts in found], sides.benchmark)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for pair, counts in found:
        for was in known:
            row = [counts[was, now] for now in known]
            rows.append((f"{pair.second.label} / {was}", (*row, sum(row))))
        whole = [sum(counts[was, now] for was in known) for now in known]
        rows.append((f"{pair.second.label} / {_ALL}", (*whole, sum(whole))))
    notes = ("Rows: the label in the baseline; columns: the label in the run; the last column and row are sums.",)
    return Table("flips", "Which label became which", (*known, _ALL), tuple(rows), notes)


def shown(flips: Sequence[Mapping[tuple[str, str], int]], benchmark: Benchmark) -> list[str]:
    """The labels, and the ways of having none, that occur in any of ``flips``, in the benchmark's order."""
    used = {each for counts in flips for cell in counts for each in cell}
    order = [*benchmark.labels, *(each for each in OUTCOMES if each != "labelled")]
    return [each for each in order if each in used] + sorted(used - set(order))


def flipped_table(pairs: Sequence[RunPair], cells: Sequence[tuple[str, str]] = ()) -> Table:
    """Every shared instance whose label is another in the run than in the baseline.

    ``cells`` are those of the flips that are wanted, from and to, either of them empty for any; all if empty.
    """
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for pair in pairs:
        for instance in pair.shared:
            one, other = pair.first.said[instance], pair.second.said[instance]
            wanted = not cells or any(was in ("", one.outcome) and now in ("", other.outcome) for was, now in cells)
            if one.outcome != other.outcome and wanted:
                cell = (pair.second.label, one.condition, one.outcome, other.outcome, one.begins, other.begins)
                rows.append((instance, cell))
    columns = ("run", "condition", "from", "to", "the baseline's answer begins", "the run's answer begins")
    told = f"{len(rows)} of {sum(len(pair.shared) for pair in pairs)} shared instances."
    return Table("flipped", "Instances whose label is another", columns, tuple(rows), (told,))


def changes_table(pairs: Sequence[RunPair], sides: RunViews) -> Table:
    """How far each run agrees with its baseline, label by label, and what became right or wrong; a row a condition."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for pair in pairs:
        by_condition: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
        for instance in pair.shared:
            one, other = pair.first.said[instance], pair.second.said[instance]
            by_condition[one.condition].append((one.group, one.outcome, other.outcome))
        views = {c: by_condition[c] for c in sides.benchmark.conditions if c in by_condition}
        if len(views) > 1:
            rows.append(
                _change(pair, _ALL, [(c, *each) for c, found in views.items() for each in found], sides.benchmark)
            )
        rows += [
            _change(pair, condition, [(condition, *each) for each in found], sides.benchmark)
            for condition, found in views.items()
        ]
    columns = ("shared", "both labelled", "same label", "kappa", "right to wrong", "wrong to right")
    notes = (
        "same label: the share of the answers labelled in both runs; kappa: Cohen's, agreement beyond chance. Intervals: 95%, "
        "percentile bootstrap over examples; none where nothing varies.",
    )
    return Table("changes", "Agreement of the runs' labels", columns, tuple(rows), notes)


def _change(
    pair: RunPair, view: str, found: Sequence[tuple[str, str, str, str]], benchmark: Benchmark
) -> tuple[str, tuple[Cell, ...]]:
    code = {label: i for i, label in enumerate(benchmark.labels)}
    groups: dict[str, int] = {}
    both = []
    worse = better = 0
    for condition, group, was, now in found:
        if was in code and now in code:
            both.append((groups.setdefault(group, len(groups)), code[was], code[now]))
            right = benchmark.correct(condition, was), benchmark.correct(condition, now)
            worse += right == (True, False)
            better += right == (False, True)
    counts = np.zeros((len(groups), len(code), len(code)))
    if both:
        np.add.at(counts, tuple(np.array(both).T), 1)
    agreed, kappa = _agreement(counts, pair)
    return f"{pair.second.label} / {view}", (len(found), len(both), agreed, kappa, worse, better)


def _agreement(counts: Array, pair: RunPair) -> tuple[Estimate, Estimate]:
    totals, draws = counts.sum(0), resample(counts, pair.resamples, pair.seed)
    n = int(totals.sum())
    agreed = estimate(float(raw_agreement(totals)), raw_agreement(draws), n, reason=_NOBODY)
    kappa = estimate(float(cohen_kappa(totals)), cohen_kappa(draws), n, reason=_ONE_LABEL if n else _NOBODY)
    return _with_width(agreed), _with_width(kappa)


def _with_width(found: Estimate) -> Estimate:
    return Estimate(found.value, n=found.n, reason=found.reason) if found.low == found.high else found
