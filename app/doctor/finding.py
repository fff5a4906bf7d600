"""One thing that was examined."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing examined: ``ok`` False means that something does not work, and ``mend`` says what to do.

    Where ``ok`` is True ``mend`` is advice: something that works and might not, or that could be had.
    """

    what: str
    ok: bool
    told: str
    mend: str = ""
