"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: ``ok`` is False if something does not work, and ``fix`` says what to do.

    With ``ok`` True, ``fix`` is advice: about something that may fail later, or that could be added.
    """

    check: str
    ok: bool
    message: str
    fix: str = ""

    @property
    def state(self) -> str:
        return "FAIL" if not self.ok else "see" if self.fix else "ok"
