"""A ladder as files: its figure, its tables and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

from app.exports.source import Files
from app.figures.ladder import figure
from app.figures.style import FIGURE_FORMATS, to_bytes
from app.parity.ladder.compare import Ladder
from app.report.latex import document
from app.report.render import to_csv, to_markdown
from app.text.escape import markdown
from benchmarks.base import Table

FORMATS = ("csv", "md", "latex", *FIGURE_FORMATS)


def to_files(
    found: Ladder, tables: Sequence[Table], verdicts: Sequence[str], formats: Sequence[str], width: str
) -> Files:
    """``found`` in each of ``formats``, with the sentences ``verdicts`` before its ``tables``; figures of ``width``."""
    files: Files = {}
    for word in dict.fromkeys(formats):
        if word in FIGURE_FORMATS:
            files[f"ladder.{word}"] = to_bytes(figure(found, width=width), word)
        elif word == "csv":
            files |= {f"{table.name}.csv": to_csv(table) for table in tables}
        elif word == "md":
            files["ladder.md"] = "\n".join([*(f"{markdown(v)}\n" for v in verdicts), *map(to_markdown, tables)])
        else:
            files["ladder.tex"] = document(tables, "Where the difference enters", verdicts, of="ladder")
    return files
