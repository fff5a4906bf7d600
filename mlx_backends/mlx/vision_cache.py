"""Cache of a vision encoder's features in memory, keyed by the image's content and processing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlx_backends.base import EngineInfo
from mlx_backends.core.lru_cache import LRUCache
from mlx_backends.core.reuse import Reuse
from mlx_backends.mlx.feature_store import FeatureStore, encoder_digest
from mlx_backends.mlx.metal.fault_recovery import settle
from mlx_backends.models.host import host_info

_NAMES = ("vision_tower", "vision_model", "visual", "vision")


class CachedVisionTower:
    """Stand-in for a model's vision encoder that encodes nothing twice.

    Everything that the encoder returns is cached, including Qwen3-VL's deepstack features, which mlx-vlm's own cache of image
    features drops. The key is the sha256 of an image's processed pixels and grid, never its path. ``cache_bytes`` is the memory
    for features; the newest are cached whatever their size. ``store`` keeps them on disk.
    """

    def __init__(self, model: Any, cache_bytes: int, store: FeatureStore | None = None) -> None:
        self._model = model
        self._name = encoder_name(model)
        self._encoder: Any = getattr(model, self._name) if self._name else None
        self._store = store
        self._reuse = Reuse()
        self._features: LRUCache[Any] = LRUCache(cache_bytes)
        self._images: tuple[str, ...] = ()
        self._videos: tuple[str, ...] = ()
        self._times: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    @contextmanager
    def showing(
        self, images: Sequence[str], videos: Sequence[str] = (), times: Any = None, reuse: Reuse | None = None
    ) -> Iterator[None]:
        """Replace the model's encoder by this one within the block, for images and videos with these digests, in order.

        ``times`` is the videos' grid, which identifies the encoder's call for them. ``reuse`` counts the work.
        """
        if self._name is None or not (images or videos):
            yield
            return
        self._images, self._videos, self._times = tuple(images), tuple(videos), times
        self._reuse = reuse or Reuse()
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

    def _encode(self, images: tuple[str, ...], *arguments: Any, **named: Any) -> Any:
        return self._features.get(images, lambda: self._stored(images, *arguments, **named), _bytes)

    def _stored(self, images: tuple[str, ...], *arguments: Any, **named: Any) -> Any:
        """Return features from the disk, or else from the encoder."""
        key = [list(images), _settings(arguments), _settings(named.values()), sorted(named)]
        features = None if self._store is None else self._store.get(key)
        if features is None:
            features = _evaluated(self._encoder(*arguments, **named))
            self._reuse.encoded += 1
            if self._store is not None:
                settle()  # what a GPU computed before it failed must not be stored
                self._store.put(key, features)
        else:
            self._reuse.from_disk += 1
        return features


def encoder_name(model: Any) -> str | None:
    """Return the attribute of ``model`` that is its vision encoder; None where that cannot be replaced."""
    return next((name for name in _NAMES if _replaceable(model, name)), None)


def encoder_identity(info: EngineInfo, model: Any, adapted: bool = False) -> dict[str, Any]:
    """Return what decides the features of an image, beside its pixels: the encoder, the engine and the machine.

    ``adapted`` says that the encoder holds weights of the adapter; otherwise it is the encoder of the model alone.
    """
    from mlx.utils import tree_flatten

    name = encoder_name(model)
    encoder: Any = getattr(model, str(name))
    host = host_info()
    return {
        "weights": encoder_digest(encoder, f"{info.weights}+{info.adapter}" if adapted else info.weights),
        "dtypes": sorted({str(value.dtype) for _, value in tree_flatten(encoder.parameters())}),
        "encoder": f"{type(encoder).__module__}.{type(encoder).__qualname__}",
        "configuration": repr(getattr(model.config, "vision_config", None)),
        "versions": dict(info.versions),
        "device": info.device,
        "machine": [host.chip, host.system],
        "switches": {name: value for name, value in os.environ.items() if name.startswith("MLX_")},
    }


def _replaceable(model: Any, name: str) -> bool:
    """Return whether ``model`` has an encoder of this name that can be replaced: Phi-3 Vision's is a property."""
    return getattr(model, name, None) is not None and not isinstance(getattr(type(model), name, None), property)


def _settings(arguments: Iterable[Any]) -> list[Any]:
    """Return the arguments of the encoder that are no arrays; these are computed from the images."""
    return [argument for argument in arguments if isinstance(argument, bool | int | float | str | None)]


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
