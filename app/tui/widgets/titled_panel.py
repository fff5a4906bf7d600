"""Panels: titled, rounded frames, of which the one in focus is highlighted."""

from __future__ import annotations

from typing import TypeVar

from textual.content import Content
from textual.widget import Widget

W = TypeVar("W", bound=Widget)


def panel(widget: W, title: str | Content = "") -> W:
    """Give ``widget`` a frame with this title, which must be ours if it is a ``str``."""
    widget.add_class("panel")
    set_panel_title(widget, title)
    return widget


def set_panel_title(widget: Widget, title: str | Content) -> None:
    """Change the title of a panel."""
    widget.border_title = Content(title) if isinstance(title, str) else title
