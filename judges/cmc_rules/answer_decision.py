"""The decision on an answer: what it does, its label, its reason."""

from __future__ import annotations

from dataclasses import dataclass

from judges.cmc_rules.reference_values import OTHER, UNCLEAR

UNDECIDED = "undecided"
LABELS = {"image": "IMAGE", "text": "TEXT", "both": "BOTH", "conflict": "ABSTAIN", "abstain": "ABSTAIN"}
LABELS |= dict.fromkeys(("right", "invents", "off-topic"), "NEITHER")
"""The label of each behaviour (CMC-Bench, section 4.2)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The behaviour of an answer, a key of LABELS or UNDECIDED, and the rule that says so."""

    behaviour: str
    reason: str

    @property
    def label(self) -> str:
        """The label of CMC-Bench, or "UNDECIDED"."""
        return LABELS.get(self.behaviour, "UNDECIDED")


def undecided(reason: str) -> Decision:
    """Return the decision that nothing can be shown, and why."""
    return Decision(UNDECIDED, reason)


def stating(name: str, reason: str) -> Decision:
    """Return the decision that an answer states the value of a source, OTHER or UNCLEAR."""
    if name == UNCLEAR:
        return undecided("states a value that may be a reference's, rounded or in another unit")
    return Decision("invents" if name == OTHER else name, reason)
