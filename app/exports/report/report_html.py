"""A report as one HTML document, without scripts: it loads nothing, sends nothing, and prints well."""

from __future__ import annotations

import io
from functools import singledispatch
from pathlib import Path

from app.exports.html_markup import data_uri, escape_text, figure_markup, notes_markup, page_head, table_markup
from app.exports.report.report_document import (
    Block,
    Bullets,
    Example,
    Facts,
    Paragraph,
    Plot,
    Report,
    Section,
    Shares,
    Verdict,
)
from app.exports.report.report_inputs import interval
from app.figures.figure_style import to_bytes
from benchmarks.stats.intervals import percent
from benchmarks.vocabulary import Estimate, Table

_STYLE = Path(__file__).resolve().parents[1] / "page" / "report.css"


def to_html(report: Report) -> str:
    """Return the report as one HTML document."""
    style = _STYLE.read_text("utf-8")
    parts = [
        page_head(report.title, style),
        '<body><main><article class="first">',
        f'<header><h1>{escape_text(report.title)}</h1><p class="subtitle">{escape_text(report.subtitle)}</p></header>',
        *map(_block, report.first_page),
        "</article>",
        *_sections(report),
        "<section><h2>References</h2><ol>",
        *(f"<li>{escape_text(reference)}</li>" for reference in report.references),
        "</ol></section></main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _sections(report: Report) -> list[str]:
    parts = []
    numbers = {False: iter(range(1, 100)), True: iter("ABCDEFGH")}
    for section in report.sections:
        parts.append(_section(section, f"{next(numbers[section.appendix])}"))
    return parts


def _section(section: Section, number: str) -> str:
    kind = ' class="appendix"' if section.appendix else ""
    body = "\n".join(map(_block, section.blocks))
    return f"<section{kind}><h2>{number}&ensp;{escape_text(section.title)}</h2>\n{body}</section>"


@singledispatch
def _block(block: Block | str) -> str:
    """Return the markup of a block; a plain string is a title."""
    return f"<h3>{escape_text(block)}</h3>"


@_block.register
def _(block: Verdict) -> str:
    sentences = escape_text(" ".join(block.sentences))
    return f'<div class="verdict"><p class="headline">{escape_text(block.headline)}</p><p>{sentences}</p></div>'


@_block.register
def _(block: Paragraph) -> str:
    return f"<p>{escape_text(block.text)}</p>"


@_block.register
def _(block: Bullets) -> str:
    items = "".join(
        f"<li>{f'<b>{escape_text(name)}.</b> ' if name else ''}{escape_text(text)}</li>" for name, text in block.items
    )
    return f"<ul>{items}</ul>"


@_block.register
def _(block: Facts) -> str:
    rows = "".join(f"<dt>{escape_text(name)}</dt><dd>{escape_text(text)}</dd>" for name, text in block.rows)
    return f"<dl>{rows}</dl>"


@_block.register
def _(block: Shares) -> str:
    head = "".join(f'<th scope="col">{escape_text(column)}</th>' for column in block.columns)
    rows = ""
    for label, remark, cells in block.rows:
        small = f"<small>{escape_text(remark)}</small>" if remark else ""
        rows += f'<tr><th scope="row">{escape_text(label)}{small}</th>{"".join(map(_bar, cells))}</tr>'
    table = f'<table class="shares"><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>'
    note = (
        f"The line in a bar is the range in which the true percentage lies with 95% confidence. {block.remarks}".strip()
    )
    return f'<div class="wide">{table}</div><p class="note">{escape_text(note)}</p>'


def _bar(share: Estimate | None) -> str:
    """Return a share as a number over a bar, with a line for its interval. Attributes only, for the page allows no styles."""
    if share is None or share.value is None:
        return '<td class="none">not asked</td>'
    line = ""
    if share.low is not None and share.high is not None:
        line = f'<line x1="{100 * share.low:.1f}" x2="{100 * share.high:.1f}" y1="6" y2="6" stroke="#b53c0a" stroke-width="2"/>'
    bar = (
        '<svg viewBox="0 0 100 12" preserveAspectRatio="none" width="100%" height="10" aria-hidden="true">'
        f'<rect width="100" height="12" fill="#e7eaf0"/><rect width="{100 * share.value:.1f}" height="12" fill="#559ccd"/>'
        f"{line}</svg>"
    )
    around = interval(share)
    return f"<td><b>{percent(share)}</b>{f' <small>{around}</small>' if around else ''}{bar}</td>"


@_block.register
def _(block: Example) -> str:
    lines = "".join(f"<dt>{escape_text(name)}</dt><dd>{escape_text(text)}</dd>" for name, text in block.lines)
    picture = ""
    if block.picture is not None:
        out = io.BytesIO()
        block.picture.save(out, "WEBP", quality=70, method=2)
        picture = f'<img src="{data_uri(out.getvalue(), "webp")}" alt="{escape_text(block.facts)}">'
    link = f'<p><a href="{escape_text(block.link)}">This question with every answer</a></p>' if block.link else ""
    return f'<div class="example"><p>For example:</p>{picture}<dl>{lines}</dl>{link}</div>'


@_block.register
def _(block: Plot) -> str:
    return (
        figure_markup(block.caption, to_bytes(block.figure, "svg"))
        + f'<p class="caption">{escape_text(block.caption)}</p>'
    )


@_block.register
def _(block: Table) -> str:
    return f'<div class="table"><h4>{escape_text(block.title)}</h4>{table_markup(block)}{notes_markup(block)}</div>'
