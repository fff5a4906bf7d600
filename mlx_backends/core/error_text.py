"""Exceptions as text for users."""

from __future__ import annotations

from benchmarks.errors import RashomonError


def one_line(error: BaseException) -> str:
    """Return an exception as one line of printable text, of at most 300 characters."""
    message = " ".join(str(error).split())
    kind = "" if isinstance(error, RashomonError) and message else error.__class__.__name__ + (": " if message else "")
    return "".join(c if c.isprintable() else "?" for c in kind + message)[:300]
