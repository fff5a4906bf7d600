"""A comparison as tables, for the terminal, exports and screens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.compare.differences.label_flips import changes_table, flipped_table, flips_table
from app.compare.differences.lost_and_gained import transitions_table
from app.compare.differences.metric_differences import differences_table
from app.compare.differences.undecided_bounds import bounds_table
from app.compare.fine_tuning.fine_tuning_effect import FineTuning, check_pairs, fine_tunings, orphans
from app.compare.fine_tuning.fine_tuning_tables import fine_tuning_table, regressions_table
from app.compare.papers.paper_comparison import published_table
from app.compare.papers.received_run_comparison import received_table
from app.compare.runs.cost_tables import cost_table, remedies_table, tradeoff_table
from app.compare.runs.run_pairs import RunPair, empty_label, run_metrics
from app.compare.runs.run_view import RunView, RunViews, reject_duplicates, unlabelled_outcomes
from app.compare.runs.spec_diff import difference_warnings, unquantised_model
from app.compare.runs.view_reader import load_views
from app.report.tables.judge_selection import caveat
from app.report.tables.run_tables import RESAMPLES, tables_of
from app.report.tables.single_source_accuracy import join_names
from app.store.run_references import PublishedRow
from app.store.run_store import RunStore
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.failure_table import OUTCOMES
from benchmarks.stats.intervals import INTERVALS
from benchmarks.tables.abstention_quality import abstention_metrics
from benchmarks.vocabulary import LabelMetrics, Table

QUANTISATION = "quantisation"
_GROUPS = {"quantization": QUANTISATION, QUANTISATION: QUANTISATION}


@dataclass(frozen=True)
class Comparison:
    """A comparison of runs: their views, each baseline paired with each run compared to it, tables, and warnings."""

    views: RunViews
    pairs: tuple[RunPair, ...]
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    """The metrics that were named; empty if all are compared."""
    folders: tuple[Path, ...] = ()
    """The folders of the runs, if they were read from there."""
    fine_tunings: tuple[FineTuning, ...] = ()
    """The base runs with the runs of what was fine-tuned from them."""


def compare(
    runs: Sequence[Path | PublishedRow],
    *,
    judge: str | None = None,
    baseline: Path | None = None,
    metrics: Sequence[str] = (),
    group_by: str | None = None,
    instances: bool = False,
    cells: Sequence[str] = (),
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare runs, given by their folders, with each other and with rows of the paper or of bundles.

    Runs of further benchmarks are those of a base and its fine-tuned model, whose losses they show.

    Differences are to ``baseline``, else to the first run; grouped by quantisation, to the most bits of each model.
    ``metrics`` are the metrics to compare, else all of the benchmark's. With ``instances`` the table ``flipped`` names the
    instances behind the flips; ``cells`` ("IMAGE:TEXT", one side may be empty) restricts it to these flips.

    Raises:
        SpecError: The runs cannot be compared.
        StoreError: A folder is no run.
    """
    rows = [run for run in runs if isinstance(run, PublishedRow)]
    folders = [run for run in runs if isinstance(run, Path)]
    if not folders:
        raise SpecError("no run of yours is named; `rashomon published` shows a paper's tables alone.")
    reject_duplicates(folders)
    if baseline is not None:
        folders = [baseline, *(folder for folder in folders if folder != baseline)]
    if len(folders) + len(rows) < 2:
        raise SpecError("one run cannot be compared; name another, or published:ROW for a row of the paper.")
    folders, further = _by_benchmark(folders)
    views = load_views(folders, judge=judge)
    others = [load_views(group) for group in further]
    for other in others:
        check_pairs(other)
    comparison = compare_views(
        views,
        metrics=metrics,
        group_by=group_by,
        keep_first=baseline is not None,
        instances=instances,
        cells=cells,
        others=others,
        resamples=resamples,
    )
    comparison = replace(comparison, folders=tuple(folders))
    if not rows:
        return comparison
    ours = tables_of(folders, judge=judge, published=False)
    columns = _metric_names(views, metrics) if metrics else ()
    received = {row.name: row.folder for row in rows if row.folder is not None}
    tables = list(comparison.tables)
    if paper_rows := [row.name for row in rows if row.folder is None]:
        tables.append(published_table(ours, views, paper_rows, columns))
    if received:
        tables.append(received_table(ours[0], views, received, columns, judge))
    return replace(comparison, tables=tuple(tables))


