"""Outcomes of a base and of fine-tuned models whose true effect is known, for simulations of verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from app.compare.runs.packed_answers import LabelledAnswer
from app.compare.runs.run_view import RunViews
from tests.support.compared_runs import RIGHT, WRONG, side, sides

_RIGHT = {**RIGHT, "image-only": "IMAGE", "text-only": "TEXT"}
_WRONG = {**WRONG, "image-only": "NEITHER", "text-only": "NEITHER"}
CONFLICTS = ("image-correct", "text-correct", "both-wrong")
BASE_ACCURACY = {"image-correct": 0.5, "text-correct": 0.5, "both-wrong": 0.05}
"""The base's accuracy under conflict; without conflict it is 0.97."""


@dataclass(frozen=True)
class Truth:
    """A true effect of fine-tuning, and the categories that are right for it.

    ``gained`` is the share of the wrong answers of a condition that become right, ``lost`` that of the right ones that are lost;
    ``becomes`` is what these become, if not the usual wrong answer.
    """

    categories: tuple[str, ...]
    examples: int
    gained: Mapping[str, float] = field(default_factory=dict)
    lost: Mapping[str, float] = field(default_factory=dict)
    becomes: str = ""
    everything: str = ""
    """The outcome of every answer, whatever the base's."""


_NEUTRAL = dict.fromkeys(_RIGHT, 0.01)
_GAIN = dict.fromkeys(CONFLICTS, 0.8)
TRUTHS = {
    "good": Truth(("worth shipping",), 400, gained=_GAIN, lost={**_NEUTRAL, "aligned": 0.002}),
    "good, few examples": Truth(("not established",), 20, gained=_GAIN),
    "broken": Truth(("harmful",), 150, lost=dict.fromkeys(_RIGHT, 0.95), becomes="NEITHER"),
    "broken, few examples": Truth(("harmful",), 24, lost=dict.fromkeys(_RIGHT, 0.95), becomes="unparsed"),
    "no effect": Truth(("no worthwhile gain",), 600, gained=dict.fromkeys(CONFLICTS, 0.01), lost=_NEUTRAL),
    "no effect, few examples": Truth(("not established",), 20, gained=dict.fromkeys(CONFLICTS, 0.1), lost=_NEUTRAL),
    "gain with loss": Truth(
        ("harmful",), 200, gained=_GAIN, lost={"aligned": 0.2, "image-only": 0.2, "text-only": 0.2}
    ),
    "loss under one condition": Truth(("harmful",), 300, gained=_GAIN, lost={"image-only": 0.15}),
    "loss under one conflict": Truth(("harmful",), 300, gained={"text-correct": 0.9}, lost={"image-correct": 0.5}),
    "abstains always": Truth(("harmful",), 100, everything="ABSTAIN"),
    "unreadable": Truth(("harmful",), 100, everything="unparsed"),
    "loss below the margin": Truth(("worth shipping",), 1000, gained=_GAIN, lost={"aligned": 0.012}),
}


def simulated_runs(truth: Truth, random: np.random.Generator) -> RunViews:
    """Return the runs of a base and a fine-tuned model; the answers to an example hang together."""
    before, after = {}, {}
    ease = random.beta(6, 6, size=truth.examples)
    for number in range(truth.examples):
        for condition in _RIGHT:
            accuracy = BASE_ACCURACY.get(condition, 0.97)
            was = random.random() < accuracy
            change = truth.lost if was else truth.gained
            share = change.get(condition, 0.0)
            changes = random.random() < min(1.0, share * (0.5 + ease[number]))
            name, group = f"e{number}/{condition}", f"e{number}"
            outcomes = {True: _RIGHT[condition], False: _WRONG[condition]}
            now = outcomes[was != changes]
            if changes and was and truth.becomes:
                now = truth.becomes
            before[name] = LabelledAnswer(group, condition, outcomes[was], 0)
            after[name] = LabelledAnswer(group, condition, truth.everything or now, 0)
    base, tuned = {"weights digest": "a" * 64}, {"weights digest": "a" * 64, "adapter digest": "b" * 64}
    return sides(
        replace(side("base", {}, identity=base), answers=before),
        replace(side("tuned", {}, identity=tuned), answers=after),
    )
