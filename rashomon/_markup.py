"""HTML of what a notebook displays. Every text is escaped: names, answers and labels may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.text.escape import html

LONGEST = 200
"""The most characters of a text in a cell."""


def grid(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts as HTML."""
    head = "".join(f"<th>{html(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def heading(text: str) -> str:
    """Return a line of text above a table as HTML."""
    return f"<p><b>{html(text)}</b></p>"


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return html(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
