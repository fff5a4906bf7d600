"""Style of all figures: widths of a paper's columns, inks that differ in greyscale, and rendering to files.

matplotlib is imported only for drawing, to keep start-up fast, and never through pyplot, which retains figures and needs a
display.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.text.text_escaping import clean
from benchmarks.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_FORMATS = ("png", "svg", "pdf")

WIDTHS = {"column": 3.3, "page": 6.9}
"""Widths in inches: a column of a two-column paper, and the full page."""


@dataclass(frozen=True, slots=True)
class Ink:
    """Fill of a bar: its colour, its hatching, and ``on``, the colour of text and hatching on it."""

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
"""The inks from dark to light, some hatched, so that neighbours differ without colour."""

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
    "pdf.fonttype": 42,  # required by publishers
    "svg.hashsalt": "rashomon",
}


def ink(number: int) -> Ink:
    """Return the ink of the segment or series ``number``; from the sixth on, inks repeat with crossed hatching."""
    base = INKS[number % len(INKS)]
    return base if number < len(INKS) else Ink(base.fill, "xxxx", base.on)


@contextmanager
def styled() -> Iterator[None]:
    """Apply our settings to matplotlib within the block, without warnings on missing glyphs or tight layouts."""
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
    """Return the width called ``width``, in inches. Raises SpecError, with the closest name, if there is none."""
    if width not in WIDTHS:
        raise SpecError(f"there is no width {width!r}; {did_you_mean(width, WIDTHS)}")
    return WIDTHS[width]


def label(text: str, width: int, lines: int = 2) -> str:
    """Return ``text`` for a figure: without control characters, in at most ``lines`` lines of ``width`` characters."""
    wrapped = textwrap.wrap(clean(text), width) or [""]
    if len(wrapped) > lines:
        wrapped = [*wrapped[: lines - 1], wrapped[lines - 1][: width - 1] + "…"]
    return "\n".join(wrapped)


def to_bytes(figure: Figure, form: str, *, dpi: int = 300) -> bytes:
    """Render ``figure`` as a PNG, SVG or PDF file; equal figures give equal bytes."""
    out = io.BytesIO()
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with styled():
        figure.savefig(out, format=form, metadata=undated, dpi=dpi)
    return out.getvalue()
