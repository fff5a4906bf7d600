"""Tables in LaTeX with booktabs' rules; what they need is ``booktabs`` and ``graphicx``, and any engine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from app.report.render import cell_text, figure, reasons
from app.text.escape import latex
from benchmarks.base import Cell, Estimate, Table

_WIDE = 5
"""With more columns than this a table spans the page, and an interval stands under its figure instead of beside it."""

_LONG = 52
"""Lines that fit on a page beside a table's notes; a longer table is continued in another one."""

_ACROSS = 110
"""Characters of prose in a line of the page."""

_LABEL = 0.24
"""Of a line, what the rows' names take beside prose."""

_UNBROKEN = 24
"""Characters of a word in prose after which LaTeX may break it: it would not hyphenate a digest."""

_PAPERS_NUMBER = re.compile(r" \((?:Table|Figure)s? [^()]*\)")
_COMMANDS = re.compile(r"(?:(?<=[.] )|^)`rashomon [^`]*`[^.]*[.]")
"""A sentence that begins with what to type next: for a person at a terminal, not for a paper."""

PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
"""


def to_latex(table: Table, *, caption: str = "", of: str = "") -> str:
    """A table as ``table`` environments, ``table*`` where it is wide: as many as its rows need pages.

    ``caption`` replaces the table's title, from which the number that the paper gives its table is left out. The label is
    ``tab:OF-NAME``.
    """
    parts = _pages(table)
    caption = latex(caption or _PAPERS_NUMBER.sub("", table.title))
    label = f"tab:{of}-{table.name}" if of else f"tab:{table.name}"
    told = (
        _part(table, rows, caption, "" if number else label, last=number == len(parts) - 1)
        for number, rows in enumerate(parts)
    )
    return "\\clearpage\n".join(told)  # LaTeX holds back only so many floats


def document(
    tables: Sequence[Table],
    title: str,
    warnings: Sequence[str] = (),
    *,
    of: str = "",
    captions: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A LaTeX document that compiles as it is, with all ``tables``; each can be copied out of it into a paper.

    ``warnings`` stand before them. ``captions`` are by table name, ``of`` begins the labels.
    """
    told = "".join(rf"\item {_breakable(latex(warning))}" + "\n" for warning in warnings)
    before = f"\\begin{{itemize}}\n{told}\\end{{itemize}}\n" if told else ""
    body = "\n\\clearpage\n".join(to_latex(table, caption=captions.get(table.name, ""), of=of) for table in tables)
    return f"{PREAMBLE}\\begin{{document}}\n\\section*{{{latex(title)}}}\n{before}\n{body}\n\\end{{document}}\n"


