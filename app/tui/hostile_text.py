"""Sanitized display of text that may be hostile.

Text from a model, a data set, a file or model name, or an exception goes through :func:`literal` (or into a
:class:`~app.tui.widgets.virtual_table.VirtualTable`, which does the same) before it is displayed. Textual parses a plain
``str`` as markup, so never give a widget a plain ``str`` from outside.
"""

from __future__ import annotations

from textual.content import Content

from app.text.text_escaping import clean

LIMIT = 20_000
"""The default number of characters displayed of a text; a note gives the number of those left out."""


def sanitize(text: object, *, limit: int = LIMIT, newlines: bool = False) -> str:
    """Return ``text`` safe for a terminal: no control, bidirectional or zero-width characters, at most ``limit`` long."""
    raw = str(text)
    safe = clean(raw[:limit], newlines=newlines)
    return safe if len(raw) <= limit else f"{safe}… ({len(raw) - limit:,} more characters)"


def sanitize_paste(text: str) -> str:
    """Return pasted text safe for a field, which displays its text as it is. Tabs become spaces; lines stay lines."""
    return clean("\n".join(text.splitlines()).replace("\t", " "), newlines=True)


def literal(text: object, style: str = "", *, limit: int = LIMIT, newlines: bool = False) -> Content:
    """Return ``text`` for a Textual widget, without markup, links or actions; ``style`` must be ours (``bold $accent``)."""
    return Content.styled(sanitize(text, limit=limit, newlines=newlines), style)
