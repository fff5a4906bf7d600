"""Comparison with a paper's rows: differences, coverage of the paper's values by our intervals, and comparability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from statistics import NormalDist

from app.compare.runs.run_view import RunView, RunViews
from app.papers.published_results import published_cells, published_rows
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.stats.intervals import independent_difference, wilson
from benchmarks.stats.paired_tests import share_labels
from benchmarks.vocabulary import Cell, Decoding, Estimate, Table
from mlx_backends.imported_engine import IMPORTED

_COLUMNS = ("ours", "the paper's", "difference", "inside ours", "n, ours", "n, the paper's")
_PART = " / "


def published_table(ours: Sequence[Table], views: RunViews, rows: Sequence[str], columns: Sequence[str] = ()) -> Table:
    """Compare each run with each of the paper's ``rows`` (a model's name), in every table of the paper that both have.

    ``ours`` are the runs' own tables. Spelling variants of a model's name are the same model (:func:`normalised_name`): CLASH's
    tables have InternVL 1.5 and InternVL1.5. ``columns`` restricts the columns, unless it is empty or the paper has none of
    them.

    Raises:
        SpecError: The paper has no such row, or the runs are of the user's own rows alone.
    """
    _check_comparable(views)
    theirs = {table.name: published_rows(table, views.benchmark.name) for table in ours}
    published = published_cells(views.benchmark.name)
    models = dict.fromkeys(_split_row(cell["row"])[0] for cell in published if "ours" in cell)
    if not models:
        raise SpecError(f"the paper of {views.benchmark.name} has no row to compare with.")
    chosen_rows = [_find_row(row, list(models)) for row in rows]
    selected = set(columns) & {column for table in ours for column in table.columns}
    table_rows: list[tuple[str, tuple[Cell, ...]]] = []
    for table in ours:
        for row in chosen_rows:
            for run in views.runs:
                table_rows += [
                    (label, compared_cells(cell, paper, is_share=is_share_column(column, views)))
                    for label, column, cell, paper in matching_cells(
                        table, run.label, row, theirs[table.name], selected
                    )
                ]
    empty = (
        [] if table_rows else [f"No value of these runs is in a table where the paper has {', '.join(chosen_rows)}."]
    )
    notes = (
        *empty,
        "difference: ours less the paper's, of all answers of each, with the 95% interval for independent samples (Newcombe "
        "1998), computed from our interval and the paper's: the score interval by its n, as if its answers were independent, or "
        "its printed deviation. There is no interval where the paper gives neither (n is then empty), or the metric is no share "
        "of answers. inside ours: whether our 95% interval contains the paper's value; this ignores the paper's own spread.",
        *comparability(views, chosen_rows),
    )
    return Table("published", f"Beside {views.benchmark.paper}", _COLUMNS, tuple(table_rows), notes)


def comparable_rows(table: Table, views: RunViews) -> list[tuple[str, tuple[Estimate | None, ...]]]:
    """Return the paper's rows that ``table`` of these runs can be compared with."""
    return [] if views.own_rows_only else published_rows(table, views.benchmark.name)


def _check_comparable(views: RunViews) -> None:
    """Raise SpecError for runs over the user's own rows alone."""
    if views.own_rows_only:
        raise SpecError("these runs are over your own rows alone, which no paper's row is about; name runs only.")


def paper_models(ours: Sequence[Table], views: RunViews) -> list[str]:
    """Return the models of the paper's rows in those of its tables that are among ``ours``."""
    rows = (row for table in ours for row, _ in comparable_rows(table, views))
    return list(dict.fromkeys(_split_row(row)[0] for row in rows))