def compare_views(
    views: RunViews,
    *,
    metrics: Sequence[str] = (),
    group_by: str | None = None,
    keep_first: bool = False,
    instances: bool = False,
    cells: Sequence[str] = (),
    others: Sequence[RunViews] = (),
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare loaded runs as :func:`compare` does; ``others`` are those of further benchmarks.

    With ``keep_first`` the first run is the baseline of its group.
    """
    names = _metric_names(views, metrics)
    groups = _grouped(views, group_by, keep_first=keep_first)
    pairs = tuple(
        RunPair(group[0], other, views.label_metrics, resamples, views.seed) for group in groups for other in group[1:]
    )
    differences = [warning for group in groups for warning in difference_warnings(group, quantisation=bool(group_by))]
    warnings = (*coverage_warnings(views), *dict.fromkeys(differences), *orphans(views.runs))
    tables = [_values_table(views, names, resamples)]
    if group_by:
        tables.append(tradeoff_table(groups, pairs, views))
    if pairs:
        if (transitions := transitions_table(pairs, views)) is not None:
            tables.append(transitions)
        tables.append(differences_table(pairs, names))
        if (bounds := bounds_table(pairs, names)) is not None:
            tables.append(bounds)
        tables += [changes_table(pairs, views), flips_table(pairs, views)]
        if instances or cells:
            tables.append(flipped_table(pairs, [_parse_cell(cell, views) for cell in cells], views.benchmark))
        if not metrics and (abstention := abstention_metrics(views.benchmark)) is not None:
            tables.append(_abstention_table(pairs, abstention))
    tunings = fine_tunings(views, others, metric=names[0] if len(metrics) == 1 else None, resamples=resamples)
    if tunings:
        tables.append(fine_tuning_table(tunings))
    if (regressions := regressions_table(tunings, others, resamples)) is not None:
        tables.append(regressions)
    if (remedies := remedies_table(pairs, views)) is not None:
        tables.append(remedies)
    tables.append(cost_table(views.runs))
    return Comparison(
        views,
        pairs,
        tuple(tables),
        warnings,
        tuple(names) if metrics else (),
        fine_tunings=tuple(tunings),
    )


def _abstention_table(pairs: Sequence[RunPair], metrics: LabelMetrics) -> Table:
    """Return the differences of the abstention metrics."""
    table = differences_table([replace(pair, label_metrics=metrics) for pair in pairs], list(metrics.of))
    return replace(table, name="abstention-differences", title="Differences in abstention")


def _by_benchmark(folders: Sequence[Path]) -> tuple[list[Path], list[list[Path]]]:
    """Return the runs of the first one's benchmark, and those of each further benchmark."""
    groups: dict[str, list[Path]] = {}
    for folder in folders:
        with RunStore.read(folder) as store:
            groups.setdefault(str(store.meta("spec")["benchmark"]), []).append(folder)
    first, *further = groups.values()
    return first, further


def _metric_names(views: RunViews, names: Sequence[str]) -> list[str]:
    known = {metric.casefold(): metric for metric in views.label_metrics.of}
    for name in names:
        if name.casefold() not in known:
            raise SpecError(
                f"{views.benchmark.name} has no metric {name!r}; {did_you_mean(name, views.label_metrics.of)}"
            )
    return [known[name.casefold()] for name in dict.fromkeys(names)] or list(views.label_metrics.of)


def _parse_cell(cell: str, views: RunViews) -> tuple[str, str]:
    """Return the two labels of a cell of the flips, "IMAGE:TEXT"; an empty one stands for any label."""
    labels = {label.casefold(): label for label in (*views.benchmark.labels, *OUTCOMES) if label != "labelled"}
    was, colon, now = cell.partition(":")
    if not colon or not (was or now):
        raise SpecError(f"{cell!r} is no cell; name two labels as in IMAGE:TEXT, or one as in IMAGE: or :TEXT.")
    for label in (was, now):
        if label and label.casefold() not in labels:
            raise SpecError(f"{views.benchmark.name} has no label {label!r}; {did_you_mean(label, labels.values())}")
    return labels.get(was.casefold(), ""), labels.get(now.casefold(), "")


def _grouped(views: RunViews, group_by: str | None, *, keep_first: bool) -> list[list[RunView]]:
    """Return the groups of runs that are compared with each other, the baseline of each group first."""
    if group_by is None:
        return [list(views.runs)]
    if group_by not in _GROUPS:
        raise SpecError(f"runs cannot be grouped by {group_by!r}; {did_you_mean(group_by, _GROUPS)}")
    groups: dict[tuple[str, str], list[RunView]] = {}
    for run in views.runs:
        groups.setdefault((unquantised_model(run), str(run.spec["prompt_set"])), []).append(run)
    first = views.runs[0] if keep_first else None
    return [sorted(group, key=lambda run: (run is not first, -_size(run))) for group in groups.values()]


def _size(run: RunView) -> float:
    """Return the sort key of runs of one model: the size of its weights, else the bits of its quantisation."""
    if run.weights_bytes:
        return float(run.weights_bytes)
    digits = "".join(c if c.isdigit() else " " for c in run.quantisation or "").split()
    return float(digits[0]) if digits else 0.0


def coverage_warnings(views: RunViews) -> list[str]:
    """Return a sentence on each run that lacks labels or instances that the others have."""
    return [
        *_label_warnings(views),
        *_shared_warnings(views),
        *dict.fromkeys(run.cell_note for run in views.runs if run.cell_note),
        *_repeat_warnings(views),
        *(f"{run.label}: {remark}" for run in views.runs for remark in run.remarks),
    ]


def _label_warnings(views: RunViews) -> Iterator[str]:
    """Yield a sentence on each run that lacks labels."""
    for run in views.runs:
        if not run.judged:
            yield (
                f"{views.judge} has not labelled {run.label}, so it cannot be compared: `rashomon judge "
                f"{run.name} --judge {views.judge.rpartition('@')[0] or views.judge}`."
            )
        elif unlabelled := unlabelled_outcomes(run, views.label_metrics.labels):
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(unlabelled.items()))
            count_note = " (unparsed ones count)" if views.label_metrics.unparsed and unlabelled["unparsed"] else ""
            share = f"{sum(unlabelled.values())} of its {len(run.answers)} instances have no label"
            yield f"{run.label} is {run.state}: {share}: {outcomes}{count_note}."


