"""Conditions and labels of k passages."""

from __future__ import annotations

CONDITIONS = ("no-conflict", "tie", "majority-wrong")
"""No wrong passage, one, and more than the one right passage."""

TIE = CONDITIONS[1]

CONFLICT_CONDITIONS = CONDITIONS[1:]

LABELS = ("RIGHT", "WRONG", "BOTH", "DISTRACTOR", "NEITHER", "ABSTAIN")

RIGHT, WRONG, DISTRACTOR = "right", "wrong", "distractor"
"""The keys of the references: the right value, the wrong one, and the answers to the distractors' questions."""


def condition_of(wrong: int) -> str:
    """Return the condition of an instance with so many wrong passages."""
    return CONDITIONS[min(wrong, 2)]
