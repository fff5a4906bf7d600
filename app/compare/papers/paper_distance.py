"""Comparison of runs with the paper's rows: the distance, and its possible reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.compare.papers.paper_comparison import comparability, published_table
from app.compare.runs.view_reader import load_views
from app.report.tables.run_tables import tables_of
from benchmarks.vocabulary import Estimate, Table


@dataclass(frozen=True)
class PaperComparison:
    """The table of runs and the paper's rows, a verdict, and sentences on their comparability."""

    table: Table
    verdict: str
    comparability: tuple[str, ...]


def compare_with_paper(folders: Sequence[Path], rows: Sequence[str], judge: str | None) -> PaperComparison:
    """Compare the runs in ``folders`` with the paper's ``rows``.

    Raises:
        SpecError: The paper has no such row.
    """
    views = load_views(folders, judge=judge)
    table = published_table(tables_of(folders, judge=judge, published=False), views, rows)
    distances = [
        (abs(cell.value), label)
        for label, cells in table.rows
        if isinstance(cell := cells[2], Estimate) and cell.value is not None
    ]
    names = ", ".join(rows)
    if not distances:
        return PaperComparison(table, f"The paper has no value of {names} to compare these runs with.", ())
    outside_count = sum(cells[3] == "no" for _, cells in table.rows)
    largest, label_of_largest = max(distances)
    quantised = dict.fromkeys(f"{run.label} ({run.quantisation})" for run in views.runs if run.quantisation)
    weights = (
        f" Its weights may differ from those of {', '.join(quantised)}: the paper's models ran on a GPU; "
        "`rashomon parity --model` measures the effect of framework and quantisation."
        if quantised
        else ""
    )
    verdict = (
        f"Compared with the paper's {names}: of {len(distances)} values {outside_count} are outside our interval; they differ by "
        f"{sum(distance for distance, _ in distances) / len(distances):.3f} on average and by {largest:.3f} at most "
        f"({label_of_largest}). The paper's exact prompts are unknown; the notes of the table give rows, prompt, judge and "
        f"decoding of both.{weights}"
    )
    return PaperComparison(table, verdict, tuple(comparability(views, rows)))
