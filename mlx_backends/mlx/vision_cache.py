"""Cache of a vision encoder's features, keyed by the image's content and processing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlx_backends.core.lru_cache import LRUCache

CACHE_BYTES = 2**28
"""Memory for cached features; the newest are cached whatever their size."""

_NAMES = ("vision_tower", "vision_model", "visual")


class CachedVisionTower:
    """Stand-in for a model's vision encoder that encodes nothing twice.

    Everything that the encoder returns is cached, including Qwen3-VL's deepstack features, which mlx-vlm's own cache of image
    features drops. The key is the sha256 of an image's processed pixels and grid, never its path.
    """

    def __init__(self, model: Any, cache_bytes: int = CACHE_BYTES) -> None:
        self._model = model
        self._name = next((name for name in _NAMES if _replaceable(model, name)), None)
        self._encoder: Any = getattr(model, self._name) if self._name else None
        self._features: LRUCache[Any] = LRUCache(cache_bytes)
        self._images: tuple[str, ...] = ()
        self._videos: tuple[str, ...] = ()
        self._times: Any = None

    @property
    def encoded(self) -> int:
        """Return how many times the encoder has been called."""
        return self._features.misses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    @contextmanager
    def showing(self, images: Sequence[str], videos: Sequence[str] = (), times: Any = None) -> Iterator[None]:
        """Replace the model's encoder by this one within the block, for images and videos with these digests, in order.

        ``times`` is the videos' grid, which identifies the encoder's call for them.
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
            return self._encode(images, pixels, *arguments, **named)
        grid, *rest = arguments
        features, start = [], 0
        for number, (image, (t, h, w)) in enumerate(zip(images, grid.tolist(), strict=True)):
            part = pixels[start : start + t * h * w]
            features.append(self._encode((image,), part, grid[number : number + 1], *rest, **named))
            start += t * h * w
        return _joined(features)

    def _encode(self, key: tuple[str, ...], *arguments: Any, **named: Any) -> Any:
        return self._features.get(key, lambda: _evaluated(self._encoder(*arguments, **named)), _bytes)


def _replaceable(model: Any, name: str) -> bool:
    """Return whether ``model`` has an encoder of this name that can be replaced: Phi-3 Vision's is a property."""
    return getattr(model, name, None) is not None and not isinstance(getattr(type(model), name, None), property)


def _arrays(features: Any) -> list[Any]:
    import mlx.core as mx
    from mlx.utils import tree_flatten

    return [value for _, value in tree_flatten(features) if isinstance(value, mx.array)]


def _evaluated(features: Any) -> Any:
    import mlx.core as mx

    mx.eval(_arrays(features))
    return features


def _bytes(features: Any) -> int:
    return sum(value.nbytes for value in _arrays(features))


def _by_grid(pixels: Any, arguments: Sequence[Any]) -> bool:
    """Return whether the rows of ``pixels`` are divided by a grid of (time, height, width), a row for each image."""
    grid: Any = arguments[0] if arguments else None
    if getattr(grid, "ndim", 0) != 2 or grid.shape[1] != 3:
        return False
    return bool(sum(t * h * w for t, h, w in grid.tolist()) == pixels.shape[0])


def _joined(features: Sequence[Any]) -> Any:
    """Return the features of several images as the encoder returns them for all of these at once."""
    import mlx.core as mx

    first = features[0]
    if isinstance(first, mx.array):
        return mx.concatenate(list(features), axis=0)
    if isinstance(first, (list, tuple)):
        return type(first)(_joined(parts) for parts in zip(*features, strict=True))
    return first
