"""Cache of a vision encoder's features in memory, keyed by the image's content and processing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from mlx_backends.base import EngineInfo
from mlx_backends.core.lru_cache import LRUCache
from mlx_backends.core.saved_work import Reuse
from mlx_backends.mlx.metal.metal_fault_recovery import settle
from mlx_backends.mlx.vision.encoder_output_parts import MISSING_PART, Unused, UsedParts, is_whole
from mlx_backends.mlx.vision.feature_store import FeatureStore, encoder_digest
from mlx_backends.models.host_machine import host_info
from mlx_backends.stored_checks import code_digest

if TYPE_CHECKING:
    from mlx_backends.models.adapter_folder import Adapter

_METHOD = "get_vision_embedding"
"""The method of MiniCPM-V that encodes images; it calls the layers of several modules one by one."""

_NAMES = (
    _METHOD,
    "vision_tower",
    "vision_model",
    "visual",
    "vision",
    "model.vision_embed_tokens.img_processor.vision_model",  # Phi-3 Vision
)


class VisionEncoder:
    """The vision encoder of a loaded model, and which parts of its output the model uses. ``store`` keeps these on disk."""

    def __init__(self, model: Any, store: FeatureStore | None = None) -> None:
        self._place, _, self._name = (_encoder_path(model) or "").rpartition(".")
        self._model = model
        self._store = store
        self.encode: Any = _attribute(model, self._place, self._name) if self._name else None
        self.parts = UsedParts()

    def call(self, make: Callable[[], Any], encode: Any) -> Any:
        """Return what ``make`` returns with ``encode`` in place of the model's encoder."""
        parent = _attribute(self._model, self._place)
        is_method = self._name not in parent and self._name not in vars(parent)
        setattr(parent, self._name, encode)
        try:
            return make()
        finally:
            if is_method:
                delattr(parent, self._name)
            else:
                setattr(parent, self._name, self.encode)

    def stored(self, key: Any) -> Any | None:
        """Return features from the disk; None where they are not stored, or lack a part that the model may use."""
        features = None if self._store is None else self._store.get(key)
        return None if self.parts.are_all and not is_whole(features) else features

    def save(self, key: Any, features: Any) -> None:
        """Store features on disk, if the GPU has confirmed them."""
        if self._store is not None:
            settle()  # what a GPU computed before it failed must not be stored
            self._store.put(key, features)


class CachedVisionTower:
    """Stand-in for a model's vision encoder that encodes nothing twice.

    All that the model uses of the encoder's output is cached, including Qwen3-VL's deepstack features, which mlx-vlm's own cache
    of image features drops. The key is the sha256 of an image's processed pixels and grid, never its path. ``cache_bytes`` is the
    memory for features; the newest are cached whatever their size.
    """

    def __init__(self, encoder: VisionEncoder, cache_bytes: int) -> None:
        self._encoder = encoder
        self._reuse = Reuse()
        self._features: LRUCache[Any] = LRUCache(cache_bytes)
        self._fresh: dict[tuple[str, ...], tuple[Any, Any]] = {}
        """The key and the features of each image of this prompt that had to be encoded."""
        self._has_gaps = False
        self._images: tuple[str, ...] = ()
        self._videos: tuple[str, ...] = ()
        self._times: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder.encode, name)

    def embed(
        self,
        make: Callable[[], Any],
        images: Sequence[str],
        videos: Sequence[str] = (),
        times: Any = None,
        reuse: Reuse | None = None,
    ) -> Any:
        """Return a prompt's embeddings as ``make`` computes them, with this in place of the model's encoder.

        ``images`` and ``videos`` are the digests of the prompt's media, in order, and ``times`` is the videos' grid, which
        identifies the encoder's call for them. ``reuse`` counts the work. For the first images, ``make`` is repeated to find
        which parts of the encoder's output it uses.
        """
        if self._encoder.encode is None or not (images or videos):
            return make()
        self._images, self._videos, self._times = tuple(images), tuple(videos), times
        self._reuse = reuse or Reuse()
        try:
            return self._encoder.call(lambda: self._embed(make), self)
        finally:
            self._fresh = {}

    def _embed(self, make: Callable[[], Any]) -> Any:
        parts = self._encoder.parts
        self._has_gaps = False
        try:
            output = make()
        except MISSING_PART:  # perhaps it uses a part that earlier images could do without
            if not self._has_gaps:
                raise
            before = parts.keep_all()
            self.clear()
            try:
                output = make()
            except BaseException:
                parts.restore(before)
                raise
        if self._fresh and not parts.are_known:
            _, features = next(iter(self._fresh.values()))
            parts.find(features, make, output)
            output = make()  # the last attempt may have left the model in another state
        for images, (key, features) in self._fresh.items():
            used = parts.of(features)
            self._features.put(images, used, _bytes(used))
            self._encoder.save(key, used)
        return output

    def resize(self, cache_bytes: int) -> None:
        """Bound the memory for features anew, from the next one on."""
        self._features.limit = cache_bytes

    def clear(self) -> None:
        """Drop all features."""
        self._features.clear()
        self._fresh = {}

    def __call__(self, pixels: Any, *arguments: Any, **named: Any) -> Any:
        features = self._call(pixels, *arguments, **named)
        self._has_gaps |= not is_whole(features)
        return features

    def _call(self, pixels: Any, *arguments: Any, **named: Any) -> Any:
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
        """Return features from memory, or else from the disk, or else from the encoder."""
        encoder = self._encoder
        if (features := self._features.find(images)) is not None:
            return features
        if images not in self._fresh:
            key = [list(images), _settings(arguments), _settings(named.values()), sorted(named)]
            if (features := encoder.stored(key)) is not None:
                self._reuse.from_disk += 1
                self._features.put(images, features, _bytes(features))
                return features
            self._fresh[images] = key, _evaluated(encoder.parts.of(encoder.encode(*arguments, **named)))
            self._reuse.encoded += 1
        return encoder.parts.of(self._fresh[images][1])


