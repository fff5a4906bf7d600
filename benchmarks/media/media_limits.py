"""Limits of media, checked in headers or while reading, before anything is decoded."""

from __future__ import annotations

LARGEST_FILE = 256 * 1024 * 1024
"""The maximum size of any medium, in bytes."""

LARGEST_SHAPE = 128 * 1024 * 1024
"""The maximum size of a 3D model, in bytes."""

LARGEST_IMAGE = 64_000_000
"""The maximum number of an image's pixels, checked in its header."""

LARGEST_PAGE = 4_000_000
"""The maximum number of pixels of a rendered page; a larger page is rendered at a lower resolution."""

DOTS_PER_INCH = 150
"""The resolution of rendered pages."""

LONGEST_SOUND = 20 * 60
"""The maximum length of a sound, in seconds."""

LOWEST_RATE = 1000
HIGHEST_RATE = 384_000
"""The range of sample rates, in Hz."""

MOST_CHANNELS = 16

MOST_SAMPLES = 250_000_000
"""The maximum number of samples of all channels: 20 minutes of stereo at 96 kHz."""

LONGEST_VIDEO = 20 * 60
"""The maximum length of a video, in seconds."""

LARGEST_FRAME = 4096 * 2304
"""The maximum number of pixels of a video's frame."""

MOST_DECODED = 4_000_000_000
"""The maximum number of pixels of all frames: two minutes of 1080p at 15 frames per second, five of 720p."""

MOST_FRAMES = 100_000
"""The maximum number of frames of a video, however small they are."""

MOST_POINTS = 1_000_000
MOST_FACES = 500_000

MOST_NODES = 10_000
"""The maximum number of nodes of a glTF scene."""

MOST_LEVELS = 200
"""The maximum depth of the nodes of a glTF scene."""

MOST_ARRAYS = 100
"""The maximum number of arrays in an NPZ file."""

MOST_COVERED = 40_000_000
"""The maximum sum of the areas of all faces' or points' bounding boxes in a view, in pixels."""
