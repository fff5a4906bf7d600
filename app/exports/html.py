"""Export to a single HTML page with tables, figures and a sample browser; it loads nothing and sends nothing.

All text from models, data sets and files is untrusted. It is escaped in the markup, and in the browser's data it is JSON
without any ``<``, inserted through ``textContent``. The content security policy allows only the page's own script and style
sheet, by their digests, and images from ``data:``, so that no request leaves the page.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.exports.export_input import Export, ExportedRun, Files, is_right
from app.exports.figures import export_figures
from app.figures.style import to_bytes
from app.report.render import cell_text, format_value, missing_value_notes
from app.text.escape import clean, html
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Cell, Estimate, Media, Record, Table

_OPEN = ("tradeoff", "differences")
"""The tables of a comparison that are unfolded at first."""

_PAGE = Path(__file__).resolve().parent / "page"


def to_html_files(export: Export) -> Files:
    """Return ``report.html``."""
    return {"report.html": page(export)}


def page(export: Export) -> str:
    """Return the report as one HTML document."""
    style, script = ((_PAGE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"{export.benchmark.title}: {', '.join(run.label for run in export.runs)}"
    figures = [(name, to_bytes(figure, "svg")) for _, name, figure in export_figures(export)]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_text(title)}</title><style>{style}</style></head><body>",
        f"<header><h1>{_text(export.benchmark.title)}</h1><p>{_text(export.benchmark.paper)}</p></header><main>",
        _warnings(export),
        _table(export.runs_table(), opened=False),
        *(_table(table, opened=table is export.main or table.name in _OPEN) for table in export.tables),
        *(_figure(name, svg) for name, svg in figures),
        _browser(),
        "</main>",
        f'<script type="application/json" id="data">{_json(browser_data(export))}</script>',
        f"<script>{script}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _warnings(export: Export) -> str:
    items = "".join(f"<li>{_text(warning)}</li>" for warning in export.warnings)
    return f'<ul class="warnings">{items}</ul>' if items else ""


def browser_data(export: Export) -> dict[str, Any]:
    """Return the data of the sample browser: each instance once, with the answer of every run that has it."""
    instances: dict[str, dict[str, Any]] = {}
    for number, run in enumerate(export.runs):
        for record in run.records:
            if record.instance.id not in instances:
                instances[record.instance.id] = _instance(record)
            instances[record.instance.id]["answers"].append(_answer(export, number, run, record))
    return {
        "runs": [clean(run.label) for run in export.runs],
        "instances": list(instances.values()),
        "media": {
            name: {"facts": thumbnail.facts, "picture": thumbnail.picture}
            for name, thumbnail in export.thumbnails.items()
        },
    }


def _instance(record: Record) -> dict[str, Any]:
    instance = record.instance
    parts = [
        {"media": part.sha256, "modality": part.modality} if isinstance(part, Media) else {"text": _clean(part.text)}
        for part in instance.parts
    ]
    references = {clean(key): [_clean(value) for value in values] for key, values in instance.references.items()}
    strata = {clean(key): clean(value) for key, value in instance.strata.items()}
    fields = {"id": clean(instance.id), "condition": instance.condition, "question": _clean(instance.question)}
    return {**fields, "parts": parts, "references": references, "strata": strata, "answers": []}


def _answer(export: Export, number: int, run: ExportedRun, record: Record) -> dict[str, Any]:
    answer, verdict, outcome = record.answer, record.verdicts.get(run.judge), record.outcome(run.judge)
    text = (
        ""
        if answer is None
        else (answer.error or "")
        if answer.finish_reason == "error"
        else visible_answer(answer.text)
    )
    return {
        "run": number,
        "outcome": outcome,
        "label": verdict.label if verdict is not None and outcome == "labelled" else outcome,
        "right": is_right(export.benchmark, run, record),
        "text": _clean(text),
        "reason": _clean(verdict.reason) if verdict is not None else "",
        "cut": answer is not None and answer.finish_reason == "length",
    }


def _table(table: Table, *, opened: bool) -> str:
    return f"<details{' open' if opened else ''}><summary><h2>{_text(table.title)}</h2></summary>{table_markup(table)}</details>"


def table_markup(table: Table) -> str:
    """Return a table and its notes as HTML elements, without its title."""
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{_text(label)}</th>{"".join(_cell(cell, table.percent) for cell in cells)}</tr>'
        for label, cells in table.rows
    )
    notes = "".join(f"<li>{_text(note)}</li>" for note in (*table.notes, *missing_value_notes(table)))
    return (
        f'<div class="wide"><table><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<ul class="notes">{notes}</ul>'
    )


def _cell(cell: Cell, percent: bool) -> str:
    if isinstance(cell, Estimate):
        if cell.value is None:
            return f'<td class="none" title="{_text(cell.reason)}">n/a</td>'
        value = format_value(cell.value, percent)
        around = cell_text(cell, percent).removeprefix(value).strip()
        return f"<td>{value}{f' <small>{_text(around)}</small>' if around else ''}</td>"
    return f'<td class="words">{_text(cell)}</td>' if isinstance(cell, str) else f"<td>{cell_text(cell)}</td>"


def _figure(title: str, svg: str | bytes) -> str:
    # An image rather than markup, since scripts in an image do not run.
    encoded = svg.encode() if isinstance(svg, str) else svg
    source = f"data:image/svg+xml;base64,{b64encode(encoded).decode()}"
    return f'<figure><img src="{source}" alt="{_text(title)}"></figure>'


def _browser() -> str:
    fields = "".join(
        f'<label>{name}<select id="{key}"><option value="">all</option></select></label>'
        for key, name in (("condition", "Condition"), ("run", "Run"), ("label", "Label"), ("right", "Accurate"))
    )
    return (
        '<section><h2>Samples</h2><noscript><p>The samples need JavaScript.</p></noscript><form id="filters">'
        f'{fields}<label>Search<input id="search" type="search" autocomplete="off"></label>'
        '<label class="check"><input id="differ" type="checkbox">runs differ</label></form>'
        '<p id="count" role="status"></p><div id="list"></div>'
        '<nav><button type="button" id="back">previous</button><button type="button" id="next">next</button></nav></section>'
    )


def _text(text: object) -> str:
    return html(str(text))


def _clean(text: str) -> str:
    return clean(text, newlines=True)


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Nothing in it can end its element or begin a comment.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
