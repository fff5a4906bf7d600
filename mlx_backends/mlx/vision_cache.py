"""Features: what a model's vision encoder makes of an image, kept by the image's content and processing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlx_backends.core.lru_cache import LRUCache

KEPT_BYTES = 2**28
"""How much memory is given to kept features; the newest are kept whatever their size."""

_NAMES = ("vision_tower", "vision_model", "visual")


class CachedVisionTower:
    """Stands in the place of a model's vision encoder, and asks it for nothing twice.

    Everything that the encoder returns is kept, Qwen3-VL's deepstack features too, which mlx-vlm's own cache of image
    features drops. The key is the sha256 of an image's processed pixels and grid, never its path.
    """

    def __init__(self, model: Any, kept_bytes: int = KEPT_BYTES) -> None:
        self._model = model
        self._name = next((name for name in _NAMES if getattr(model, name, None) is not None), None)
        self._encoder: Any = getattr(model, self._name) if self._name else None
        self._kept: LRUCache[Any] = LRUCache(kept_bytes)
        self._images: tuple[str, ...] = ()
        self._videos: tuple[str, ...] = ()
        self._times: Any = None

    @property
    def encoded(self) -> int:
        """How many times the encoder has been asked."""
        return self._kept.made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    @contextmanager
    def showing(self, images: Sequence[str], videos: Sequence[str] = (), times: Any = None) -> Iterator[None]:
        """Within this block the model's encoder is this one, and it is shown the images and videos with these digests, in order.

        ``times`` is the videos' grid, by which the encoder's call for them is known.
        """
        if self._name is None or not (images or videos):
            yield
            return
        self._images, self._videos, self._times = tuple(images), tuple(videos), times
        setattr(self._model, self._name, self)
        try:
            yield
        finally:
            setattr(self._model, self._name, self._encoder)

    def __call__(self, pixels: Any, *arguments: Any, **named: Any) -> Any:
        images = self._videos if self._times is not None and arguments and arguments[0] is self._times else self._images
        if len(images) == 1 or not _by_grid(pixels, arguments):
            return self._once(images, pixels, *arguments, **named)
        grid, *rest = arguments
        found, start = [], 0
        for number, (image, (t, h, w)) in enumerate(zip(images, grid.tolist(), strict=True)):
            part = pixels[start : start + t * h * w]
            found.append(self._once((image,), part, grid[number : number + 1], *rest, **named))
            start += t * h * w
        return _joined(found)

    def _once(self, key: tuple[str, ...], *arguments: Any, **named: Any) -> Any:
        return self._kept.get(key, lambda: _evaluated(self._encoder(*arguments, **named)), _bytes)


def _arrays(found: Any) -> list[Any]:
    import mlx.core as mx
    from mlx.utils import tree_flatten

    return [value for _, value in tree_flatten(found) if isinstance(value, mx.array)]


def _evaluated(found: Any) -> Any:
    import mlx.core as mx

    mx.eval(_arrays(found))
    return found


def _bytes(found: Any) -> int:
    return sum(value.nbytes for value in _arrays(found))


def _by_grid(pixels: Any, arguments: Sequence[Any]) -> bool:
    """Whether the rows of ``pixels`` are told apart by a grid of (time, height, width), a row an image."""
    grid: Any = arguments[0] if arguments else None
    if getattr(grid, "ndim", 0) != 2 or grid.shape[1] != 3:
        return False
    return bool(sum(t * h * w for t, h, w in grid.tolist()) == pixels.shape[0])


def _joined(found: Sequence[Any]) -> Any:
    """What the encoder gave for each of several images, as it gives it for all of them."""
    import mlx.core as mx

    first = found[0]
    if isinstance(first, mx.array):
        return mx.concatenate(list(found), axis=0)
    if isinstance(first, (list, tuple)):
        return type(first)(_joined(parts) for parts in zip(*found, strict=True))
    return first