def _shared_warnings(views: RunViews) -> Iterator[str]:
    """Yield a sentence on each run that does not share all instances with the first one."""
    first = views.runs[0]
    for run in views.runs[1:]:
        shared = len(first.coded.paired_places(run.coded)[0])
        if not shared:
            yield f"{first.label} and {run.label} share no instance, so no difference can be tested."
        elif shared < max(len(run.answers), len(first.answers)):
            yield (
                f"{first.label} ({len(first.answers)} instances) and {run.label} ({len(run.answers)}) share {shared}: "
                "differences rest on those."
            )


def _repeat_warnings(views: RunViews) -> Iterator[str]:
    """Yield a sentence on the runs that have repeats, where others have none."""
    repeated, once = ([run.label for run in views.runs if run.coded.is_repeated == has] for has in (True, False))
    if repeated and once:
        yield (
            f"{join_names(repeated)} {'has' if len(repeated) == 1 else 'have'} repeats, and {join_names(once)} "
            f"{'has' if len(once) == 1 else 'have'} none: each repeat is paired with the one answer to its instance, so that "
            "differences are those of means over repeats."
        )


def _values_table(views: RunViews, names: Sequence[str], resamples: int) -> Table:
    rows = tuple(
        (run.label, tuple(run_metrics(run, views.label_metrics, names, resamples=resamples, seed=views.seed)))
        for run in views.runs
    )
    label = empty_label(views.runs, views.label_metrics)
    answers = f"answers that count, empty ones as {label}" if label else "labelled answers"
    notes = [
        f"Each run over all its {answers}. Overlap of intervals does not tell whether runs differ; see the table of differences.",
        INTERVALS,
        f"Labels by {views.judge}{caveat(views.judge)}.",
    ]
    if views.benchmark.counts_flags:
        notes.append("Each answer counts with one label here; the paper's tables count every label that fits.")
    return Table("values", "Figures of each run", tuple(names), rows, tuple(notes))
