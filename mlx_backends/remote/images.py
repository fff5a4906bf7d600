"""Images as they are sent to a provider: their pixels, and nothing else of the file."""

from __future__ import annotations

import io
import threading
from functools import lru_cache

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Media
from mlx_backends.base import MediaPath

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


class EncodedImages:
    """PNGs of media. The last few are cached: an example's siblings show one image, and failed calls are retried."""

    def __init__(self, media: MediaPath) -> None:
        self._media = media
        self._lock = threading.Lock()
        self._cached_png = lru_cache(maxsize=16)(self._png)

    def png(self, media: Media, max_pixels: int | None) -> bytes:
        """Return the pixels of an image, scaled down to ``max_pixels``, as a PNG without metadata.

        Raises ModelError for a medium that is no image and MediaError for an image that cannot be read.
        """
        if media.modality != "image":
            raise ModelError(f"remote engines take images only, and this request holds media of type {media.modality}.")
        with self._lock:
            return self._cached_png(media, max_pixels)

    def _png(self, media: Media, max_pixels: int | None) -> bytes:
        from benchmarks.media import load_image, read_media

        image = load_image(read_media(self._media(media), media), max_pixels, media.marks)
        image.info.clear()
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    def pixels(self, media: Media, max_pixels: int | None) -> int:
        """Return how many pixels an image has when it is sent, read from its header; 0 where it cannot be read."""
        from PIL import Image

        try:
            with Image.open(self._media(media), formats=_FORMATS) as image:
                size = image.width * image.height
        except Exception:  # a hostile header can raise anything, and the call itself reports the problem
            return 0
        return size if max_pixels is None else min(size, max_pixels)
