"""What things look like: colours and glyphs for states of runs and for labels. Never colour alone: each has a glyph and a word.

The colours stay apart from each other on #121212 under the three colour deficiencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.theme import Theme

from benchmarks.base import Benchmark

RIGHT, WRONG, PARTIAL, ABSTAINED, INVALID, UNJUDGED = "#56b4e9", "#e8702a", "#f0e442", "#af5fff", "#808080", "#e0e0e0"
DIM = "#909090"

THEME = Theme(
    name="rashomon",
    primary=RIGHT,
    secondary=ABSTAINED,
    accent=PARTIAL,
    warning=PARTIAL,
    error=WRONG,
    success=RIGHT,
    foreground="#e0e0e0",
    background="#121212",
    surface="#1a1a1a",
    panel="#242424",
    dark=True,
)


class Look(NamedTuple):
    """How something is shown: one cell, a word, a colour as Rich and Textual take it."""

    glyph: str
    word: str
    colour: str

    def __str__(self) -> str:
        return f"{self.glyph} {self.word}"


STATES = {
    "planned": Look("○", "planned", UNJUDGED),
    "queued": Look("◌", "queued", PARTIAL),
    "loading": Look("◐", "loading", PARTIAL),
    "running": Look("●", "running", RIGHT),
    "judging": Look("◑", "judging", RIGHT),
    "paused": Look("‖", "paused", PARTIAL),
    "interrupted": Look("◇", "interrupted", WRONG),
    "partial": Look("◒", "partial", PARTIAL),
    "done": Look("✓", "done", RIGHT),
    "failed": Look("✗", "failed", WRONG),
    "unreadable": Look("?", "unreadable", WRONG),
}
"""The states of a run (``app.store.workspace.RunSummary.state``)."""

OUTCOMES = {
    "right": Look("✓", "right", RIGHT),
    "wrong": Look("✗", "wrong", WRONG),
    "unparsed": Look("∅", "unparsed", INVALID),
    "judge-failed": Look("‽", "judge failed", ABSTAINED),
    "error": Look("!", "error", PARTIAL),
    "pending": Look("·", "pending", UNJUDGED),
}
"""What became of an answer; a labelled one is right or wrong."""

_LABELS = (RIGHT, WRONG, PARTIAL, ABSTAINED, UNJUDGED, INVALID)
_FILLS = ("█", "▓", "▒", "░", "▚", "·")


def state_look(state: str) -> Look:
    """How a run's state is shown."""
    return STATES.get(state, Look("?", state, UNJUDGED))


def outcome_look(benchmark: Benchmark, condition: str, outcome: str, label: str | None) -> Look:
    """How an answer is shown: ``outcome`` is ``Record.outcome``; a labelled one carries its label as the word."""
    if outcome == "labelled" and label is not None:
        kind = OUTCOMES["right" if benchmark.correct(condition, label) else "wrong"]
        return Look(kind.glyph, label, kind.colour)
    return OUTCOMES.get(outcome, OUTCOMES["pending"])


def label_look(labels: Sequence[str], label: str) -> Look:
    """How a label's part of a bar is shown: a fill and a colour by the label's place among the benchmark's ``labels``."""
    place = labels.index(label) if label in labels else len(_LABELS) - 1
    return Look(_FILLS[place % len(_FILLS)], label, _LABELS[place % len(_LABELS)])
