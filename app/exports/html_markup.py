"""HTML markup of tables and figures, with every text escaped, and the policy of a page that loads nothing."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from app.report.tables.table_rendering import cell_text, format_value, missing_value_notes
from app.text.text_escaping import clean
from app.view.saved.page_document import source_digest
from benchmarks.vocabulary import Cell, Estimate, Table


def escape_text(text: object) -> str:
    """Return a text as HTML, with its line breaks; control and invisible characters become visible escapes."""
    return escape(clean(str(text), newlines=True), quote=True)


def table_markup(table: Table) -> str:
    """Return the rows of a table, in a box that scrolls."""
    head = "".join(f'<th scope="col">{escape_text(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{escape_text(label)}</th>{"".join(_cell(cell, table.percent) for cell in cells)}</tr>'
        for label, cells in table.rows
    )
    return f'<div class="wide"><table><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def notes_markup(table: Table) -> str:
    """Return the notes of a table as a list; empty if there are none."""
    notes = "".join(f"<li>{escape_text(note)}</li>" for note in (*table.notes, *missing_value_notes(table)))
    return f'<ul class="notes">{notes}</ul>' if notes else ""


def _cell(cell: Cell, percent: bool) -> str:
    if isinstance(cell, Estimate):
        if cell.value is None:
            return f'<td class="none" title="{escape_text(cell.reason)}">n/a</td>'
        value = format_value(cell.value, percent)
        around = cell_text(cell, percent).removeprefix(value).strip()
        return f"<td>{value}{f' <small>{escape_text(around)}</small>' if around else ''}</td>"
    return f'<td class="words">{escape_text(cell)}</td>' if isinstance(cell, str) else f"<td>{cell_text(cell)}</td>"


def figure_markup(title: str, svg: str | bytes) -> str:
    """Return a figure as an image rather than markup, since scripts in an image do not run."""
    encoded = svg.encode() if isinstance(svg, str) else svg
    return f'<figure><img src="{data_uri(encoded, "svg+xml")}" alt="{escape_text(title)}"></figure>'


def data_uri(image: bytes, kind: str) -> str:
    """Return an image as a ``data:`` URI."""
    return f"data:image/{kind};base64,{b64encode(image).decode()}"


def page_head(title: str, style: str) -> str:
    """Return the beginning of a page without scripts, to the end of its head; only its own ``style`` is allowed."""
    policy = (
        f"default-src 'none'; img-src data:; style-src '{source_digest(style)}'; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape_text(title)}</title><style>{style}</style></head>",
        ]
    )
