"""Views of a picture: as it is shown, and, of a transparent one, on other grounds and without its transparency."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from benchmarks.media.image_files import examine_image
from benchmarks.media.image_pixels import file_format

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

_FORMATS = ("PNG", "WEBP", "GIF")
_MOST_PIXELS = 1 << 24
"""The pixels up to which a picture that was already decoded once under limits is decoded here again."""


def image_views(data: bytes) -> list[PILImage]:
    """Return an image file's picture as it is shown, then as it looks on white and black and by its colours alone.

    A picture without transparent parts, or with more than 16 million pixels, has the first view only. Raises MediaError.
    """
    decoded = examine_image(data)
    format_ = file_format(data)
    width, height = decoded.full_size
    if format_ is None or format_[0] not in _FORMATS or width * height > _MOST_PIXELS:
        return [decoded.image]
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data)) as image:
            if not image.has_transparency_data:
                return [decoded.image]
            layer = ImageOps.exif_transpose(image).convert("RGBA")
    except Exception:  # Pillow raises many kinds for damaged files; the safe decoder has read this one
        return [decoded.image]
    if layer.getchannel("A").getextrema() == (255, 255):
        return [decoded.image]
    grounds = [Image.alpha_composite(Image.new("RGBA", layer.size, ground), layer) for ground in ("white", "black")]
    return [decoded.image, *(view.convert("RGB") for view in (*grounds, layer))]
