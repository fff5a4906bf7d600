"""Comparison with another lab's run, as a paper's row: by its tables alone, so that it may have other data and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.compare.papers.paper_comparison import compared_cells, decoding_text, is_share_column, matching_cells
from app.compare.runs.run_view import RunView, RunViews
from app.compare.runs.view_reader import load_views
from app.report.tables.run_tables import tables_of
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Cell, Estimate, Table

_COLUMNS = ("ours", "theirs", "difference", "inside ours", "n, ours", "n, theirs")
_PART = " / "


def received_table(
    main: Table,
    views: RunViews,
    received: Mapping[str, Path],
    columns: Sequence[str] = (),
    judge: str | None = None,
) -> Table:
    """Compare each run with each received run, cell by cell of their main tables.

    ``main`` is that of our runs, ``received`` the folders of the other runs by the name on display. ``columns`` restricts the
    columns, unless it is empty. Raises SpecError for a run of another benchmark.
    """
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    notes: list[str] = []
    for name, folder in received.items():
        theirs = load_views([folder], judge=judge)
        if theirs.benchmark.name != views.benchmark.name:
            raise SpecError(
                f"{name} is a run of {theirs.benchmark.name}, not of {views.benchmark.name}; compare runs of one benchmark."
            )
        display = Path(name).name
        (table,) = tables_of([folder], judge=judge, only=main.name, published=False)
        others = _aligned(table, main, theirs.runs[0].label, display)
        for run in views.runs:
            rows += [
                (label, compared_cells(cell, other, is_share=is_share_column(column, views)))
                for label, column, cell, other in matching_cells(main, run.label, display, others, columns)
            ]
        notes += _comparability(views, theirs, display)
    empty = [] if rows else [f"The main table of these runs has no value in common with that of {', '.join(received)}."]
    notes = [
        *empty,
        "difference: ours less theirs, with the 95% interval for independent samples (Newcombe 1998), from both intervals, as if "
        "no instance were shared. Where instances are shared, naming the run without published: tests the difference by pairs.",
        *notes,
    ]
    return Table("received", "Beside received runs", _COLUMNS, tuple(rows), tuple(notes))


def _aligned(theirs: Table, ours: Table, label: str, display: str) -> list[tuple[str, tuple[Estimate | None, ...]]]:
    """Return the rows of another run under the name on display, in the columns of our table."""
    rows = []
    for name, cells in theirs.rows:
        if name == label or name.startswith(label + _PART):
            by_column = dict(zip(theirs.columns, cells, strict=True))
            values = (by_column.get(column) for column in ours.columns)
            rows.append(
                (
                    display + name.removeprefix(label),
                    tuple(cell if isinstance(cell, Estimate) else None for cell in values),
                )
            )
    return rows


def _comparability(ours: RunViews, theirs: RunViews, display: str) -> list[str]:
    """Return a sentence each on model, rows, prompt, judge and decoding of the runs and of a received one."""
    (other,) = theirs.runs
    shared = [f"{run.label}: {len(run.coded.paired_places(other.coded)[0])}" for run in ours.runs]
    facts = {
        "Model": _model,
        "Rows": lambda run: f"{run.examples} examples, {len(run.answers)} instances",
        "Prompt": lambda run: str(run.spec["prompt_set"]),
        "Decoding": decoding_text,
    }
    sentences = [
        f"{fact}: ours {', '.join(dict.fromkeys(text(run) for run in ours.runs))}; that of {display} {text(other)}."
        for fact, text in facts.items()
    ]
    return [
        *sentences,
        f"Judge: ours {ours.judge}; that of {display} {theirs.judge}.",
        f"Instances of {display} that are ours too: {'; '.join(shared)}.",
    ]


def _model(run: RunView) -> str:
    return f"{run.label} ({run.quantisation})" if run.quantisation else run.label
