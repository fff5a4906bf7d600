"""Perceptual hashes of images, which find a picture again after it was encoded anew, resized or cropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

Array = np.ndarray[Any, np.dtype[Any]]

_THUMBNAIL, _SMALL, _BITS = 192, 32, 8
_SCALES = (0.9, 0.8, 0.7, 0.6)
"""The sides of crops that are looked for, as shares of the whole picture's sides."""
_FLAT = 2.0
"""The standard deviation of grey values below which a picture has no content to compare."""
_CANDIDATE_BITS = 14
"""The bits of 64 by which the hashes of two pictures may differ for them to be compared closely."""
_MOST_CANDIDATES = 8
_STEPS = (0.02, 0.006)
"""The steps in which the edges of a crop are searched, as shares of the whole picture's sides."""

SAME, SIMILAR = 0.97, 0.93
"""The correlation of two pictures' grey values from which they count as one picture, or as similar ones."""


@dataclass(frozen=True, slots=True)
class Match:
    """The most similar picture of an index: its number, the correlation of the two, and the share of its sides in view."""

    number: int
    correlation: float
    scale: float

    @property
    def same(self) -> bool:
        return self.correlation >= SAME


class ImageIndex:
    """Pictures that can be found by pictures made from them; every other picture is added whole and by its crops."""

    def __init__(self) -> None:
        self._thumbnails: list[PILImage] = []
        self._hashes: list[int] = []
        self._windows: list[tuple[int, _Window]] = []
        self._array: Array | None = None

    def __len__(self) -> int:
        return len(self._thumbnails)

    def add(self, image: PILImage) -> None:
        """Add a picture; its number is the count of those before."""
        number = len(self._thumbnails)
        thumbnail = _thumbnail(image)
        self._thumbnails.append(thumbnail)
        self._array = None
        for window in _windows():
            view = _view(thumbnail, window)
            if view.std() >= _FLAT:
                self._hashes.append(_hash(view))
                self._windows.append((number, window))

    def find(self, image: PILImage) -> Match | None:
        """Return the picture of which ``image`` is a copy or a crop, or that looks like it; None if there is none."""
        small = _view(_thumbnail(image), _WHOLE)
        if small.std() < _FLAT or not self._hashes:
            return None
        if self._array is None:
            self._array = np.array(self._hashes, dtype=np.uint64)
        distances = np.bitwise_count(self._array ^ np.uint64(_hash(small)))
        nearest: dict[int, tuple[int, _Window]] = {}
        for place in np.flatnonzero(distances <= _CANDIDATE_BITS).tolist():
            number, window = self._windows[place]
            nearest[number] = min(nearest.get(number, (64, window)), (int(distances[place]), window))
        candidates = sorted(nearest.items(), key=lambda item: item[1][0])[:_MOST_CANDIDATES]
        matches = [self._compared(small, number, window) for number, (_, window) in candidates]
        best = max(matches, key=lambda match: match.correlation, default=None)
        return best if best is not None and best.correlation >= SIMILAR else None

    def _compared(self, small: Array, number: int, window: _Window) -> Match:
        """Return how well a picture fits the best window near ``window`` of the picture ``number``."""
        thumbnail = self._thumbnails[number]
        best = _correlation(small, _view(thumbnail, window)), window
        for step in _STEPS if best[0] < SAME else ():
            best = max(best, *((_correlation(small, _view(thumbnail, near)), near) for near in _near(best[1], step)))
        return Match(number, best[0], best[1][2])


_Window = tuple[float, float, float]
"""Left and top edge and the sides of a crop, as shares of the picture's sides."""

_WHOLE: _Window = (0.0, 0.0, 1.0)


def _windows() -> Iterator[_Window]:
    yield _WHOLE
    for scale in _SCALES:
        places = [share * (1 - scale) for share in ((0.0, 0.5, 1.0) if scale > 0.85 else (0.0, 0.25, 0.5, 0.75, 1.0))]
        for left, top in product(places, places):
            yield left, top, scale


def _near(window: _Window, step: float) -> Iterator[_Window]:
    """Yield the windows whose edges lie up to three steps from those of ``window``."""
    left, top, side = window
    moves = [n * step for n in range(-3, 4)]
    for scale in (side - 2 * step, side - step, side, side + step, side + 2 * step):
        for x, y in product(moves, moves):
            near_left, near_top = left + x + (side - scale) / 2, top + y + (side - scale) / 2
            if scale <= 1 and min(near_left, near_top) >= 0 and max(near_left, near_top) + scale <= 1:
                yield near_left, near_top, scale


def _thumbnail(image: PILImage) -> PILImage:
    from PIL import Image

    return image.convert("L").resize((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BOX)


def _view(thumbnail: PILImage, window: _Window) -> Array:
    """Return a window of a thumbnail as a small picture."""
    from PIL import Image

    left, top, side = (share * _THUMBNAIL for share in window)
    box = (left, top, left + side, top + side)
    return np.asarray(thumbnail.resize((_SMALL, _SMALL), Image.Resampling.BOX, box=box), dtype=np.float32)


def _cosines() -> Array:
    places = np.arange(_SMALL)
    return np.cos(np.pi * np.outer(np.arange(_BITS), 2 * places + 1) / (2 * _SMALL)).astype(np.float32)


_COSINES = _cosines()
_WEIGHTS = 1 << np.arange(64, dtype=np.uint64)


def _hash(small: Array) -> int:
    """Return the signs of a picture's lowest frequencies against their median, as 64 bits."""
    frequencies = (_COSINES @ small @ _COSINES.T).ravel()
    frequencies[0] = 0  # the mean brightness
    return int(_WEIGHTS[frequencies > np.median(frequencies)].sum())


def _correlation(first: Array, second: Array) -> float:
    a, b = first - first.mean(), second - second.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm > 0 else 0.0