def paper_columns(ours: Sequence[Table], views: RunViews, rows: Sequence[str]) -> Table:
    """Return :func:`published_table` transposed: a column for each run and for each of the paper's ``rows``.

    In percent where the tables are, without the differences.
    """
    _check_comparable(views)
    chosen_rows = [_find_row(row, paper_models(ours, views)) for row in rows]
    runs = [run.label for run in views.runs]
    values = _values_by_row(ours, views, chosen_rows)
    columns = (*runs, *(f"{row} (paper)" for row in chosen_rows))
    filled = tuple((label, tuple(row.get(key) for key in (*runs, *chosen_rows))) for label, row in values.items())
    percent = bool(ours) and all(table.percent for table in ours if published_rows(table, views.benchmark.name))
    return Table(
        "paper", f"Beside {views.benchmark.paper}", columns, filled, tuple(comparability(views, chosen_rows)), percent
    )


def _values_by_row(ours: Sequence[Table], views: RunViews, models: Sequence[str]) -> dict[str, dict[str, Cell]]:
    """Return the values of the paper's ``models`` and of the runs, by table, row and column."""
    spellings = {normalised_name(model): model for model in reversed(models)}
    values: dict[str, dict[str, Cell]] = {}
    for table in ours:
        own_rows = dict(table.rows)
        for name, cells in published_rows(table, views.benchmark.name):
            spelling, rest = _split_row(name)
            model = spellings.get(normalised_name(spelling))
            for i, column in enumerate(table.columns):
                if model is not None and cells[i] is not None:
                    row = values.setdefault(_PART.join(part for part in (table.name, rest, column) if part), {})
                    row[model] = cells[i]
                    for run in views.runs:
                        label = f"{run.label}{_PART}{rest}" if rest else run.label
                        row[run.label] = own_rows[label][i] if label in own_rows else None
    return values


def comparability(views: RunViews, rows: Sequence[str]) -> list[str]:
    """Return a sentence each on model, rows of data, prompt, judge and decoding, of the runs and of the paper's ``rows``."""
    benchmark = views.benchmark
    models = ", ".join(f"{run.label} ({run.quantisation})" if run.quantisation else run.label for run in views.runs)
    prompts = Counter(str(run.spec["prompt_set"]) for run in views.runs)
    examples = "; ".join(f"{run.label}: {run.examples} examples, {len(run.answers)} instances" for run in views.runs)
    return [
        f"Model: ours {models}; the paper's {', '.join(rows)}.",
        f"Rows: ours {examples}; the paper's rest on {benchmark.paper_rows}.",
        f"Prompt: ours {', '.join(prompts)}; the paper's {benchmark.paper_prompts}.",
        f"Judge: ours {views.judge}; the paper's {benchmark.paper_judge}.",
        f"Decoding: ours {', '.join(dict.fromkeys(decoding_text(run) for run in views.runs))}; the paper's "
        f"{benchmark.paper_decoding}.",
    ]


def decoding_text(run: RunView) -> str:
    """Describe the decoding of a run."""
    if str(run.spec["model"]).startswith(IMPORTED):
        return "unknown (imported)"
    decoding = Decoding(**run.spec["decoding"])
    sampling = f"temperature {decoding.temperature:g}, top_p {decoding.top_p:g}" if decoding.temperature else "greedy"
    return f"{sampling}, {decoding.max_tokens} tokens"


def normalised_name(name: str) -> str:
    """Return a name without what papers spell differently: capitals, spaces, hyphens."""
    return "".join(c for c in name.casefold() if c.isalnum() or c in ".*")


def _find_row(row: str, known: Sequence[str]) -> str:
    for name in known:
        if normalised_name(name) == normalised_name(row):
            return name
    raise SpecError(f"the paper has no row {row!r}; {did_you_mean(row, known)}")


def _split_row(row: str) -> tuple[str, str]:
    """Split a row of the paper into its model and the rest, a condition for example."""
    model, _, rest = row.removesuffix(" (paper)").partition(_PART)
    return model, rest


