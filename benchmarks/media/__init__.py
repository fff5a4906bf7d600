"""Media: images, sounds, videos and 3D models, checked against limits before they are decoded."""

from benchmarks.media.audio import load_sound
from benchmarks.media.image import (
    CHANGED,
    DAMAGED,
    MISSING,
    NO_IMAGE,
    TOO_LARGE,
    image_suffix,
    load_image,
    pixel_digest,
    read_image,
    read_media,
)
from benchmarks.media.limits import LARGEST_FILE, LARGEST_IMAGE
from benchmarks.media.show import check, facts, pictures, thumbnail
from benchmarks.media.video import load_frames

__all__ = [
    "CHANGED",
    "DAMAGED",
    "LARGEST_FILE",
    "LARGEST_IMAGE",
    "MISSING",
    "NO_IMAGE",
    "TOO_LARGE",
    "check",
    "facts",
    "image_suffix",
    "load_frames",
    "load_image",
    "load_sound",
    "pictures",
    "pixel_digest",
    "read_image",
    "read_media",
    "thumbnail",
]
