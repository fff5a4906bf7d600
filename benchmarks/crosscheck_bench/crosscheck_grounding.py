"""The boxes of an instance that a model's reasoning names, by label or by coordinates (MM-CoT, stage 1)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.vocabulary import Mark

_NUMBER = r"\s*([0-9]{1,5}(?:\.[0-9]{1,6})?)\s*"
_BOX = re.compile(rf"[\[(]{_NUMBER},{_NUMBER}(?:,|\)\s*,?\s*\(){_NUMBER},{_NUMBER}[\])]")
"""Four numbers in brackets, also in two pairs: ``[10, 20, 30, 40]``, ``(10,20),(30,40)``."""

_WORD = re.compile(r"[^\W_]+")

MIN_OVERLAP = 0.5
"""The least intersection over union at which two boxes count as the same."""

_PER_MILLE = 1000.0

Size = tuple[int, int]
Edges = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Grounding:
    """The marks that are named in each frame, and the coordinates, as written, that match no box of any frame."""

    frames: tuple[tuple[Mark, ...], ...]
    unmatched: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of marks that are named."""
        return sum(map(len, self.frames))


def find_named_marks(reasoning: str, frames: Sequence[Sequence[Mark]], sizes: Sequence[Size]) -> Grounding:
    """Return the marks of ``frames`` that ``reasoning`` names; ``sizes`` are the frames' widths and heights, and may be missing.

    A label is named where its words occur next to each other in the reasoning, ignoring case and a plural s.
    Coordinates name the box of any frame with an intersection over union of at least ``MIN_OVERLAP``. Models differ in
    the unit, so coordinates are tried as pixels, as fractions of the picture (if none is above 1) and as thousandths of
    it. Time is linear in the length of the reasoning.
    """
    text = _words(reasoning)
    named = {
        (i, j)
        for i, marks in enumerate(frames)
        for j, mark in enumerate(marks)
        if (label := _words(mark.label).strip()) and _contains_label(label, text)
    }
    unmatched: dict[str, None] = {}
    for written_coordinates, box in _coordinates(reasoning):
        hits = {
            (i, j)
            for i, marks in enumerate(frames)
            for j, mark in enumerate(marks)
            if any(
                _overlap(edges, mark.box) >= MIN_OVERLAP
                for edges in _readings(box, sizes[i] if i < len(sizes) else None)
            )
        }
        named |= hits
        if not hits:
            unmatched[written_coordinates] = None
    marks_of_frames = tuple(tuple(m for j, m in enumerate(marks) if (i, j) in named) for i, marks in enumerate(frames))
    return Grounding(marks_of_frames, tuple(unmatched))


def _words(text: str) -> str:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} "


def _contains_label(label: str, text: str) -> bool:
    if not label.isascii():  # scripts without spaces between words
        return label in text
    return f" {label} " in text or f" {label}s " in text


def _coordinates(reasoning: str) -> Iterator[tuple[str, Edges]]:
    for match in _BOX.finditer(reasoning):
        x0, y0, x1, y1 = map(float, match.groups())
        if x0 < x1 and y0 < y1:
            yield match[0], (x0, y0, x1, y1)


def _readings(box: Edges, size: Size | None) -> Iterator[Edges]:
    """Yield the possible meanings of coordinates, in pixels of a picture of ``size``."""
    if max(box) > 1:
        yield box
    if size is not None:
        full_scale = 1.0 if max(box) <= 1 else _PER_MILLE
        if max(box) <= full_scale:
            across, down = size[0] / full_scale, size[1] / full_scale
            yield box[0] * across, box[1] * down, box[2] * across, box[3] * down


def _overlap(box: Edges, other: Edges) -> float:
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    intersection = width * height
    areas = sum((edges[2] - edges[0]) * (edges[3] - edges[1]) for edges in (box, other))
    return intersection / (areas - intersection)
