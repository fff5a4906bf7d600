"""Tables of what changed with fine-tuning: each part of the answers, and the metrics of other benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from app.compare.fine_tuning.change_by_training import Change
from app.compare.fine_tuning.fine_tuning_effect import FineTuning, same_models
from app.compare.papers.paper_comparison import comparable_rows, normalised_name
from app.compare.runs.run_pairs import RunPair, empty_label, run_metrics
from app.compare.runs.run_view import RunViews
from benchmarks.base import Benchmark
from benchmarks.stats.intervals import INTERVALS
from benchmarks.stats.paired_tests import holm
from benchmarks.vocabulary import Cell, Estimate, Table

COLUMNS = ("before", "after", "difference", "n", "score fell", "score rose", "p", "p (Holm)")


def fine_tuning_table(tunings: Sequence[FineTuning]) -> Table:
    """Return a table with a row for each fine-tuned run and part of the answers."""
    changes = [(f"{tuning.tuned.label} / {change.part}", change) for tuning in tunings for change in tuning.changes]
    corrected = holm([change.p for _, change in changes])
    rows = tuple((label, _cells(change, p)) for (label, change), p in zip(changes, corrected, strict=True))
    bases = list(dict.fromkeys(tuning.base.label for tuning in tunings))
    rules = dict.fromkeys(tuning.rule for tuning in tunings if tuning.rule)
    by_rule = f"Under conflict an answer is right if it follows what the rows say should win ({', '.join(rules)})."
    notes = (
        f"before: {', '.join(bases)}. Over the n answers that both runs have; an answer with nothing to label counts as wrong, "
        "so that training gains nothing by answers that cannot be read.",
        "score fell, score rose: numbers of answers. p: the larger of that of the interval and that of the sign-flip test over "
        "clusters; p (Holm): corrected for the number of tests of this table (Holm 1979).",
        *([by_rule] if rules else []),
        INTERVALS,
    )
    return Table("fine-tuning", "Before and after fine-tuning", COLUMNS, rows, notes)


def _cells(change: Change, corrected: float | None) -> tuple[Cell, ...]:
    p_values = tuple(Estimate(p, n=change.difference.n, reason=change.difference.reason) for p in (change.p, corrected))
    difference = change.difference
    return (change.before, change.after, difference, difference.n, change.lost, change.gained, *p_values)


def regressions_table(tunings: Sequence[FineTuning], others: Sequence[RunViews], resamples: int) -> Table | None:
    """Return other benchmarks' metrics before and after, in the form of CLASH's Tables 14 and 15, with the paper's rows.

    None where no run of another benchmark belongs to ``tunings``.
    """
    columns: list[str] = []
    rows: dict[str, dict[str, Cell]] = {}
    paper_rows: dict[str, dict[str, Cell]] = {}
    for other in others:
        metrics = other.label_metrics
        names = {metric: _column(other.benchmark, metric) for metric in metrics.of}
        for tuning in tunings:
            for before, after in same_models(tuning.base, tuning.tuned, other.runs):
                columns += [column for column in names.values() if column not in columns]
                for label, run in ((tuning.base.label, before), (tuning.tuned.label, after)):
                    values = run_metrics(run, metrics, list(names), resamples=resamples, seed=other.seed)
                    rows.setdefault(label, {}).update(zip(names.values(), values, strict=True))
                pair = RunPair(before, after, metrics, resamples, other.seed)
                for metric, column in names.items():
                    difference = pair.compare(metrics.of[metric]).difference
                    rows.setdefault(f"{tuning.tuned.label} less {tuning.base.label}", {})[column] = difference
        shape = Table("main", "", tuple(names), ())
        for row, cells in comparable_rows(shape, other):
            paper_rows.setdefault(row, {}).update(zip(names.values(), cells, strict=True))
    if not rows:
        return None
    empty = dict.fromkeys(label for other in others if (label := empty_label(other.runs, other.label_metrics)))
    as_label = f", empty ones as {' or '.join(empty)}" if empty else ""
    return Table(
        "regressions",
        "Regressions on other benchmarks (CLASH's Tables 14 and 15)",
        tuple(columns),
        tuple(
            (label, tuple(cells.get(column) for column in columns))
            for label, cells in (*rows.items(), *paper_rows.items())
        ),
        (
            f"Each run over all its answers that count{as_label}; the row of differences over those that count in both.",
            INTERVALS,
        ),
        percent=True,
    )


def _column(benchmark: Benchmark, metric: str) -> str:
    title = benchmark.title.partition(":")[0]
    return metric if normalised_name(metric) == normalised_name(title) else f"{title} {metric}"
