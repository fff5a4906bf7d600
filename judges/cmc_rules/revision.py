"""Statements that retract earlier ones: "sorry, I meant 2008", "scratch that", "my first answer was right"."""

from __future__ import annotations

from dataclasses import dataclass, replace

from judges.cmc_rules import cues
from judges.cmc_rules.clauses import Clause
from judges.cmc_rules.cues import compiled, either
from judges.cmc_rules.lazy_pattern import lazy

EARLIER = "earlier"
"""The speaker of a value that the answer reports as its own earlier answer or thought."""

_CUE = lazy(
    rf"\W*(?:(?:but|and|or|so|well|though|although|however|then|please)\W+){{0,2}}"
    rf"(?:(?P<withdrawal>{compiled(cues.WITHDRAWALS).pattern})|(?P<revision>{compiled(cues.REVISIONS).pattern}))"
)
_POINTED = lazy(rf"\W*(?:(?:but|and|so|though|although|however)\W+)?(?P<withdrawal>{compiled(cues.POINTED).pattern})")
_NO = lazy(r"\W*(?:oh|ah|or)?\W*no(?=\W*$|[^\w ]| (?:wait|no|it|that|i)\b)")
_EARLIER = compiled(cues.EARLIER)
_EARLIER_AFTER = lazy(rf"\W*(?:\w+ ){{0,3}}?(?:{either(cues.EARLIER_AFTER)})(?!\w)")
_RESTORED = compiled(cues.RESTORED)
_NEAR = 60


@dataclass(frozen=True, slots=True)
class Revision:
    """A cue that opens a clause, up to ``end``. ``outright`` is set if it withdraws a statement by itself."""

    end: int
    outright: bool


def find_revision(text: str, *, polar: bool) -> Revision | None:
    """Return the cue by which a clause retracts the statement before it, or None.

    With ``polar``, a plain "no" and "that is incorrect" are answers and not cues.
    """
    end, outright = 0, False
    patterns = (_CUE,) if polar else (_CUE, _NO, _POINTED)
    while cue := next(filter(None, (pattern.match(text, end) for pattern in patterns)), None):
        outright = outright or bool(cue.groupdict().get("withdrawal"))
        end = cue.end()
    return Revision(end, outright) if end else None


def blank_cue(clause: Clause, cue: Revision | None) -> Clause:
    """Return the clause with its opening cue blanked out, so that nothing else is read from it."""
    if cue is None:
        return clause
    blank = " " * cue.end
    return replace(
        clause,
        lead="" if clause.lead == "(" else clause.lead,
        text=blank + clause.text[cue.end :],
        masked=blank + clause.masked[cue.end :],
    )


def restores_statement(text: str) -> bool:
    """Return whether a clause restores the answer's first statement."""
    return _RESTORED.search(text) is not None


def is_earlier_statement(text: str, start: int, end: int) -> bool:
    """Return whether the value from ``start`` to ``end`` is one that the answer gave or thought before."""
    return bool(_EARLIER.search(text, max(0, start - _NEAR), start) or _EARLIER_AFTER.match(text, end))
