"""LaTeX tables with booktabs rules; they need ``booktabs`` and ``graphicx``, and compile with any engine."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from app.report.tables.table_rendering import cell_text, format_value, missing_value_notes
from app.text.text_escaping import latex
from benchmarks.vocabulary import Cell, Estimate, Table

_WIDE = 5
"""The number of columns above which a table spans the page, with each interval below its value instead of next to it."""

_LONG = 52
"""The number of lines that fit on a page with a table's notes; a longer table continues on the next page."""

_ACROSS = 110
"""The number of characters of prose in a line of the page."""

_LABEL = 0.24
"""The share of a line that row labels take in a table with prose."""

_UNBROKEN = 24
"""The number of characters after which a word in prose may be broken, since LaTeX does not hyphenate a digest."""

_UNBROKEN_LABEL = 16
"""The same for row labels, whose column is narrow."""

_PIECES = re.compile(r"\\texttt\{[^{}]*\}|\\[A-Za-z]+(?:\{\})?|\\.|\{[\[\]]\}|-\{\}|\$[^$]*\$|.", re.DOTALL)
"""The results of :func:`app.text.text_escaping.latex` for one character."""

_CODE_POINT = r"\texttt{}"

_PAPERS_NUMBER = re.compile(r" \((?:Table|Figure)s? [^()]*\)")
_COMMANDS = re.compile(r"(?:(?<=[.] )|^)`rashomon [^`]*`[^.]*[.]")
"""A sentence that begins with a command: advice for a terminal, not for a paper."""

PREAMBLE = r"""\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
"""


def to_latex(table: Table, *, caption: str = "", of: str = "") -> str:
    """Return a table as ``table`` environments, ``table*`` if it is wide; one for each page that its rows need.

    The caption is ``caption``, or the table's title without the paper's table number. The label is ``tab:OF-NAME``.
    """
    parts = _pages(table)
    caption = latex(caption or without_papers_number(table.title))
    label = f"tab:{of}-{table.name}" if of else f"tab:{table.name}"
    environments = (
        _part(table, rows, caption, "" if number else label, last=number == len(parts) - 1)
        for number, rows in enumerate(parts)
    )
    return "\\clearpage\n".join(environments)  # LaTeX defers only a limited number of floats


