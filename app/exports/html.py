"""One HTML file with tables, figures and a browser of the samples; it loads nothing and sends nothing.

Everything a model, a data set or a file says reaches the page as text: escaped in the markup, and in the browser's data as
JSON in which no ``<`` stands, shown through ``textContent``. The content security policy allows the page's one script and one
style sheet by their digests, pictures from ``data:`` and nothing else, so that no request leaves it.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from app.exports.figures import figures
from app.exports.source import Export, ExportedRun, Files, right
from app.figures.style import to_bytes
from app.report.render import cell_text, figure, reasons
from app.text.escape import clean
from benchmarks.base import Cell, Estimate, Media, Record, Table
from benchmarks.text.answer_text import visible_answer

_OPEN = ("tradeoff", "differences")
"""Of a comparison's tables those that are read first."""

_PAGE = Path(__file__).resolve().parent / "page"


def to_html_files(given: Export) -> Files:
    """``report.html``."""
    return {"report.html": page(given)}


def page(given: Export) -> str:
    """The report as one HTML document."""
    style, script = ((_PAGE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"{given.benchmark.title}: {', '.join(run.label for run in given.runs)}"
    drawn = [(told, to_bytes(each, "svg")) for _, told, each in figures(given)]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_text(title)}</title><style>{style}</style></head><body>",
        f"<header><h1>{_text(given.benchmark.title)}</h1><p>{_text(given.benchmark.paper)}</p></header><main>",
        _warnings(given),
        _table(given.runs_table(), opened=False),
        *(_table(table, opened=table is given.main or table.name in _OPEN) for table in given.tables),
        *(_figure(told, svg) for told, svg in drawn),
        _browser(),
        "</main>",
        f'<script type="application/json" id="data">{_json(samples(given))}</script>',
        f"<script>{script}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _warnings(given: Export) -> str:
    told = "".join(f"<li>{_text(warning)}</li>" for warning in given.warnings)
    return f'<ul class="warnings">{told}</ul>' if told else ""


def samples(given: Export) -> dict[str, Any]:
    """What the browser of samples shows: each instance once, with the answer of every run that was asked it."""
    found: dict[str, dict[str, Any]] = {}
    for number, run in enumerate(given.runs):
        for record in run.records:
            if record.instance.id not in found:
                found[record.instance.id] = _instance(record)
            found[record.instance.id]["answers"].append(_answer(given, number, run, record))
    return {
        "runs": [clean(run.label) for run in given.runs],
        "instances": list(found.values()),
        "media": {name: {"facts": each.facts, "picture": each.picture} for name, each in given.shown.items()},
    }


def _instance(record: Record) -> dict[str, Any]:
    instance = record.instance
    parts = [
        {"media": part.sha256, "modality": part.modality} if isinstance(part, Media) else {"text": _clean(part.text)}
        for part in instance.parts
    ]
    references = {clean(key): [_clean(value) for value in values] for key, values in instance.references.items()}
    strata = {clean(key): clean(value) for key, value in instance.strata.items()}
    told = {"id": clean(instance.id), "condition": instance.condition, "question": _clean(instance.question)}
    return {**told, "parts": parts, "references": references, "strata": strata, "answers": []}


def _answer(given: Export, number: int, run: ExportedRun, record: Record) -> dict[str, Any]:
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
        "right": right(given.benchmark, run, record),
        "text": _clean(text),
        "reason": _clean(verdict.reason) if verdict is not None else "",
        "cut": answer is not None and answer.finish_reason == "length",
    }


def _table(table: Table, *, opened: bool) -> str:
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{_text(label)}</th>{"".join(_cell(cell, table.percent) for cell in cells)}</tr>'
        for label, cells in table.rows
    )
    notes = "".join(f"<li>{_text(note)}</li>" for note in (*table.notes, *reasons(table)))
    return (
        f"<details{' open' if opened else ''}><summary><h2>{_text(table.title)}</h2></summary>"
        f'<div class="wide"><table><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<ul class="notes">{notes}</ul></details>'
    )


def _cell(cell: Cell, percent: bool) -> str:
    if isinstance(cell, Estimate):
        if cell.value is None:
            return f'<td class="none" title="{_text(cell.reason)}">n/a</td>'
        value = figure(cell.value, percent)
        around = cell_text(cell, percent).removeprefix(value).strip()
        return f"<td>{value}{f'<small>{_text(around)}</small>' if around else ''}</td>"
    return f'<td class="words">{_text(cell)}</td>' if isinstance(cell, str) else f"<td>{cell_text(cell)}</td>"


def _figure(title: str, svg: str | bytes) -> str:
    # As a picture, not as markup: whatever stands in it, nothing in a picture runs.
    whole = svg.encode() if isinstance(svg, str) else svg
    source = f"data:image/svg+xml;base64,{b64encode(whole).decode()}"
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
    return escape(clean(str(text), newlines=True), quote=True)


def _clean(text: str) -> str:
    return clean(text, newlines=True)


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    told = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # So that nothing in it can end the element that it stands in, or begin a comment.
    return told.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
