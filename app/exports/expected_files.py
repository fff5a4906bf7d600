"""Names of the files that an export is going to write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.exports.export_input import file_names
from app.figures.figure_style import FIGURE_FORMATS
from benchmarks.vocabulary import Table


def expected_files(
    formats: Sequence[str], tables: Sequence[Table], folders: Sequence[Path], *, canonical: bool = False
) -> list[str]:
    """Return the names of the files of an export of the runs in ``folders``, whose tables are ``tables``, in ``formats``.

    The names in the folders ``lm-eval/`` and ``figures/`` are not listed. Of the figures, those with nothing to draw are
    not written.
    """
    runs = file_names(folders)
    prefixes = [f"{run}." for run in runs] if len(runs) > 1 else [""]
    figures = [table.name for table in tables if table.chart is not None and table.rows]
    if len(runs) > 1 and not canonical:
        figures.append("memory")
    names = {
        "csv": [*(f"{table.name}.csv" for table in tables), "runs.csv", *(f"{p}samples.csv" for p in prefixes)],
        "md": ["tables.md"],
        "latex": ["tables.tex"],
        "json": ["results.json", *(f"{p}samples.jsonl" for p in prefixes)],
        "parquet": ["tables.parquet", "samples.parquet"],
        "report": ["report.html", "report.tex", "figures/"],
        "html": ["report.html", "samples.html"],
        "lm-eval": ["lm-eval/"],
        "inspect": [f"{run}.eval" for run in runs],
        **{form: [f"{name}.{form}" for name in figures] for form in FIGURE_FORMATS},
    }
    return list(dict.fromkeys(name for form in formats for name in names[form]))
