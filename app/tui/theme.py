"""Colours and glyphs of run states, outcomes and labels.

Nothing is told apart by colour alone: everything has a glyph and a word too. The colours remain distinguishable on #121212
under the three colour vision deficiencies.
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
    """A glyph of one cell, a word, and a colour as Rich and Textual write it."""

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
    "stopped": Appearance("■", "stopped", PARTIAL),
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
"""The outcomes of an answer; a labelled one is right or wrong."""

_LABEL_COLOURS = (RIGHT, WRONG, PARTIAL, ABSTAINED, UNJUDGED, INVALID)
_FILLS = ("█", "▓", "▒", "░", "▚", "·")


def state_appearance(state: str) -> Appearance:
    """Return the appearance of a run's state."""
    return STATES.get(state, Appearance("?", state, UNJUDGED))


def outcome_appearance(benchmark: Benchmark, condition: str, outcome: str, label: str | None) -> Appearance:
    """Return the appearance of an answer with this ``Record.outcome``; that of a labelled one has its label as the word."""
    if outcome == "labelled" and label is not None:
        kind = OUTCOMES["right" if benchmark.correct(condition, label) else "wrong"]
        return Appearance(kind.glyph, label, kind.colour)
    return OUTCOMES.get(outcome, OUTCOMES["pending"])


def label_appearance(labels: Sequence[str], label: str) -> Appearance:
    """Return a label's segment of a bar: fill and colour by the label's position among the benchmark's ``labels``."""
    position = labels.index(label) if label in labels else len(_LABEL_COLOURS) - 1
    return Appearance(_FILLS[position % len(_FILLS)], label, _LABEL_COLOURS[position % len(_LABEL_COLOURS)])
