"""Bars of cells, as parts of text for a table's cell or a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.tui.theme import DIM, RIGHT, label_look

Parts = list[tuple[str, str]]


def progress_bar(done: int, total: int, width: int) -> Parts:
    """How much of ``total`` is done, ``width`` cells long; not empty once something is, not full before everything is."""
    filled = round(width * done / total) if total else 0
    filled = max(filled, 1) if done else 0
    filled = min(filled, width - 1) if done < total else filled
    return [("━" * filled, RIGHT), ("┄" * (width - filled), DIM)]


def label_bar(counts: Mapping[str, int], labels: Sequence[str], width: int) -> Parts:
    """How often each label was given, as parts of a bar in the benchmark's order of ``labels``; others come last."""
    order = [*labels, *sorted(set(counts) - set(labels))]
    told = [(label, counts[label]) for label in order if counts.get(label)]
    total = sum(count for _, count in told)
    parts: Parts = []
    used = sofar = 0
    for label, count in told:
        sofar += count
        cells = round(width * sofar / total) - used
        look = label_look(labels, label)
        parts.append((look.glyph * cells, look.colour))
        used += cells
    return parts or [("┄" * width, DIM)]


def legend(counts: Mapping[str, int], labels: Sequence[str]) -> Parts:
    """The fills and words of a bar's labels, with how often each was given."""
    order = [*labels, *sorted(set(counts) - set(labels))]
    parts: Parts = []
    for label in order:
        if counts.get(label) or label in labels:
            look = label_look(labels, label)
            parts += [(f"{look.glyph} ", look.colour), (f"{label} {counts.get(label, 0)}  ", "")]
    return parts


def gauge(used: int, limit: int, width: int) -> Parts:
    """How much of ``limit`` is used; orange with a mark from nine tenths on."""
    share = min(1.0, used / limit) if limit else 0.0
    filled = round(share * width)
    full = share >= 0.9
    colour = "#e8702a" if full else RIGHT
    return [("━" * filled, colour), ("┄" * (width - filled), DIM), (" !" if full else "", colour)]
