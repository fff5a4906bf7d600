"""Bars made of terminal cells, as styled parts of a line or a table's cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.tui.theme import DIM, RIGHT, WRONG, label_appearance

Parts = list[tuple[str, str]]
"""Pieces of text, each with its style."""


def progress_bar(done: int, total: int, width: int, colour: str = RIGHT) -> Parts:
    """Return a progress bar of ``width`` cells; not empty once anything is done, not full before everything is."""
    filled_cells = round(width * done / total) if total else 0
    filled_cells = max(filled_cells, 1) if done else 0
    filled_cells = min(filled_cells, width - 1) if done < total else filled_cells
    return [("━" * filled_cells, colour), ("┄" * (width - filled_cells), DIM)]


def label_bar(counts: Mapping[str, int], labels: Sequence[str], width: int) -> Parts:
    """Return a stacked bar of label counts in the benchmark's order of ``labels``; other labels come last."""
    order = [*labels, *sorted(set(counts) - set(labels))]
    present = [(label, counts[label]) for label in order if counts.get(label)]
    total = sum(count for _, count in present)
    parts: Parts = []
    used_width = cumulative = 0
    for label, count in present:
        cumulative += count
        cells = round(width * cumulative / total) - used_width
        appearance = label_appearance(labels, label)
        parts.append((appearance.glyph * cells, appearance.colour))
        used_width += cells
    return parts or [("┄" * width, DIM)]


def legend(counts: Mapping[str, int], labels: Sequence[str]) -> Parts:
    """Return the legend of a :func:`label_bar`: each label's fill, name and count."""
    order = [*labels, *sorted(set(counts) - set(labels))]
    parts: Parts = []
    for label in order:
        if counts.get(label) or label in labels:
            appearance = label_appearance(labels, label)
            parts += [(f"{appearance.glyph} ", appearance.colour), (f"{label} {counts.get(label, 0)}  ", "")]
    return parts


def gauge(used: int, limit: int, width: int) -> Parts:
    """Return a bar of the share of ``limit`` in use; orange, with a mark, from nine tenths on."""
    share = min(1.0, used / limit) if limit else 0.0
    filled_cells = round(share * width)
    full = share >= 0.9
    colour = WRONG if full else RIGHT
    return [("━" * filled_cells, colour), ("┄" * (width - filled_cells), DIM), (" !" if full else "", colour)]


_STEPS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the last ``width`` values as a line of bars, of which the highest has full height; empty for fewer than two."""
    shown = values[-width:]
    highest = max(shown, default=0.0)
    if len(shown) < 2 or highest <= 0:
        return ""
    return "".join(_STEPS[round((len(_STEPS) - 1) * max(0.0, value) / highest)] for value in shown)
