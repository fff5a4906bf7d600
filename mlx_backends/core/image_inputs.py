"""Images as a model's processor takes them, opened and processed once for each content."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.vocabulary import Mark, Media
from mlx_backends.core.lru_cache import LRUCache

if TYPE_CHECKING:
    from PIL.Image import Image

CACHE_BYTES = 2**27
"""Memory for cached images; the newest is cached whatever its size. Prompts that show the same image come in a row."""

_GRIDDED = frozenset({"pixel_values", "image_grid_thw"})

ImageKey = tuple[str, int | None, tuple[Mark, ...]]
"""The appearance of an image: the sha256 of its file's bytes, its most pixels, and the marks on it."""

KeyedImage = tuple[ImageKey, "Callable[[], Image]"]
"""An image's key, and a function that opens it."""


def keyed_image(path: Path, media: Media, max_pixels: int | None) -> KeyedImage:
    """Return the key of ``media``, from its file as it is now, and a function that opens it.

    Raises MediaError, at once or on opening.
    """
    from benchmarks.media import load_image, read_media

    data = read_media(path, media)
    picture = (hashlib.sha256(data).hexdigest(), max_pixels, tuple(media.marks))
    return picture, lambda: load_image(data, max_pixels, media.marks)


class ProcessedImages:
    """Stand-in for a processor's image processor that processes no image twice.

    Results are cached only for exactly the images of the prompt, by their appearance and the processor's arguments; anything
    else is passed through. Several images are processed one by one where the result is rows and a grid of (time, height, width),
    whose rows follow each other as the images do; otherwise all at once, and cached together.
    """

    def __init__(self, processor: Any, cache_bytes: int = CACHE_BYTES) -> None:
        self._processor = processor
        self._image_processor: Any = getattr(processor, "image_processor", None)
        self._images: LRUCache[Image] = LRUCache(cache_bytes // 4)
        self._processed: LRUCache[Any] = LRUCache(cache_bytes - cache_bytes // 4)
        self._keys: dict[int, ImageKey] = {}
        self._separable = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._image_processor, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # mlx-vlm checks the types of image processors
        return self._image_processor.__class__

    @property
    def processed(self) -> int:
        """Return how many times the processor has been called."""
        return self._processed.misses

    @contextmanager
    def showing(self, pictures: Sequence[KeyedImage]) -> Iterator[list[Image]]:
        """Yield the images of a prompt, in order; within this block the processor's image processor is this one."""
        # Copies, because a processor may change the image it is given.
        images = [self._images.get(picture, make, _pixels).copy() for picture, make in pictures]
        if self._image_processor is None:
            yield images
            return
        self._keys = {id(image): picture for image, (picture, _) in zip(images, pictures, strict=True)}
        self._processor.image_processor = self
        try:
            yield images
        finally:
            self._processor.image_processor = self._image_processor
            self._keys = {}

    def __call__(self, images: Any, *arguments: Any, **named: Any) -> Any:
        return self._process(self._image_processor, images, *arguments, **named)

    def preprocess(self, images: Any, *arguments: Any, **named: Any) -> Any:
        return self._process(self._image_processor.preprocess, images, *arguments, **named)

    def _process(self, process: Callable[..., Any], images: Any, *arguments: Any, **named: Any) -> Any:
        key = self._key(images)
        if key is None:
            return process(images, *arguments, **named)
        call = (process is self._image_processor, repr(arguments), repr(sorted(named.items())))

        def cached(key: Hashable, images: Any) -> Any:
            result = self._processed.get((key, call), lambda: _evaluated(process(images, *arguments, **named)), _bytes)
            return copy.deepcopy(result)

        if self._separable and isinstance(images, list) and len(images) > 1 and isinstance(key, tuple):
            parts = [cached((part_key,), [image]) for part_key, image in zip(key, images, strict=True)]
            self._separable = all(_gridded(part) for part in parts)
            if self._separable:
                return _joined(parts)
        return cached(key, images)

    def _key(self, images: Any) -> Hashable | None:
        """Return the key of ``images``, in lists of any depth; None where one of them is not an image of the prompt."""
        if not isinstance(images, (list, tuple)):
            return self._keys.get(id(images))
        keys = tuple(map(self._key, images))
        return None if None in keys else keys


def _pixels(image: Image) -> int:
    return len(image.getbands()) * image.width * image.height


def _leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, (Mapping, list, tuple)):
        for value in result.values() if isinstance(result, Mapping) else result:
            yield from _leaves(value)
    else:
        yield result


def _bytes(result: Any) -> int:
    return sum(int(getattr(leaf, "nbytes", 0)) for leaf in _leaves(result))


def _evaluated(result: Any) -> Any:
    """Return ``result`` with MLX's lazy arrays computed: another thread cannot compute them."""
    import mlx.core as mx

    mx.eval([leaf for leaf in _leaves(result) if isinstance(leaf, mx.array)])
    mx.synchronize()  # raises if the GPU failed, before anything is cached
    return result


def _gridded(result: Any) -> bool:
    """Return whether ``result`` is one image's rows of pixels and its grid, and nothing else."""
    import numpy as np

    if not isinstance(result, Mapping) or result.keys() != _GRIDDED:
        return False
    pixels, grid = result["pixel_values"], result["image_grid_thw"]
    matches = isinstance(pixels, np.ndarray) and isinstance(grid, np.ndarray) and grid.shape == (1, 3)
    return matches and pixels.ndim == 2 and int(grid.prod()) == pixels.shape[0]


def _joined(parts: Sequence[Any]) -> Any:
    """Return what the processor makes of several images, from what it makes of each: in the first one's type."""
    import numpy as np

    joined_parts = parts[0]
    for name in _GRIDDED:
        joined_parts[name] = np.concatenate([part[name] for part in parts])
    return joined_parts
