"""The sample browser: one HTML page with the answers of all runs to each instance; it loads nothing and sends nothing.

Of a comparison, its tables and figures come first.

All text from models, data sets and files is untrusted. It is escaped in the markup, and in the browser's data it is JSON
without any ``<``, inserted through ``textContent``. The content security policy allows only the page's own script and style
sheet, by their digests, and images from ``data:``, so that no request leaves the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.exports.export_input import Export, ExportedRun, score_of
from app.exports.figures import export_figures
from app.exports.html_markup import escape_text, figure_markup, notes_markup, page_head, table_markup
from app.figures.style import to_bytes
from app.text.escape import clean
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Media, Record, Table

_OPEN = ("tradeoff", "differences")
"""The tables of a comparison that are unfolded at first."""

_PAGE = Path(__file__).resolve().parent / "page"


def page(export: Export) -> str:
    """Return the page as one HTML document."""
    style, script = ((_PAGE / name).read_text("utf-8") for name in ("samples.css", "samples.js"))
    title = f"{export.benchmark.title}: {', '.join(run.label for run in export.runs)}"
    comparison = export.comparison is not None
    figures = [(name, to_bytes(figure, "svg")) for _, name, figure in export_figures(export)] if comparison else []
    parts = [
        page_head(title, style, script),
        f"<body><header><h1>{escape_text(export.benchmark.title)}</h1>",
        f"<p>{escape_text(export.benchmark.paper)}</p></header><main>",
        _warnings(export),
        _table(export.runs_table(), opened=False),
        *(_table(table, opened=table.name in _OPEN) for table in (export.tables if comparison else ())),
        *(figure_markup(name, svg) for name, svg in figures),
        _browser(),
        "</main>",
        f'<script type="application/json" id="data">{_json(browser_data(export))}</script>',
        f"<script>{script}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _warnings(export: Export) -> str:
    items = "".join(f"<li>{escape_text(warning)}</li>" for warning in export.warnings)
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
    score = score_of(export.benchmark, run.judge, record)
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
        "right": None if score is None else score == 1,
        "text": _clean(text),
        "reason": _clean(verdict.reason) if verdict is not None else "",
        "cut": record.is_cut_off,
    }


def _table(table: Table, *, opened: bool) -> str:
    return (
        f"<details{' open' if opened else ''}><summary><h2>{escape_text(table.title)}</h2></summary>"
        f"{table_markup(table)}{notes_markup(table)}</details>"
    )


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


def _clean(text: str) -> str:
    return clean(text, newlines=True)


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Nothing in it can end its element or begin a comment.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
