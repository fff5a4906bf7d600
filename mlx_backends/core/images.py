"""Pictures: an image opened, and what a model's processor makes of it, kept by the image's content."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.base import Mark, Media
from mlx_backends.core.lru_cache import LRUCache

if TYPE_CHECKING:
    from PIL.Image import Image

KEPT_BYTES = 2**27
"""How much memory is given to kept pictures; the newest is kept whatever its size. Prompts that show one come together."""

_GRIDDED = frozenset({"pixel_values", "image_grid_thw"})

Picture = tuple[str, int | None, tuple[Mark, ...]]
"""What an image looks like: the sha256 of its file's bytes, at most how many pixels it is shown with, the marks on it."""

Opened = tuple[Picture, "Callable[[], Image]"]
"""A picture, and what opens it."""


def opened(path: Path, media: Media, max_pixels: int | None) -> Opened:
    """How ``media`` looks, of its file as it is now, and what opens it. Raises MediaError, at once or on opening."""
    from benchmarks.media import load_image, read_media

    data = read_media(path, media)
    picture = (hashlib.sha256(data).hexdigest(), max_pixels, tuple(media.marks))
    return picture, lambda: load_image(data, max_pixels, media.marks)


class ProcessedImages:
    """Stands in the place of a processor's image processor, and has it process no picture twice.

    What it makes is kept only where it is shown exactly the images of the prompt, by what they look like and how they are
    to be processed; anything else goes by. Several images are processed one by one where the result is rows and a grid of
    (time, height, width), whose rows follow each other as the images do; otherwise all at once, and kept as one.
    """

    def __init__(self, processor: Any, kept_bytes: int = KEPT_BYTES) -> None:
        self._processor = processor
        self._real: Any = getattr(processor, "image_processor", None)
        self._images: LRUCache[Image] = LRUCache(kept_bytes // 4)
        self._processed: LRUCache[Any] = LRUCache(kept_bytes - kept_bytes // 4)
        self._shown: dict[int, Picture] = {}
        self._apart = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # mlx-vlm asks for the types of image processors
        return self._real.__class__

    @property
    def processed(self) -> int:
        """How many times the processor has been asked."""
        return self._processed.made

    @contextmanager
    def showing(self, pictures: Sequence[Opened]) -> Iterator[list[Image]]:
        """The images of a prompt, in order. Within this block the processor's image processor is this one."""
        # Copies, because nobody knows what a processor does to an image.
        images = [self._images.get(picture, make, _pixels).copy() for picture, make in pictures]
        if self._real is None:
            yield images
            return
        self._shown = {id(image): picture for image, (picture, _) in zip(images, pictures, strict=True)}
        self._processor.image_processor = self
        try:
            yield images
        finally:
            self._processor.image_processor = self._real
            self._shown = {}

    def __call__(self, images: Any, *arguments: Any, **named: Any) -> Any:
        return self._made(self._real, images, *arguments, **named)

    def preprocess(self, images: Any, *arguments: Any, **named: Any) -> Any:
        return self._made(self._real.preprocess, images, *arguments, **named)

    def _made(self, process: Callable[..., Any], images: Any, *arguments: Any, **named: Any) -> Any:
        key = self._key(images)
        if key is None:
            return process(images, *arguments, **named)
        how = (process is self._real, repr(arguments), repr(sorted(named.items())))

        def made(key: Hashable, images: Any) -> Any:
            found = self._processed.get((key, how), lambda: _evaluated(process(images, *arguments, **named)), _bytes)
            return copy.deepcopy(found)

        if self._apart and isinstance(images, list) and len(images) > 1 and isinstance(key, tuple):
            parts = [made((one,), [image]) for one, image in zip(key, images, strict=True)]
            self._apart = all(_gridded(part) for part in parts)
            if self._apart:
                return _joined(parts)
        return made(key, images)

    def _key(self, images: Any) -> Hashable | None:
        """What ``images``, in lists of any depth, look like; nothing where one of them is not as it was shown."""
        if not isinstance(images, (list, tuple)):
            return self._shown.get(id(images))
        found = tuple(map(self._key, images))
        return None if None in found else found


def _pixels(image: Image) -> int:
    return len(image.getbands()) * image.width * image.height


def _leaves(found: Any) -> Iterator[Any]:
    if isinstance(found, (Mapping, list, tuple)):
        for value in found.values() if isinstance(found, Mapping) else found:
            yield from _leaves(value)
    else:
        yield found


def _bytes(found: Any) -> int:
    return sum(int(getattr(leaf, "nbytes", 0)) for leaf in _leaves(found))


def _evaluated(found: Any) -> Any:
    """``found`` as another thread may have it: what MLX has yet to compute belongs to the one that asked for it."""
    import mlx.core as mx

    mx.eval([leaf for leaf in _leaves(found) if isinstance(leaf, mx.array)])
    return found


def _gridded(found: Any) -> bool:
    """Whether ``found`` is one picture's rows of pixels and its grid, and nothing else."""
    import numpy as np

    if not isinstance(found, Mapping) or found.keys() != _GRIDDED:
        return False
    pixels, grid = found["pixel_values"], found["image_grid_thw"]
    known = isinstance(pixels, np.ndarray) and isinstance(grid, np.ndarray) and grid.shape == (1, 3)
    return known and pixels.ndim == 2 and int(grid.prod()) == pixels.shape[0]


def _joined(parts: Sequence[Any]) -> Any:
    """What the processor makes of several pictures, of what it makes of each: in the first one's type."""
    import numpy as np

    whole = parts[0]
    for name in _GRIDDED:
        whole[name] = np.concatenate([part[name] for part in parts])
    return whole
