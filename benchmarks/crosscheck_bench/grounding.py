"""Which of an instance's boxes a model's reasoning names, by their labels or by coordinates (MM-CoT, stage 1)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.base import Mark

_NUMBER = r"\s*([0-9]{1,5}(?:\.[0-9]{1,6})?)\s*"
_BOX = re.compile(rf"[\[(]{_NUMBER},{_NUMBER}(?:,|\)\s*,?\s*\(){_NUMBER},{_NUMBER}[\])]")
"""Four numbers in brackets, also in two pairs: ``[10, 20, 30, 40]``, ``(10,20),(30,40)``."""

_WORD = re.compile(r"[^\W_]+")

SAME = 0.5
"""The intersection over union from which two boxes are one."""

_PER_MILLE = 1000.0

Size = tuple[int, int]
Edges = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Grounding:
    """For each frame the marks that are named, and the coordinates, as they were written, that are no box of any frame."""

    frames: tuple[tuple[Mark, ...], ...]
    unmatched: tuple[str, ...] = ()

    @property
    def drawn(self) -> int:
        """How many marks are named."""
        return sum(map(len, self.frames))


def ground(reasoning: str, frames: Sequence[Sequence[Mark]], sizes: Sequence[Size]) -> Grounding:
    """What ``reasoning`` names of the marks of ``frames``, whose width and height are ``sizes`` (may be missing).

    A label is named where its words stand in the reasoning one after the other, letter case and a plural's s aside.
    Coordinates name the box of any frame with which they share at least half of their union, read as pixels, as shares of
    the picture (where none is above 1) or in thousandths of it: models differ in that. Time is linear in the reasoning.
    """
    said = _words(reasoning)
    named = {
        (i, j)
        for i, marks in enumerate(frames)
        for j, mark in enumerate(marks)
        if (label := _words(mark.label).strip()) and _stands(label, said)
    }
    unmatched: dict[str, None] = {}
    for written, box in _coordinates(reasoning):
        hits = {
            (i, j)
            for i, marks in enumerate(frames)
            for j, mark in enumerate(marks)
            if any(_shared(edges, mark.box) >= SAME for edges in _readings(box, sizes[i] if i < len(sizes) else None))
        }
        named |= hits
        if not hits:
            unmatched[written] = None
    found = tuple(tuple(m for j, m in enumerate(marks) if (i, j) in named) for i, marks in enumerate(frames))
    return Grounding(found, tuple(unmatched))


def _words(text: str) -> str:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} "


def _stands(label: str, said: str) -> bool:
    if not label.isascii():  # scripts that put no spaces between words
        return label in said
    return f" {label} " in said or f" {label}s " in said


def _coordinates(reasoning: str) -> Iterator[tuple[str, Edges]]:
    for found in _BOX.finditer(reasoning):
        x0, y0, x1, y1 = map(float, found.groups())
        if x0 < x1 and y0 < y1:
            yield found[0], (x0, y0, x1, y1)


def _readings(box: Edges, size: Size | None) -> Iterator[Edges]:
    """What coordinates can mean, in pixels of a picture of ``size``."""
    if max(box) > 1:
        yield box
    if size is not None:
        whole = 1.0 if max(box) <= 1 else _PER_MILLE
        if max(box) <= whole:
            across, down = size[0] / whole, size[1] / whole
            yield box[0] * across, box[1] * down, box[2] * across, box[3] * down


def _shared(one: Edges, other: Edges) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    both = wide * high
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return both / (areas - both)
