"""A small POPE source that the tests write."""

from __future__ import annotations

from pathlib import Path

from benchmarks.pope.pope_constants import SETTINGS
from tests.support.data.small import write_lines, write_picture


def small_pope(folder: Path, images: int = 4) -> Path:
    """Three files of six questions an image, half of them yes; the images under their names of 2014 and 2017 in turn."""
    for number in range(1, images + 1):
        name = f"COCO_val2014_{number:012d}.jpg" if number % 2 else f"{number:012d}.jpg"
        write_picture(folder / ("val2014" if number % 2 else "val2017") / name, number, "JPEG")
    for setting in SETTINGS:
        rows = [
            {
                "question_id": 6 * number + i,
                "image": f"COCO_val2014_{number:012d}.jpg",
                "text": f"Is there a {setting} thing {i} in the image?",
                "label": "no" if i % 2 else "yes",
            }
            for number in range(1, images + 1)
            for i in range(6)
        ]
        write_lines(folder / f"coco_pope_{setting}.json", rows)
    return folder
