"""Perceptual hashes of images, which find a picture again after it was encoded anew, resized or cropped."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.rows.record_file import RecordFile

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
_AT_ONCE = 1 << 14
"""The number of stored pictures whose hashes are compared at a time."""
_STEPS = (0.02, 0.006)
"""The steps in which the edges of a crop are searched, as shares of the whole picture's sides."""
_BLOCKS = 16
"""The blocks in a row of a small picture, by which most windows are left out before they are compared closely."""
_HOPELESS = 0.65
"""The correlation after the first step from which no second step leads to a similar picture; the least that did was 0.70."""
_ROUNDING = 0.01
"""The most by which correlations by sums of grey values differ from those of resized pictures, whose values are rounded."""

HASH_VERSION = "3"
"""To be changed with whatever may change a match."""

SAME, SIMILAR = 0.97, 0.93
"""The correlation of two pictures' grey values from which they count as one picture, or as similar ones."""


@dataclass(frozen=True, slots=True)
class Match:
    """A similar picture of an index: its number, the correlation of the two, and the window of it that is in view.

    If ``within`` is set, the other picture is the larger one, and the window is one of that.
    """

    number: int
    correlation: float
    window: Window
    within: bool = False

    @property
    def same(self) -> bool:
        return self.correlation >= SAME


Window = tuple[float, float, float]
"""Left and top edge and the sides of a crop, as shares of the picture's sides."""

WHOLE: Window = (0.0, 0.0, 1.0)


def _windows() -> Iterator[Window]:
    yield WHOLE
    for scale in _SCALES:
        places = [share * (1 - scale) for share in ((0.0, 0.5, 1.0) if scale > 0.85 else (0.0, 0.25, 0.5, 0.75, 1.0))]
        for left, top in product(places, places):
            yield left, top, scale


_WINDOWS = tuple(_windows())


class ImageIndex:
    """Pictures that can be found by pictures made from them, and by pictures that they were made from.

    Of each picture, memory holds the hashes of the whole and of its crops, 680 bytes; its thumbnail is in a temporary file.
    """

    def __init__(self) -> None:
        self._thumbnails = RecordFile()
        self._numbers = array("Q")
        self._hashes = array("Q")

    def add(self, image: PILImage, number: int) -> None:
        """Add a picture under a number of its own. Raises TemporaryFolderError where there is no room for its thumbnail."""
        thumbnail = _thumbnail(image)
        self._thumbnails.add_bytes(thumbnail.tobytes())
        self._numbers.append(number)
        self._hashes.extend(_hashes(thumbnail).tolist())

    def find(self, image: PILImage) -> list[Match]:
        """Return the pictures that ``image`` may copy, be cropped from or be the whole of, or that look like it, best first."""
        thumbnail = _thumbnail(image)
        small = _view(thumbnail, WHOLE)
        if small.std() < _FLAT or not self._numbers:
            return []
        own = _hashes(thumbnail)
        stored = np.frombuffer(self._hashes, dtype=np.uint64).reshape(-1, len(_WINDOWS))
        matches = [
            self._match(place, small, self._read(place), window) for place, window in _candidates(stored, own[:1])
        ]
        if not any(match.same for match in matches):
            matches += [
                self._match(place, _view(self._read(place), WHOLE), thumbnail, window, within=True)
                for place, window in _candidates(stored[:, :1], own[1:])
            ]
        return sorted((m for m in matches if m.correlation >= SIMILAR), key=_by_correlation, reverse=True)

    def _match(self, place: int, small: Array, thumbnail: PILImage, window: Window, *, within: bool = False) -> Match:
        correlation, best = _fit(small, thumbnail, window)
        return Match(self._numbers[place], correlation, best, within)

    def _read(self, place: int) -> PILImage:
        from PIL import Image

        size = _THUMBNAIL**2
        return Image.frombytes("L", (_THUMBNAIL, _THUMBNAIL), self._thumbnails.read_bytes(place * size, size))


def _by_correlation(match: Match) -> float:
    return match.correlation


def _candidates(stored: Array, own: Array) -> list[tuple[int, Window]]:
    """Return the places of the stored pictures nearest to another one, each with the window in which it is.

    Either the other picture's hash, ``own``, is compared with those of all windows of the ``stored`` ones, or the hashes of its
    own windows with theirs of the whole.
    """
    nearest: list[tuple[int, int, int]] = []
    for start in range(0, len(stored), _AT_ONCE):
        distances = np.bitwise_count(stored[start : start + _AT_ONCE] ^ own)
        windows = distances.argmin(axis=1)
        least = distances[np.arange(len(distances)), windows]
        places = np.argsort(least, kind="stable")[:_MOST_CANDIDATES]
        nearest += zip(least[places].tolist(), (start + places).tolist(), windows[places].tolist(), strict=True)
    first = len(_WINDOWS) - len(own) if len(own) > 1 else 0
    return [
        (place, _WINDOWS[first + window])
        for distance, place, window in sorted(nearest)[:_MOST_CANDIDATES]
        if distance <= _CANDIDATE_BITS
    ]


