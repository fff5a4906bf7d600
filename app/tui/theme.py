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


class Appearance(NamedTuple):
    """How something is shown: one cell, a word, a colour as Rich and Textual take it."""

    glyph: str
    word: str
    colour: str

    def __str__(self) -> str:
        return f"{self.glyph} {self.word}"


STATES = {
    "planned": Appearance("○", "planned", UNJUDGED),
    "queued": Appearance("◌", "queued", PARTIAL),
    "loading": Appearance("◐", "loading", PARTIAL),
    "running": Appearance("●", "running", RIGHT),
    "judging": Appearance("◑", "judging", RIGHT),
    "paused": Appearance("‖", "paused", PARTIAL),
    "interrupted": Appearance("¦", "interrupted", WRONG),
    "partial": Appearance("◒", "partial", PARTIAL),
    "done": Appearance("✓", "done", RIGHT),
    "failed": Appearance("✗", "failed", WRONG),
    "unreadable": Appearance("?", "unreadable", WRONG),
}
"""The states of a run (``app.store.workspace.RunSummary.state``)."""

OUTCOMES = {
    "right": Appearance("✓", "right", RIGHT),
    "wrong": Appearance("✗", "wrong", WRONG),
    "unparsed": Appearance("∅", "unparsed", INVALID),
    "judge-failed": Appearance("‽", "judge failed", ABSTAINED),
    "error": Appearance("!", "error", PARTIAL),
    "pending": Appearance("·", "pending", UNJUDGED),
}
"""What became of an answer; a labelled one is right or wrong."""

_LABELS = (RIGHT, WRONG, PARTIAL, ABSTAINED, UNJUDGED, INVALID)
_FILLS = ("█", "▓", "▒", "░", "▚", "·")


def state_look(state: str) -> Appearance:
    """How a run's state is shown."""
    return STATES.get(state, Appearance("?", state, UNJUDGED))


def outcome_look(benchmark: Benchmark, condition: str, outcome: str, label: str | None) -> Appearance:
    """How an answer is shown: ``outcome`` is ``Record.outcome``; a labelled one carries its label as the word."""
    if outcome == "labelled" and label is not None:
        kind = OUTCOMES["right" if benchmark.correct(condition, label) else "wrong"]
        return Appearance(kind.glyph, label, kind.colour)
    return OUTCOMES.get(outcome, OUTCOMES["pending"])


def label_look(labels: Sequence[str], label: str) -> Appearance:
    """How a label's part of a bar is shown: a fill and a colour by the label's place among the benchmark's ``labels``."""
    place = labels.index(label) if label in labels else len(_LABELS) - 1
    return Appearance(_FILLS[place % len(_FILLS)], label, _LABELS[place % len(_LABELS)])