def encoder_identity(info: EngineInfo, model: Any, adapter: Adapter | None = None) -> Mapping[str, Any]:
    """Return what decides the features of an image, beside its pixels: the encoder, the engine, our code and the machine.

    ``adapter`` was applied to the model; where it leaves the encoder as it is, features are those of the model alone.
    """
    from mlx.utils import tree_flatten

    path = str(_encoder_path(model))
    encode = _attribute(model, path)
    configuration: Any = getattr(model.config, "vision_config", None)
    modules = [path]
    if path == _METHOD:
        modules = sorted(name for name in model.children() if name != "language_model")
        configuration = {name: value for name, value in vars(model.config).items() if name != "text_config"}
    is_adapted = adapter is not None and any(adapter.touches(module) for module in modules)
    parameters = {module: _attribute(model, module).parameters() for module in modules}
    dtypes = {str(value.dtype) for _, value in tree_flatten(parameters)}
    host = host_info()
    return {
        "weights": encoder_digest(parameters, f"{info.weights}+{info.adapter}" if is_adapted else info.weights),
        "dtypes": sorted(dtypes),
        "encoder": [path, f"{type(encode).__module__}.{type(encode).__qualname__}"],
        "configuration": repr(configuration),
        "versions": dict(info.versions),
        "code": code_digest(),
        "device": info.device,
        "machine": [host.chip, host.system],
        "switches": {name: value for name, value in os.environ.items() if name.startswith("MLX_")},
    }


def _encoder_path(model: Any) -> str | None:
    """Return the attribute of ``model`` that is its vision encoder; None where that cannot be replaced."""
    return next((path for path in _NAMES if _is_replaceable(model, path)), None)


def _is_replaceable(model: Any, path: str) -> bool:
    """Return whether ``model`` has an encoder of this name that can be replaced: Phi-3 Vision's first is a property."""
    place, _, name = path.rpartition(".")
    parent = _attribute(model, place)
    is_property = isinstance(getattr(type(parent), name, None), property)
    return not is_property and getattr(parent, name, None) is not None


def _attribute(model: Any, *paths: str) -> Any:
    """Return the attribute of ``model`` at a dotted path, given in one or several parts; None where it has none."""
    return reduce(
        lambda value, name: getattr(value, name, None),
        [name for path in paths for name in path.split(".") if name],
        model,
    )


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

    first = next((part for part in features if isinstance(part, Unused)), features[0])
    if isinstance(first, mx.array):
        return mx.concatenate(list(features), axis=0)
    if isinstance(first, (list, tuple)):
        return type(first)(_joined(parts) for parts in zip(*features, strict=True))
    return first
