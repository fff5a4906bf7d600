"""Label changes between two runs, and the runs' agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.compare.differences.lost_and_gained import Transitions
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunViews
from benchmarks.answer_behaviour import names_sources
from benchmarks.base import Benchmark
from benchmarks.failure_table import OUTCOMES
from benchmarks.stats.intervals import INTERVALS, Draws
from benchmarks.vocabulary import Cell, Table
from judges.judge_agreement import agreement_and_kappa

_ALL = "all"
_NOT_LABELLED = "no answer is labelled in both runs"
_ONE_LABEL = "both runs have the same single label everywhere, so chance agreement is 1 too"


def flips_table(pairs: Sequence[RunPair], views: RunViews) -> Table:
    """Return the counts of the baseline's outcomes (rows) by the run's (columns), over all shared instances."""
    counts_of_pairs = [(pair, pair.flips()) for pair in pairs]
    labels = used_labels([counts for _, counts in counts_of_pairs], views.benchmark)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for pair, counts in counts_of_pairs:
        for was in labels:
            row = [counts[was, now] for now in labels]
            rows.append((f"{pair.second.label} / {was}", (*row, sum(row))))
        totals = [sum(counts[was, now] for was in labels) for now in labels]
        rows.append((f"{pair.second.label} / {_ALL}", (*totals, sum(totals))))
    notes = ("Rows: the label in the baseline; columns: the label in the run; the last column and row are sums.",)
    return Table("flips", "Which label became which", (*labels, _ALL), tuple(rows), notes)


def used_labels(flips: Sequence[Mapping[tuple[str, str], int]], benchmark: Benchmark) -> list[str]:
    """Return the labels and failure outcomes that occur in any of ``flips``, in the benchmark's order."""
    present_labels = {label for counts in flips for cell in counts for label in cell}
    order = [*benchmark.labels, *(outcome for outcome in OUTCOMES if outcome != "labelled")]
    return [label for label in order if label in present_labels] + sorted(present_labels - set(order))


def flipped_table(
    pairs: Sequence[RunPair], cells: Sequence[tuple[str, str]] = (), benchmark: Benchmark | None = None
) -> Table:
    """Return every shared instance whose label differs between the baseline and the run.

    ``cells`` selects cells of the flips, each as (from, to), either of them empty for any label; all if empty. With a
    ``benchmark`` that has a scorecard, the instances lost or gained under the same label are listed too, with the effect of
    each transition.
    """
    of_acts = benchmark if benchmark is not None and names_sources(benchmark) else None
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for pair in pairs:
        flipped: dict[str, tuple[str, ...]] = {}
        effects = Transitions.of(pair, of_acts).effect_names() if of_acts else [""] * len(pair.shared)
        for (instance, condition, before, after), effect in zip(pair.outcomes(), effects, strict=True):
            selected = not cells or any(was in ("", before) and now in ("", after) for was, now in cells)
            if (before != after or effect) and selected:
                flipped[instance] = (condition, before, after, *([effect] if of_acts else []))
        excerpts = pair.first.excerpts(flipped), pair.second.excerpts(flipped)
        for instance, labels in flipped.items():
            beginnings = (texts.get(instance, "") for texts in excerpts)
            rows.append((instance, (pair.second.label, *labels, *beginnings)))
    labels_of = ("condition", "from", "to", "effect") if of_acts else ("condition", "from", "to")
    columns = ("run", *labels_of, "the baseline's answer begins", "the run's answer begins")
    note = f"{len(rows)} of {sum(len(pair.shared) for pair in pairs)} shared instances."
    return Table("flipped", "Instances whose label is another", columns, tuple(rows), (note,))


def changes_table(pairs: Sequence[RunPair], views: RunViews) -> Table:
    """Return each run's agreement with its baseline, and its right and wrong turns, with a row for each condition."""
    benchmark = views.benchmark
    correct = np.array(
        [[benchmark.correct(name, label) for label in benchmark.labels] for name in benchmark.conditions]
    )
    codes = {label: code for code, label in enumerate(benchmark.labels)}
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for pair in pairs:
        coded = pair.shared_codes(benchmark.conditions, codes)
        coded = coded[coded[:, 1] >= 0]
        by_condition = {name: coded[coded[:, 1] == place] for place, name in enumerate(benchmark.conditions)}
        by_used_condition = {name: of_condition for name, of_condition in by_condition.items() if len(of_condition)}
        full = [place for place, name in enumerate(benchmark.conditions) if name in benchmark.full_conditions]
        if len(by_used_condition) > 1:
            rows.append(_change(pair, _ALL, coded[np.isin(coded[:, 1], full)], correct))
        rows += [_change(pair, name, of_condition, correct) for name, of_condition in by_used_condition.items()]
    columns = ("shared", "both labelled", "same label", "kappa", "right to wrong", "wrong to right")
    notes = (
        "same label: the share of the answers labelled in both runs; kappa: Cohen's, agreement beyond chance.",
        INTERVALS,
    )
    return Table("changes", "Agreement of the runs' labels", columns, tuple(rows), notes)


def _change(
    pair: RunPair, row: str, coded: NDArray[np.int64], correct: NDArray[np.bool_]
) -> tuple[str, tuple[Cell, ...]]:
    """Return the row named ``row`` for ``coded``, rows of :meth:`RunPair.shared_codes`; ``correct``: (conditions, labels)."""
    labelled = coded[(coded[:, 2:] >= 0).all(1)]
    place, condition, was, now = labelled.T
    was_right, is_right = correct[condition, was], correct[condition, now]
    labels = correct.shape[1]
    clusters = pair.clusters.at(place)
    counts = clusters.tally(was * labels + now, labels * labels).reshape(clusters.count, labels, labels).astype(float)
    draws = Draws.of(counts, pair.resamples, pair.seed)
    agreement, kappa = agreement_and_kappa(counts, draws, _NOT_LABELLED, _ONE_LABEL)
    worse, better = int((was_right & ~is_right).sum()), int((~was_right & is_right).sum())
    return f"{pair.second.label} / {row}", (len(coded), len(labelled), agreement, kappa, worse, better)
