"""How every figure looks: the size of a paper's column, inks that stay apart in greyscale, and how it becomes a file.

matplotlib is imported only when something is drawn, and never through pyplot, which keeps figures and looks for a screen.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.text.escape import clean
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_FORMATS = ("png", "svg", "pdf")

WIDTHS = {"column": 3.3, "page": 6.9}
"""Inches: one column of a two-column paper, and its whole text."""


@dataclass(frozen=True, slots=True)
class Ink:
    """What a bar is filled with. ``on`` is the colour of figures and hatching on it."""

    fill: str
    hatch: str
    on: str


INKS = (
    Ink("#14284b", "", "#ffffff"),
    Ink("#b53c0a", "////", "#ffffff"),
    Ink("#559ccd", "", "#000000"),
    Ink("#e8bc55", "....", "#000000"),
    Ink("#f6f6f6", "", "#000000"),
)
"""From dark to light, so that neighbours differ without colour; every second one is hatched."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same figure on every machine
    "font.size": 7.0,
    "figure.titlesize": 7.5,
    "axes.labelsize": 7.0,
    "axes.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "hatch.linewidth": 0.4,
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a model's name may hold a dollar
    "pdf.fonttype": 42,  # what publishers ask for
    "svg.hashsalt": "rashomon",
    "savefig.dpi": 300,
}


def ink(number: int) -> Ink:
    """The ink of the segment or series ``number``; from the sixth on they come again with crossed hatching."""
    found = INKS[number % len(INKS)]
    return found if number < len(INKS) else Ink(found.fill, "xxxx", found.on)


@contextmanager
def styled() -> Iterator[None]:
    """matplotlib with our settings, which are then taken back; quiet about names that its font or the figure has no room for."""
    import logging
    import warnings

    from matplotlib import rc_context

    log = logging.getLogger("matplotlib")
    level = log.level
    with warnings.catch_warnings(), rc_context(_SETTINGS):
        warnings.filterwarnings("ignore", message="Glyph|constrained_layout")
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


def inches(width: str) -> float:
    """The width called ``width``. Raises SpecError with the nearest right name."""
    if width not in WIDTHS:
        raise SpecError(f"there is no width {width!r}; {did_you_mean(width, WIDTHS)}")
    return WIDTHS[width]


def label(text: str, width: int, lines: int = 2) -> str:
    """``text`` as it may stand in a figure: harmless, in at most so many ``lines`` of ``width`` characters."""
    found = textwrap.wrap(clean(text), width) or [""]
    if len(found) > lines:
        found = [*found[: lines - 1], found[lines - 1][: width - 1] + "…"]
    return "\n".join(found)


def to_bytes(figure: Figure, form: str) -> bytes:
    """``figure`` as a PNG (300 dpi), SVG or PDF file; the same figure gives the same bytes."""
    out = io.BytesIO()
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with styled():
        figure.savefig(out, format=form, metadata=undated)
    return out.getvalue()
