"""Extras: optional libraries, and the message where one is needed and missing."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks.errors import ExtraMissingError

LIBRARIES = {
    "video": "av",
    "shapes": "trimesh",
    "pdf": "pypdfium2",
    "serve": "textual_serve",
    "wordnet": "nltk",
    "ray": "ray",
}
"""The module that each extra of pyproject.toml brings."""


def has_extra(extra: str) -> bool:
    """Return whether the library of ``extra`` is installed."""
    return find_spec(LIBRARIES[extra]) is not None


def require_extra(extra: str, purpose: str) -> None:
    """Raise ExtraMissingError if the library of ``extra`` is not installed; ``purpose`` is what needs it, such as "videos"."""
    library = LIBRARIES[extra]
    if not has_extra(extra):
        raise ExtraMissingError(
            f"{purpose} need the library {library}; install it with `pip install 'rashomon[{extra}]'`."
        )
