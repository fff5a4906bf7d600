"""Runs beside the paper's rows: how far they are, and what may be the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.compare.published import comparability, published_table
from app.compare.run_view import load
from app.report.tables import tables_of
from benchmarks.base import Estimate, Table


@dataclass(frozen=True)
class PaperComparison:
    """The table of both, what it comes to, and how comparable the two are, a sentence each."""

    table: Table
    verdict: str
    comparability: tuple[str, ...]


def beside_published(folders: Sequence[Path], rows: Sequence[str], judge: str | None) -> PaperComparison:
    """The runs in ``folders`` beside the paper's ``rows``. Raises SpecError where the paper has no such row."""
    sides = load(folders, judge=judge)
    table = published_table(tables_of(folders, judge=judge, published=False), sides, rows)
    apart = [
        (abs(cell.value), label)
        for label, cells in table.rows
        if isinstance(cell := cells[2], Estimate) and cell.value is not None
    ]
    who = ", ".join(rows)
    if not apart:
        return PaperComparison(table, f"The paper has no figure of {who} beside which these runs stand.", ())
    outside = sum(cells[3] == "no" for _, cells in table.rows)
    most, where = max(apart)
    quantised = dict.fromkeys(f"{side.label} ({side.quantisation})" for side in sides.sides if side.quantisation)
    weights = (
        f" Its weights are not known to be those of {', '.join(quantised)}: the paper's ran on a GPU, and what framework and "
        "quantisation do is measured by `rashomon parity --model`."
        if quantised
        else ""
    )
    verdict = (
        f"Beside the paper's {who}: of {len(apart)} figures {outside} are not inside our interval; they differ by "
        f"{sum(each for each, _ in apart) / len(apart):.3f} on average and by {most:.3f} at most ({where}). What was asked "
        f"there, token for token, is not known; rows, prompt, judge and decoding of both stand under the table.{weights}"
    )
    return PaperComparison(table, verdict, tuple(comparability(sides, rows)))
