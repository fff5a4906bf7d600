"""Media: images, sounds, videos and 3D models, checked against limits before they are decoded.

The package itself exports only the functions for images, since the modules for other media load numpy: ``audio``, ``video``,
``points``, and ``previews`` for all of them.
"""

from benchmarks.media.image import (
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
from benchmarks.media.limits import LARGEST_FILE, LARGEST_IMAGE
from benchmarks.media.pixels import DAMAGED, TOO_LARGE
from benchmarks.media.refusal import NO_IMAGE

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