def _fit(small: Array, thumbnail: PILImage, window: Window) -> tuple[float, Window]:
    """Return how well a picture fits the best window near ``window`` of another one: their correlation, and that window.

    Windows that cannot be the best one are left out by their blocks, and the others by sums of grey values; what remains is
    resized and compared. A picture without a similar window after the first step is not searched further.
    """
    best = _correlation(small, _view(thumbnail, window)), window
    if best[0] >= SAME and window == WHOLE:
        return best
    sums, blocks = _sums(thumbnail), _blocks(small)
    detail = 1 - _energy(blocks) * (_SMALL // _BLOCKS) ** 2 / _energy(small)
    for step, least in zip(_STEPS, (_HOPELESS, SIMILAR), strict=True):
        near = _near(best[1], step)
        by_blocks = _correlations(blocks, sums, near)
        if max(best[0], by_blocks.max(initial=0)) < least:
            break
        bounds = np.sqrt(np.maximum(by_blocks, 0) ** 2 * (1 - detail) + detail)
        near = near[bounds >= max(best[0], least) - _ROUNDING]
        correlations = _correlations(small, sums, near)
        close = near[correlations >= max(best[0], correlations.max(initial=0)) - _ROUNDING]
        windows: list[Window] = list(map(tuple, close.tolist()))
        best = max([best, *((_correlation(small, _view(thumbnail, near_by)), near_by) for near_by in windows)])
    return best


_MOVES = np.array([(x, y, growth) for growth in range(-2, 3) for x, y in product(range(-3, 4), repeat=2)])
"""The moves of a window's middle and the growths of its sides that are tried, in steps."""


def _near(window: Window, step: float) -> Array:
    """Return the windows whose edges lie up to three steps from those of ``window``, each a row of three numbers."""
    moves = step * _MOVES
    sides = window[2] + moves[:, 2:]
    edges = np.array(window[:2]) + moves[:, :2] + (window[2] - sides) / 2
    inside = (sides[:, 0] <= 1) & (edges.min(axis=1) >= 0) & (edges.max(axis=1) + sides[:, 0] <= 1)
    near: Array = np.hstack([edges, sides])[inside]
    return near


def _thumbnail(image: PILImage) -> PILImage:
    from PIL import Image

    return image.convert("L").resize((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BOX)


def _view(thumbnail: PILImage, window: Window) -> Array:
    """Return a window of a thumbnail as a small picture."""
    from PIL import Image

    left, top, side = (share * _THUMBNAIL for share in window)
    box = (left, top, left + side, top + side)
    return np.asarray(thumbnail.resize((_SMALL, _SMALL), Image.Resampling.BOX, box=box), dtype=np.float32)


def _sums(thumbnail: PILImage) -> Array:
    """Return the sums of the grey values above and to the left of each corner of a pixel."""
    sums = np.zeros((_THUMBNAIL + 1, _THUMBNAIL + 1), dtype=np.float32)  # whole numbers below 2^24, so without rounding
    np.asarray(thumbnail, dtype=np.float32).cumsum(axis=0).cumsum(axis=1, out=sums[1:, 1:])
    return sums


def _views(sums: Array, windows: Array, size: int) -> Array:
    """Return windows of a thumbnail as small pictures, of the shape (windows, size, size); their edges are those of pixels."""
    shares = np.linspace(0, 1, size + 1)
    x, y = (
        np.rint(_THUMBNAIL * (windows[:, axis, None] + windows[:, 2, None] * shares)).astype(np.intp) for axis in (0, 1)
    )
    corners = sums.take(y[:, :, None] * len(sums) + x[:, None, :])
    strips = corners[:, 1:] - corners[:, :-1]
    views: Array = strips[:, :, 1:] - strips[:, :, :-1]
    views /= np.diff(y)[:, :, None] * np.diff(x)[:, None, :]
    return views


def _correlations(small: Array, sums: Array, windows: Array) -> Array:
    """Return the correlation of a picture, or of its blocks, with the same pixels of each window of a thumbnail."""
    flat = _views(sums, windows, len(small)).reshape(len(windows), small.size)
    flat -= flat.mean(axis=1, keepdims=True)
    centred = (small - small.mean()).ravel()
    norms = np.sqrt(np.einsum("ij,ij->i", flat, flat) * (centred @ centred))
    correlations: Array = np.divide(flat @ centred, norms, out=np.zeros_like(norms), where=norms > 0)
    return correlations


def _blocks(small: Array) -> Array:
    """Return the mean of each block of a small picture."""
    blocks: Array = small.reshape(_BLOCKS, _SMALL // _BLOCKS, _BLOCKS, -1).mean(axis=(1, 3))
    return blocks


def _energy(small: Array) -> float:
    """Return the sum of squares about the mean."""
    return float(((small - small.mean()) ** 2).sum())


def _cosines() -> Array:
    places = np.arange(_SMALL)
    return np.cos(np.pi * np.outer(np.arange(_BITS), 2 * places + 1) / (2 * _SMALL)).astype(np.float32)


_COSINES = _cosines()
_WEIGHTS = 1 << np.arange(64, dtype=np.uint64)


def _hashes(thumbnail: PILImage) -> Array:
    """Return a hash of each window: the signs of its lowest frequencies against their median, as 64 bits.

    A window without content has the hash 0, which is far from all others: half of their bits are set.
    """
    views = _views(_sums(thumbnail), np.array(_WINDOWS), _SMALL)
    frequencies = (_COSINES @ views @ _COSINES.T).reshape(len(views), -1)
    frequencies[:, 0] = 0  # the mean brightness
    signs = frequencies > np.median(frequencies, axis=1, keepdims=True)
    signs &= (views.std(axis=(1, 2)) >= _FLAT)[:, None]
    hashes: Array = (signs * _WEIGHTS).sum(axis=1, dtype=np.uint64)
    return hashes


def _correlation(first: Array, second: Array) -> float:
    a, b = first - first.mean(), second - second.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm > 0 else 0.0
