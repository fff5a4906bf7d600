"""Media: images, sounds, videos and 3D models, checked against limits before they are decoded.

The package itself exports only the functions for images, since the modules for other media load numpy: ``audio``, ``video``,
``points``, and ``previews`` for all of them.
"""

from benchmarks.media.image_files import (
    CHANGED,
    MISSING,
    UNSAFE,
    examine_image,
    image_suffix,
    load_image,
    pixel_digest,
    read_image,
    read_media,
    shown_image,
)
from benchmarks.media.image_pixels import DAMAGED, TOO_LARGE
from benchmarks.media.image_refusal import NO_IMAGE
from benchmarks.media.media_limits import LARGEST_FILE, LARGEST_IMAGE

__all__ = [
    "CHANGED",
    "DAMAGED",
    "LARGEST_FILE",
    "LARGEST_IMAGE",
    "MISSING",
    "NO_IMAGE",
    "TOO_LARGE",
    "UNSAFE",
    "examine_image",
    "image_suffix",
    "load_image",
    "pixel_digest",
    "read_image",
    "read_media",
    "shown_image",
]