def matching_cells(
    table: Table,
    run: str,
    row: str,
    theirs: Sequence[tuple[str, tuple[Estimate | None, ...]]],
    selected: Collection[str],
) -> list[tuple[str, str, Estimate, Estimate]]:
    """Return each cell of ours that the paper has too: the row's label, its column, our estimate and the paper's."""
    ours = {normalised_name(label): (label, cells) for label, cells in table.rows}
    matches: list[tuple[str, str, Estimate, Estimate]] = []
    for name, cells in theirs:
        model, rest = _split_row(name)
        if normalised_name(model) != normalised_name(row):
            continue
        our_row = ours.get(normalised_name(f"{run}{_PART}{rest}" if rest else run))
        our_rows = [our_row] if our_row else []
        if not rest and not our_rows:  # the run has a row for each condition
            our_rows = [(label, own_cells) for label, own_cells in table.rows if label.startswith(run + _PART)]
        for label, own_cells in our_rows:
            for column, cell, paper in zip(table.columns, own_cells, cells, strict=True):
                if selected and column not in selected:
                    continue
                if isinstance(cell, Estimate) and paper is not None and paper.value is not None:
                    parts = (run, table.name, label.removeprefix(run).removeprefix(_PART), column, model)
                    matches.append((_PART.join(part for part in parts if part), column, cell, paper))
    return matches


def paper_value(main: Table, views: RunViews, row: str, metric: str | None) -> tuple[str, Estimate, float]:
    """Return a column of a run's main table, its value there, and that of the paper's ``row``: of ``metric``, or the only one.

    Raises:
        SpecError: The paper has no such row, or no single value that is a share and that the run has, too.
    """
    _check_comparable(views)
    published = published_rows(main, views.benchmark.name)
    chosen = _find_row(row, list(dict.fromkeys(_split_row(name)[0] for name, _ in published)))
    cells = matching_cells(main, views.runs[0].label, chosen, published, ())
    values = [
        (column, ours, paper.value)
        for _, column, ours, paper in cells
        if ours.value is not None and paper.value is not None and is_share_column(column, views)
    ]
    known = dict.fromkeys(column for column, *_ in values)
    of_metric = [value for value in values if metric is None or value[0].casefold() == metric.casefold()]
    if len(of_metric) == 1:
        return of_metric[0]
    if not known:
        raise SpecError(f"the run and {chosen} have no share in common that could be tested.")
    if metric is not None and not of_metric:
        raise SpecError(f"the run and {chosen} have no share {metric!r} in common; {did_you_mean(metric, known)}")
    raise SpecError(f"{chosen} has several values; name one with --metric: {', '.join(known)}.")


def is_share_column(column: str, views: RunViews) -> bool:
    """Return whether a column is a share of all answers; True for columns that are no metric of the benchmark."""
    metric = views.label_metrics.of.get(column)
    return metric is None or share_labels(metric, views.label_metrics) is not None


def compared_cells(ours: Estimate, paper: Estimate, *, is_share: bool) -> tuple[Cell, ...]:
    """Return the cells of a comparison of our estimate with the paper's."""
    assert paper.value is not None
    n = paper.n or None
    if ours.value is None:
        return (ours, paper, Estimate(None, n=ours.n, reason=ours.reason), "n/a", ours.n, n)
    inside: str = "no interval"
    if ours.low is not None and ours.high is not None:
        inside = "yes" if ours.low <= paper.value <= ours.high else "no"
    difference = independent_difference(ours, _paper_interval(paper, is_share=is_share))
    difference = replace(difference, value=ours.value - paper.value, n=ours.n)
    return (ours, paper, difference, inside, ours.n, n)


def _paper_interval(paper: Estimate, *, is_share: bool) -> Estimate:
    """Return the paper's estimate with an interval by its n, where it is a share, or else by its printed deviation.

    An estimate that has an interval, as another lab's run has, keeps it.
    """
    assert paper.value is not None
    if paper.low is not None and paper.low != paper.high:
        return paper
    if paper.n and is_share and 0 <= paper.value <= 1:
        score = wilson(round(paper.value * paper.n), paper.n)
        return Estimate(paper.value, score.low, score.high, paper.n)
    if paper.sd is not None:
        half_width = NormalDist().inv_cdf(0.975) * paper.sd
        return Estimate(paper.value, paper.value - half_width, paper.value + half_width, paper.n)
    return paper
