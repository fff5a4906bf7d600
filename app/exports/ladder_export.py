"""Export of a ladder: its figure, its tables, and the conclusions from them."""

from __future__ import annotations

from collections.abc import Sequence

from app.exports.export_input import Files
from app.figures.figure_style import FIGURE_FORMATS, to_bytes
from app.figures.ladder_figures import draw_ladder
from app.parity.ladder.ladder_comparison import Ladder
from app.report.tables.latex_tables import document
from app.report.tables.table_rendering import to_csv, to_markdown
from app.text.text_escaping import markdown
from benchmarks.vocabulary import Table

FORMATS = ("csv", "md", "latex", *FIGURE_FORMATS)


def to_files(
    ladder: Ladder, tables: Sequence[Table], verdicts: Sequence[str], formats: Sequence[str], width: str
) -> Files:
    """Return ``ladder`` in all ``formats``, with the sentences ``verdicts`` before its ``tables``; figures of ``width``."""
    files: Files = {}
    for form in dict.fromkeys(formats):
        if form in FIGURE_FORMATS:
            files[f"ladder.{form}"] = to_bytes(draw_ladder(ladder, width=width), form)
        elif form == "csv":
            files |= {f"{table.name}.csv": to_csv(table) for table in tables}
        elif form == "md":
            files["ladder.md"] = "\n".join([*(f"{markdown(v)}\n" for v in verdicts), *map(to_markdown, tables)])
        else:
            files["ladder.tex"] = document(tables, "Where the difference enters", verdicts, of="ladder")
    return files