def _part(table: Table, rows: Sequence[tuple[str, tuple[Cell, ...]]], caption: str, label: str, *, last: bool) -> str:
    """A page's rows; only the first page has a ``label``, the others continue it."""
    wide = len(table.columns) > _WIDE
    prose = _prose(table)
    environment = "table*" if wide or any(prose) else "table"
    # \raggedright in a cell takes \\ for its own.
    end = r" \tabularnewline" if any(prose) else r" \\"
    lines = [
        rf"\begin{{{environment}}}[!htbp]",
        r"\centering",
        rf"\caption{{{caption if label else caption + ', continued'}}}",
    ]
    # A label takes the number of the caption before it.
    lines += [rf"\label{{{label}}}"] if label else []
    lines[2:2] = [] if label else [r"\addtocounter{table}{-1}"]
    lines += [r"\setlength{\tabcolsep}{3pt}"] if wide else []
    # What is too wide for the page all the same is made smaller as a whole.
    lines += [] if any(prose) else [r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"]
    lines += [rf"\begin{{tabular}}{{{_columns(table, prose)}}}", r"\toprule"]
    lines.append(" & ".join(["", *(_heading(column, wide) for column in table.columns)]) + end)
    lines.append(r"\midrule")
    for label, cells in rows:
        told = [_cell(cell, table.percent, wide, one) for cell, one in zip(cells, prose, strict=True)]
        first = rf"\raggedright\footnotesize {_breakable(latex(label))}" if any(prose) else latex(label)
        lines.append(" & ".join([first, *(value for value, _ in told)]) + end)
        if any(below for _, below in told):
            lines.append(" & ".join(["", *(below for _, below in told)]) + end)
    lines += [r"\bottomrule", r"\end{tabular}" + ("" if any(prose) else "}")]
    if last:
        notes = [note for line in (*table.notes, *reasons(table)) if (note := _COMMANDS.sub("", line).strip())]
        lines += [rf"\par\smallskip{{\footnotesize\raggedright {_breakable(latex(note))}\par}}" for note in notes]
    return "\n".join([*lines, rf"\end{{{environment}}}", ""])


def _pages(table: Table) -> list[list[tuple[str, tuple[Cell, ...]]]]:
    """The rows in as many parts as they need pages."""
    prose = _prose(table)
    width = _ACROSS * _left(table, prose) / max(1, sum(prose))
    pages: list[list[tuple[str, tuple[Cell, ...]]]] = [[]]
    used = 0
    for row in table.rows:
        label, cells = row
        words = [math.ceil(len(latex(cell)) / width) for cell in cells if isinstance(cell, str)]
        lines = 1 + (len(cells) > _WIDE)
        if any(prose):
            lines = max([*words, 1 + int(len(label) / (_ACROSS * _LABEL))])
        if pages[-1] and used + lines > _LONG:
            pages.append([])
            used = 0
        pages[-1].append(row)
        used += lines
    return pages


def _prose(table: Table) -> list[bool]:
    """Which columns hold more words than stand in one line."""
    return [
        any(isinstance(cell := cells[i], str) and len(cell) > _UNBROKEN for _, cells in table.rows)
        for i in range(len(table.columns))
    ]


def _left(table: Table, prose: Sequence[bool]) -> float:
    """What is left of a line for all the prose, beside the rows' names and the other columns."""
    others = [
        max([len(column), *(len(cell_text(cells[i], table.percent)) for _, cells in table.rows)])
        for i, column in enumerate(table.columns)
        if not prose[i]
    ]
    return max(0.2, 1 - _LABEL - 0.04 - sum(0.025 + longest / _ACROSS for longest in others))


def _columns(table: Table, prose: Sequence[bool]) -> str:
    """The columns' kinds: figures to the right; prose in boxes that share what the labels leave."""
    if not any(prose):
        return "l" + "r" * len(prose)
    box = rf"p{{{(_left(table, prose) - 0.02 * sum(prose)) / sum(prose):.3f}\linewidth}}"
    return rf"p{{{_LABEL}\linewidth}}" + "".join(box if one else "r" for one in prose)


def _heading(column: str, wide: bool) -> str:
    """A column's name, in a wide table one word under the other."""
    words = latex(column).split(" ") if wide else [latex(column)]
    stacked = r" \\ ".join(words)
    return stacked if len(words) == 1 else rf"\shortstack[r]{{{stacked}}}"


def _cell(cell: Cell, percent: bool, wide: bool, prose: bool) -> tuple[str, str]:
    """A cell, and what stands in the line under it."""
    if isinstance(cell, Estimate) and cell.value is not None:
        value = figure(cell.value, percent)
        if cell.sd is not None:
            return rf"${value}_{{\pm {figure(cell.sd, percent)}}}$", ""
        if cell.low is not None and cell.high is not None:
            low, high = figure(cell.low, percent), figure(cell.high, percent)
            interval = rf"{{\scriptsize [{low}, {high}]}}"
            return (value, interval) if wide else (f"{value} {interval}", "")
    text = latex(cell_text(cell, percent))
    return (rf"\raggedright\footnotesize {_breakable(text)}" if prose else text), ""


def _breakable(text: str) -> str:
    """LaTeX with places to break in words that are too long for a line; commands are left alone."""
    return re.sub(rf"[A-Za-z0-9]{{{_UNBROKEN}}}(?=[A-Za-z0-9])", r"\g<0>\\hspace{0pt}", text)
