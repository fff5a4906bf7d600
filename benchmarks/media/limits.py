"""What media may be at most: all of it is known from a header, or bounded while it is read, before anything is decoded."""

from __future__ import annotations

LARGEST_FILE = 256 * 1024 * 1024
"""Bytes of any medium."""

LARGEST_SHAPE = 128 * 1024 * 1024
"""Bytes of a 3D model."""

LARGEST_IMAGE = 64_000_000
"""Pixels an image may have; a larger one is refused from its header alone."""

LONGEST_SOUND = 20 * 60
"""Seconds."""

LOWEST_RATE = 1000
HIGHEST_RATE = 384_000
"""Hz."""

MOST_CHANNELS = 16

MOST_SAMPLES = 250_000_000
"""Of all channels: 20 minutes of stereo at 96 kHz."""

LONGEST_VIDEO = 20 * 60
"""Seconds."""

LARGEST_FRAME = 4096 * 2304
"""Pixels."""

MOST_DECODED = 4_000_000_000
"""Pixels of all frames together: two minutes of 1080p at 15 frames a second, five of 720p."""

MOST_FRAMES = 100_000
"""Of a video, however small."""

MOST_POINTS = 1_000_000
MOST_FACES = 500_000

MOST_NODES = 10_000
"""Of a glTF scene."""

MOST_LEVELS = 200
"""Of nodes in a glTF scene."""

MOST_ARRAYS = 100
"""Of an npz."""

MOST_COVERED = 40_000_000
"""Pixels of a view that the boxes around all faces or points cover together."""
