"""Colours and glyphs of run states, outcomes and labels.

Nothing is told apart by colour alone: everything has a glyph and a word too. A colour is written as a variable of the styles
(``$right``), whose value :func:`legible_colours` derives from the theme: the hue stays, the lightness moves until it can be
read on every background of the theme. On #121212 the hues remain distinguishable under the three colour vision deficiencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from textual.color import Color, ColorParseError
from textual.theme import Theme

from benchmarks.base import Benchmark

RIGHT, WRONG, PARTIAL, ABSTAINED, INVALID, UNJUDGED = (
    "$right",
    "$wrong",
    "$partial",
    "$abstained",
    "$invalid",
    "$unjudged",
)
DIM, HEADING, KEY = "$dim", "$heading", "$key"

_HUES = {
    "right": "#56b4e9",
    "wrong": "#e8702a",
    "partial": "#f0e442",
    "abstained": "#af5fff",
    "invalid": "#808080",
    "unjudged": "#e0e0e0",
}
_ANSI = {
    "right": "ansi_bright_blue",
    "wrong": "ansi_bright_red",
    "partial": "ansi_bright_yellow",
    "abstained": "ansi_bright_magenta",
    "invalid": "ansi_default",
    "unjudged": "ansi_default",
    "dim": "ansi_default",
    "heading": "ansi_bright_cyan",
    "key": "ansi_bright_yellow",
    "cursor": "ansi_bright_black",
    "cursor-blurred": "ansi_bright_black",
    "frame": "ansi_bright_black",
}
TEXT_CONTRAST, MUTED_CONTRAST = 4.5, 3.0
"""The smallest contrast ratios of text and of muted text with what is behind it (WCAG 2.2, 1.4.3)."""

THEME = Theme(
    name="rashomon",
    primary=_HUES["right"],
    secondary=_HUES["abstained"],
    accent=_HUES["partial"],
    warning=_HUES["partial"],
    error=_HUES["wrong"],
    success=_HUES["right"],
    foreground="#e0e0e0",
    background="#121212",
    surface="#1a1a1a",
    panel="#242424",
    dark=True,
)


def contrast(first: Color, second: Color) -> float:
    """Return the contrast ratio of two opaque colours, from 1 to 21 (WCAG 2.2, relative luminance)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    channels = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour.normalized)
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), channels, strict=True))


def legible(colour: Color, backgrounds: Iterable[Color], ratio: float) -> Color:
    """Return ``colour``, lightened or darkened as little as gives it a contrast of ``ratio`` with all ``backgrounds``."""
    backgrounds = list(backgrounds)
    steps = [colour.blend(end, share / 20) for share in range(21) for end in (Color(255, 255, 255), Color(0, 0, 0))]

    def worst(step: Color) -> float:
        return min(contrast(step, background) for background in backgrounds)

    return next((step for step in steps if worst(step) >= ratio), None) or max(steps, key=worst)


_THEME_COLOURS = ("background", "surface", "panel", "foreground", "primary", "accent")


def legible_colours(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values of our variables for a theme with these ``variables``, in hexadecimal.

    A theme that takes the terminal's own colours gets those, as their values are unknown.
    """
    return dict(_legible_colours(*(variables[name] for name in _THEME_COLOURS)))


@lru_cache(maxsize=64)
def _legible_colours(*theme_colours: str) -> Mapping[str, str]:
    """Return the values for a theme whose :data:`_THEME_COLOURS` are these."""
    try:
        background, surface, panel, foreground, primary, accent = map(Color.parse, theme_colours)
    except ColorParseError:
        return _ANSI
    if background.ansi is not None:
        return _ANSI
    surface, panel = background + surface, background + panel
    cursor = background.blend(primary, 0.2)
    cursor_blurred = background.blend(foreground, 0.12)
    behind = [
        background,
        surface,
        panel,
        panel.blend(foreground, 0.05),
        cursor,
        cursor_blurred,
    ]  # a field in focus is tinted
    hues = {name: legible(Color.parse(hue), behind, TEXT_CONTRAST) for name, hue in _HUES.items()}
    colours = hues | {
        "dim": legible(background.blend(foreground, 0.6), behind, MUTED_CONTRAST),
        "foreground": legible(foreground, behind, TEXT_CONTRAST),  # which some themes cannot show on their panels
        "heading": legible(primary, behind, TEXT_CONTRAST),
        "key": legible(accent, behind, TEXT_CONTRAST),
        "cursor": cursor,
        "cursor-blurred": cursor_blurred,
        "frame": legible(background.blend(foreground, 0.2), [background], 1.5),
    }
    return {name: colour.hex6 for name, colour in colours.items()}


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
"""The states of a run (``app.store.run_summary.RunSummary.state``)."""

OUTCOMES = {
    "right": Appearance("✓", "right", RIGHT),
    "wrong": Appearance("✗", "wrong", WRONG),
    "unparsed": Appearance("∅", "unparsed", INVALID),
    "undecided": Appearance("?", "undecided", ABSTAINED),
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


def outcome_appearance(
    benchmark: Benchmark, condition: str, outcome: str, label: str | None, behaviour: str | None = None
) -> Appearance:
    """Return the appearance of an answer with this ``Record.outcome``; that of a labelled one has its label as the word.

    A value that no source has is ticked only where the ``behaviour`` of the verdict says that it is the right one.
    """
    if outcome == "labelled" and label is not None:
        is_right = benchmark.correct(condition, label) and not benchmark.is_invention(label, behaviour)
        kind = OUTCOMES["right" if is_right else "wrong"]
        return Appearance(kind.glyph, label, kind.colour)
    return OUTCOMES.get(outcome, OUTCOMES["pending"])


def label_appearance(labels: Sequence[str], label: str) -> Appearance:
    """Return a segment of a bar: fill and colour by the label's position among the benchmark's ``labels``, or its outcome's."""
    if label in OUTCOMES:
        return OUTCOMES[label]
    position = labels.index(label) if label in labels else len(_LABEL_COLOURS) - 1
    return Appearance(_FILLS[position % len(_FILLS)], label, _LABEL_COLOURS[position % len(_LABEL_COLOURS)])
