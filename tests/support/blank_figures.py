"""Empty figures in place of drawn ones, for tests that do not look at figures: fonts make each take a tenth of a second."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, Any
from unittest.mock import patch

from app.figures.figure_style import FIGURE_FORMATS, to_bytes


@contextmanager
def blank_figures(formats: Collection[str] = FIGURE_FORMATS) -> Iterator[None]:
    """Save an empty figure for each figure of these formats."""
    from matplotlib.figure import Figure

    save = Figure.savefig
    blank = {form: _blank(form) for form in formats}

    def savefig(figure: Figure, out: IO[bytes], *, format: str, **options: Any) -> None:
        if format in blank:
            out.write(blank[format])
        else:
            save(figure, out, format=format, **options)

    with patch.object(Figure, "savefig", savefig):
        yield


@cache
def _blank(form: str) -> bytes:
    from matplotlib.figure import Figure

    return to_bytes(Figure((0.1, 0.1)), form)
