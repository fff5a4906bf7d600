"""Text that may be hostile, made harmless for Textual.

Whatever comes from a model, a data set, a file's or model's name or an exception goes through :func:`literal` (or into a
:class:`~app.tui.widgets.virtual_table.VirtualTable`, which does the same) before it is shown. A plain
``str`` given to a Textual widget is parsed as markup, so no plain ``str`` that is not ours may be.
"""

from __future__ import annotations

from textual.content import Content

from app.text.escape import clean

LIMIT = 20_000
"""Characters of one text that are shown; a longer one says how much is left out."""


def harmless(text: object, *, limit: int = LIMIT, newlines: bool = False) -> str:
    """``text`` as it may stand on a terminal: no control, no bidirectional or zero-width character, at most ``limit`` long."""
    whole = str(text)
    told = clean(whole[:limit], newlines=newlines)
    return told if len(whole) <= limit else f"{told}… ({len(whole) - limit:,} more characters)"


def literal(text: object, style: str = "", *, limit: int = LIMIT, newlines: bool = False) -> Content:
    """``text`` for a Textual widget, as it is: no markup, no link, no action. ``style`` is ours, such as ``bold $accent``."""
    return Content.styled(harmless(text, limit=limit, newlines=newlines), style)
