"""Rendering of tables: terminal text, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from app.text.text_escaping import clean, markdown, spreadsheet_line
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


def format_value(value: float, percent: bool = False) -> str:
    """Format a value as the papers do: three decimals, or two in percent."""
    return f"{100 * value:.2f}" if percent else f"{value:.3f}"


def cell_text(cell: Cell, percent: bool = False) -> str:
    """Format a cell as plain text: ``0.898 [0.870, 0.921]``, ``7.51 ± 0.75``, ``n/a``, or "" for an empty cell.

    Where answers are missing, the number of those that count follows: ``0.898 [0.870, 0.921] n=96/128``.
    """
    if not isinstance(cell, Estimate):
        return "" if cell is None else str(cell)
    if cell.value is None:
        return "n/a"
    parts = [format_value(cell.value, percent)]
    if cell.sd is not None:
        parts.append(f"± {format_value(cell.sd, percent)}")
    elif cell.low is not None and cell.high is not None:
        parts.append(f"[{format_value(cell.low, percent)}, {format_value(cell.high, percent)}]")
    return " ".join([*parts, *_counted(cell)])


def _counted(cell: Estimate) -> list[str]:
    """Return the number of answers that count, of all, where some are missing."""
    return [f"n={cell.n}/{cell.n + cell.missing}"] if cell.missing else []


def points(share: float | None) -> str:
    """Format a difference of shares in percentage points: ``+1.2``, ``0.0``, ``n/a``."""
    if share is None:
        return "n/a"
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def points_interval(difference: Estimate) -> str:
    """Format the interval of a difference of shares in percentage points: ``[-0.3, +2.7]``; empty if it has none."""
    if difference.value is None or difference.low is None or difference.high is None:
        return ""
    return f"[{points(difference.low)}, {points(difference.high)}]"


def missing_value_notes(table: Table) -> list[str]:
    """Return the reasons why cells are n/a, each once, with the columns it applies to."""
    reasons: dict[str, list[str]] = {}
    for _, cells in table.rows:
        for column, cell in zip(table.columns, cells, strict=True):
            if isinstance(cell, Estimate) and cell.value is None and cell.reason:
                columns = reasons.setdefault(cell.reason, [])
                if column not in columns:
                    columns.append(column)
    return [f"n/a in {', '.join(columns)}: {reason}" for reason, columns in reasons.items()]


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table to the terminal (or ``console``), split into several parts if the terminal is too narrow."""
    from rich.text import Text

    from app.text.console import Terminal

    console = console or Terminal()
    longest = max((len(clean(label)) for label, _ in table.rows), default=0)
    if _is_list(table, console.width - longest - 1):
        console.print(_rich_table(table, range(len(table.columns)), table.title, longest, cell_text))
        console.print()
        parts = []
    else:
        label_width = min(longest, max(16, console.width // 3))
        parts = _parts(table, console.width - label_width - 1)
    for number, columns in enumerate(parts):
        title = table.title if number == 0 else f"{table.title}, continued"
        console.print(_rich_table(table, columns, title, label_width))
        console.print()
    for note in (*table.notes, *missing_value_notes(table)):
        console.print(Text(clean(note)), style="dim")
    if table.notes:
        console.print()


_FEWEST_ROWS = 5
"""The fewest rows of a table whose intervals stand beside their values."""


def _is_list(table: Table, width: int) -> bool:
    """Return whether a table has few columns and many rows, so that each row fits on one line with its intervals."""
    if not 0 < len(table.columns) <= 3 or len(table.rows) < _FEWEST_ROWS:
        return False
    widths = [
        max(len(cell_text(cells[i], table.percent)) for _, cells in table.rows) for i in range(len(table.columns))
    ]
    return sum(max(own, len(name)) + 1 for own, name in zip(widths, table.columns, strict=True)) <= width


def _parts(table: Table, width: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    used_width = 0
    for i, column in enumerate(table.columns):
        lines = [line for _, cells in table.rows for line in terminal_cell(cells[i], table.percent).splitlines()]
        # Prose is wrapped, so its column may be narrow.
        column_width = max(map(len, [clean(column), *lines])) if not _is_prose(table, i) else min(12, width)
        if parts[-1] and used_width + column_width + 1 > width:
            parts.append([])
            used_width = 0
        parts[-1].append(i)
        used_width += column_width + 1
    return parts


def _rich_table(
    table: Table,
    columns: Sequence[int],
    title: str,
    label_width: int,
    text: Callable[[Cell, bool], str] | None = None,
) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable(
        title=Text(clean(title)), title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False
    )
    rich.add_column("", overflow="fold", width=label_width)
    for i in columns:
        prose = _is_prose(table, i)
        heading = Text(clean(table.columns[i]))
        rich.add_column(heading, justify="left" if prose else "right", overflow="fold", no_wrap=not prose)
    for label, cells in table.rows:
        texts = (Text(clean((text or terminal_cell)(cells[i], table.percent), newlines=True)) for i in columns)
        rich.add_row(Text(clean(label)), *texts)
    return rich


def _is_prose(table: Table, column: int) -> bool:
    return any(isinstance(cells[column], str) for _, cells in table.rows)


def terminal_cell(cell: Cell, percent: bool = False) -> str:
    """Format a cell as the papers do, with its interval on a second line: ``.898``, ``.87~.92``; ``7.51``, ``±0.75``.

    Where answers are missing, the number of those that count is on a third.
    """
    if not isinstance(cell, Estimate) or cell.value is None:
        return cell_text(cell, percent)
    lines = [format_value(cell.value, percent) if percent or cell.sd is not None else _short(cell.value)]
    if cell.sd is not None:
        lines.append(f"±{format_value(cell.sd, percent)}")
    elif cell.low is not None and cell.high is not None:
        low, high = (f"{100 * end:.1f}" if percent else _short(end, 2) for end in (cell.low, cell.high))
        lines.append(f"{low}~{high}")
    return "\n".join([*lines, *_counted(cell)])


def short_value(cell: Cell, percent: bool = False, column: str = "") -> str:
    """Format a cell without its interval: ``.898``, ``7.51``, ``n/a``; a p below .0005 in a ``column`` of them as ``<.001``."""
    if not isinstance(cell, Estimate) or cell.value is None:
        return cell_text(cell, percent)
    if column.partition(" ")[0] == "p" and cell.value < 0.0005:
        return "<.001"
    return format_value(cell.value, percent) if percent or cell.sd is not None else _short(cell.value)


def short_interval(cell: Cell, percent: bool = False) -> str:
    """Format a cell's interval: ``[.87, .92]``, ``[86.9, 92.1]``, ``±0.75``; empty if it has none.

    Where answers are missing, the number of those that count follows.
    """
    if not isinstance(cell, Estimate) or cell.value is None:
        return ""
    if cell.sd is not None:
        return " ".join([f"±{format_value(cell.sd, percent)}", *_counted(cell)])
    if cell.low is None or cell.high is None:
        return "".join(_counted(cell))
    low, high = (f"{100 * end:.1f}" if percent else _short(end, 2) for end in (cell.low, cell.high))
    return " ".join([f"[{low}, {high}]", *_counted(cell)])


def _short(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def to_csv(table: Table) -> str:
    """Return a table as CSV, with value, low, high and n of every column of estimates, and sd if any has one; n/a is empty.

    Values are fractions, even if the table is printed in percent.
    """
    has_intervals = [any(isinstance(cells[i], Estimate) for _, cells in table.rows) for i in range(len(table.columns))]
    has_sd = any(isinstance(cell, Estimate) and cell.sd is not None for _, cells in table.rows for cell in cells)
    parts = ("", " low", " high", " n", " sd") if has_sd else ("", " low", " high", " n")
    header = ["row"]
    for column, estimated in zip(table.columns, has_intervals, strict=True):
        header += [column + part for part in parts] if estimated else [column]
    lines = [spreadsheet_line(header)]
    for label, cells in table.rows:
        row: list[Any] = [label]
        for cell, estimated in zip(cells, has_intervals, strict=True):
            if isinstance(cell, Estimate):
                unknown = cell.value is not None and not cell.n  # a published value
                row += [cell.value, cell.low, cell.high, None if unknown else cell.n, cell.sd][: len(parts)]
            elif estimated:
                row += [cell, *[None] * (len(parts) - 1)]
            else:
                row.append(cell)
        lines.append(spreadsheet_line(row))
    return "".join(lines)


def to_markdown(table: Table) -> str:
    """Return a table in GitHub's Markdown, followed by its notes."""
    lines = [
        f"### {markdown(table.title)}",
        "",
        "| | " + " | ".join(markdown(column) for column in table.columns) + " |",
        "|---|" + "---:|" * len(table.columns),
    ]
    for label, cells in table.rows:
        lines.append(
            f"| {markdown(label)} | " + " | ".join(markdown(cell_text(cell, table.percent)) for cell in cells) + " |"
        )
    for note in (*table.notes, *missing_value_notes(table)):
        lines += ["", markdown(note)]
    return "\n".join(lines) + "\n"
