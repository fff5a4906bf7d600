"""Tables of a parity report, which fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from app.compare.differences.label_flips import changes_table
from app.compare.runs.run_pairs import PairedDifference, counted_in_both
from app.compare.runs.spec_diff import reuse_warnings
from app.parity.parity_report import ParityReport
from benchmarks.stats.intervals import INTERVALS
from benchmarks.stats.paired_tests import holm_by_hypothesis, hypothesis_numbers
from benchmarks.vocabulary import Cell, Estimate, Table


def tables(report: ParityReport, metrics: Sequence[str] = ()) -> list[Table]:
    """Return the stages, the agreement by condition, and the metrics with their paired differences."""
    return [stages_table(report), agreement_table(report), figures_table(report, metrics)]


def stages_table(report: ParityReport) -> Table:
    """Return a table with a row for each stage: its status and the summary."""
    rows = tuple((finding.stage, (finding.status, finding.summary)) for finding in report.findings)
    probed = "The models were not probed."
    if any(finding.stage == "numerics" for finding in report.findings):
        differing = {*report.answers.differing} & set(report.probed)
        count = len(report.probed)
        verb = "request was" if count == 1 else "requests were"
        probed = f"{count} {verb} probed, {len(differing)} of them with answers that differ."
    notes = (
        f"A is {report.labels[0]} ({report.a.folder.name}), B is {report.labels[1]} ({report.b.folder.name}). {probed}",
        *report.not_probed,
        "noise: differs by no more than rounding; unknown: was not compared. Divergence: Kullback-Leibler.",
    )
    return Table("stages", "Where A and B part", ("found", "what was seen"), rows, notes)


def agreement_table(report: ParityReport) -> Table:
    """Return the number of equal answers and the agreement of labels, with a row for each condition."""
    differing = {*report.answers.differing}
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    changes = changes_table([report.pair], report.views) if report.pair.shared else None
    for label, cells in changes.rows if changes else ():
        condition = label.rpartition(" / ")[2]
        answered_instances = [
            instance
            for instance, record in report.a.records.items()
            if instance in report.b.records
            and condition in ("all", record.instance.condition)
            and record.answer
            and report.b.records[instance].answer
        ]
        same_count = sum(instance not in differing for instance in answered_instances)
        rows.append((condition, (len(answered_instances), same_count, cells[1], cells[2], cells[3])))
    columns = ("answered", "same answer", "labelled", "same label", "kappa")
    note = f"In both runs; kappa: Cohen's. {INTERVALS}"
    notes = (note, *reuse_warnings(report.views.runs))
    return Table("agreement", "Agreement of answers and labels", columns, tuple(rows), notes)


def figures_table(report: ParityReport, metrics: Sequence[str] = ()) -> Table:
    """Return every metric of the benchmark in both runs, and B's less A's with its paired interval."""
    pair = report.pair
    differences = {name: pair.compare(pair.label_metrics.of[name]) for name in metrics or pair.label_metrics.of}
    corrected = holm_by_hypothesis(
        [difference.p for difference in differences.values()], hypothesis_numbers(list(differences), pair.label_metrics)
    )
    accuracies = (_without_interval(report.effect.accuracies[0]), _without_interval(report.effect.accuracies[1]))
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        ("accuracy", (*accuracies, report.effect.difference, report.effect.difference.n, None))
    ]
    rows += [
        (name, _cells(difference, p)) for (name, difference), p in zip(differences.items(), corrected, strict=True)
    ]
    note = (
        f"Over the answers {counted_in_both((pair.first, pair.second), pair.label_metrics)} (accuracy of each run: over all of "
        "its own); B - A and p as in `rashomon compare`, p corrected by Holm's method. "
        f"{INTERVALS}"
    )
    return Table("figures", "Figures", ("A", "B", "B - A", "n", "p (Holm)"), tuple(rows), (note,))


def _cells(paired: PairedDifference, p: float | None) -> tuple[Cell, ...]:
    difference = paired.difference
    p_value = Estimate(p, n=difference.n, reason=difference.reason)
    return (
        _without_interval(paired.first),
        _without_interval(paired.second),
        difference,
        difference.n,
        p_value,
    )


def _without_interval(value: Estimate) -> Estimate:
    return Estimate(value.value, n=value.n, reason=value.reason)