def document(
    tables: Sequence[Table],
    title: str,
    warnings: Sequence[str] = (),
    *,
    of: str = "",
    captions: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a complete LaTeX document with all ``tables``, each ready to be copied into a paper.

    ``warnings`` come before the tables, ``captions`` are by table name, and ``of`` is the prefix of the labels.
    """
    items = "".join(rf"\item {breakable(latex(warning))}" + "\n" for warning in warnings)
    before = f"\\begin{{itemize}}\n{items}\\end{{itemize}}\n" if items else ""
    body = "\n".join(to_latex(table, caption=captions.get(table.name, ""), of=of) for table in tables)
    return f"{PREAMBLE}\\begin{{document}}\n\\section*{{{latex(title)}}}\n{before}\n{body}\n\\end{{document}}\n"


def without_papers_number(title: str) -> str:
    """Return the title of a table without the paper's number of it."""
    return _PAPERS_NUMBER.sub("", title)


def without_commands(notes: Iterable[str]) -> list[str]:
    """Return the notes without the sentences that begin with a command."""
    return [note for line in notes if (note := _COMMANDS.sub("", line).strip())]


def _part(table: Table, rows: Sequence[tuple[str, tuple[Cell, ...]]], caption: str, label: str, *, last: bool) -> str:
    """Return the environment of one page's rows; without a ``label`` it continues the page before."""
    wide = len(table.columns) > _WIDE
    prose = _prose(table)
    environment = "table*" if wide or any(prose) else "table"
    # \raggedright in a cell redefines \\.
    end = r" \tabularnewline" if any(prose) else r" \\"
    lines = [
        rf"\begin{{{environment}}}[!htbp]",
        r"\centering",
        rf"\caption{{{caption if label else caption + ', continued'}}}",
    ]
    # A label refers to the caption before it.
    lines += [rf"\label{{{label}}}"] if label else []
    lines[2:2] = [] if label else [r"\addtocounter{table}{-1}"]
    lines += [r"\setlength{\tabcolsep}{3pt}"] if wide else []
    # A table that is still too wide for the page is scaled down.
    lines += [] if any(prose) else [r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"]
    lines += [rf"\begin{{tabular}}{{{_columns(table, prose)}}}", r"\toprule"]
    lines.append(" & ".join(["", *(_heading(column, wide) for column in table.columns)]) + end)
    lines.append(r"\midrule")
    for label, cells in rows:
        pairs = [_cell(cell, table.percent, wide, is_prose) for cell, is_prose in zip(cells, prose, strict=True)]
        first = rf"\raggedright\footnotesize {breakable(latex(label), _UNBROKEN_LABEL)}" if any(prose) else latex(label)
        lines.append(" & ".join([first, *(value for value, _ in pairs)]) + end)
        if any(below for _, below in pairs):
            lines.append(" & ".join(["", *(below for _, below in pairs)]) + end)
    lines += [r"\bottomrule", r"\end{tabular}" + ("" if any(prose) else "}")]
    if last:
        notes = without_commands((*table.notes, *missing_value_notes(table)))
        lines += [rf"\par\smallskip{{\footnotesize\raggedright {breakable(latex(note))}\par}}" for note in notes]
    return "\n".join([*lines, rf"\end{{{environment}}}", ""])


def _pages(table: Table) -> list[list[tuple[str, tuple[Cell, ...]]]]:
    """Split the rows into pages."""
    prose = _prose(table)
    width = _ACROSS * _prose_share(table, prose) / max(1, sum(prose))
    pages: list[list[tuple[str, tuple[Cell, ...]]]] = [[]]
    used_width = 0
    for row in table.rows:
        label, cells = row
        words = [math.ceil(len(latex(cell)) / width) for cell in cells if isinstance(cell, str)]
        lines = 1 + (len(cells) > _WIDE)
        if any(prose):
            lines = max([*words, 1 + int(len(label) / (_ACROSS * _LABEL))])
        if pages[-1] and used_width + lines > _LONG:
            pages.append([])
            used_width = 0
        pages[-1].append(row)
        used_width += lines
    return pages


def _prose(table: Table) -> list[bool]:
    """Return, for each column, whether it holds prose that needs more than one line."""
    return [
        any(isinstance(cell := cells[i], str) and len(cell) > _UNBROKEN for _, cells in table.rows)
        for i in range(len(table.columns))
    ]


def _prose_share(table: Table, prose: Sequence[bool]) -> float:
    """Return the share of a line that is left for prose, next to the row labels and the other columns."""
    others = [
        max([len(column), *(len(cell_text(cells[i], table.percent)) for _, cells in table.rows)])
        for i, column in enumerate(table.columns)
        if not prose[i]
    ]
    return max(0.2, 1 - _LABEL - 0.04 - sum(0.025 + longest / _ACROSS for longest in others))


def _columns(table: Table, prose: Sequence[bool]) -> str:
    """Return the column specification: numbers right-aligned, prose in boxes that share the rest of the line."""
    if not any(prose):
        return "l" + "r" * len(prose)
    box = rf"p{{{(_prose_share(table, prose) - 0.02 * sum(prose)) / sum(prose):.3f}\linewidth}}"
    return rf"p{{{_LABEL}\linewidth}}" + "".join(box if is_prose else "r" for is_prose in prose)


def _heading(column: str, wide: bool) -> str:
    """Return a column's heading, in a wide table with one word per line."""
    words = latex(column).split(" ") if wide else [latex(column)]
    stacked = r" \\ ".join(words)
    return stacked if len(words) == 1 else rf"\shortstack[r]{{{stacked}}}"


def _cell(cell: Cell, percent: bool, wide: bool, prose: bool) -> tuple[str, str]:
    """Return a cell, and the text in the line below it."""
    if isinstance(cell, Estimate) and cell.value is not None:
        value = format_value(cell.value, percent)
        if cell.sd is not None:
            return rf"${value}_{{\pm {format_value(cell.sd, percent)}}}$", ""
        if cell.low is not None and cell.high is not None:
            low, high = format_value(cell.low, percent), format_value(cell.high, percent)
            interval = rf"{{\scriptsize [{low}, {high}]}}"
            return (value, interval) if wide else (f"{value} {interval}", "")
    text = latex(cell_text(cell, percent))
    return (rf"\raggedright\footnotesize {breakable(text)}" if prose else text), ""


def breakable(text: str, longest: int = _UNBROKEN) -> str:
    """Return LaTeX in which words of more than ``longest`` characters may be broken; commands stay whole."""
    pieces, unbroken = [], 0
    for piece in _PIECES.findall(text):
        unbroken = 0 if piece.isspace() else unbroken + max(1, len(piece) - len(_CODE_POINT) if "U+" in piece else 1)
        if unbroken > longest:
            pieces.append(r"\hspace{0pt}")
            unbroken = 1
        pieces.append(piece)
    return "".join(pieces)
