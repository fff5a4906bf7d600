"""Decisive regions: the boxes of images in which the answer to a question stands."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import SourceError, SpecError
from benchmarks.factors.factor_levels import Box, parse_box
from benchmarks.media.image_files import read_image
from benchmarks.rows.json_rows import read_json_lines

_FORM = '{"image": "chart.png", "box": [X0, Y0, X1, Y1]}'
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Regions:
    """The decisive region of each image, in pixels by the sha256 of its file, or in shares for all others."""

    shares: Box | None = None
    pixels: Mapping[str, Box] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Regions:
        """Return the regions of a box ``X0:Y0:X1:Y1`` for all images. Raises SpecError if it is not within the image."""
        try:
            return cls(parse_box(text))
        except ValueError as error:
            raise SpecError(
                f"{text[:60]!r} is no box within an image; write X0:Y0:X1:Y1 in shares of the width and height from 0 to 1."
            ) from error

    @classmethod
    def read(cls, path: Path) -> Regions:
        """Read the regions of a file of JSON lines, whose images are files relative to it, or sha256. Raises SourceError."""
        pixels = {}
        for number, line in read_json_lines(path):
            place = f"{path.name}:{number}"
            if not isinstance(line, dict):
                raise SourceError(f"{place} is no JSON object; each line is {_FORM}.")
            pixels[_image(path, line, place)] = _box(line, place)
        if not pixels:
            raise SourceError(f"{path.name} names no region; each line is {_FORM}.")
        return cls(None, pixels)

    def of(self, sha256: str, size: tuple[int, int]) -> Box:
        """Return the region of an image in pixels. Raises SourceError if it has none, or one outside the image."""
        width, height = size
        box = self.pixels.get(sha256)
        if box is None:
            if self.shares is None:
                raise SourceError(
                    f"no decisive region is known for the image {sha256[:12]}; name one for all images with --region, or one for "
                    "each with --regions FILE."
                )
            x0, y0, x1, y1 = self.shares
            return x0 * width, y0 * height, x1 * width, y1 * height
        x0, y0, x1, y1 = box
        if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
            edges = ", ".join(f"{edge:g}" for edge in box)
            raise SourceError(
                f"the region {edges} is outside its image {sha256[:12]} of {width} x {height} pixels; correct its line."
            )
        return box


def _image(path: Path, line: Mapping[str, Any], place: str) -> str:
    name = line.get("image")
    if not isinstance(name, str) or not name:
        raise SourceError(f"{place} names no image; each line is {_FORM}.")
    if _SHA256.fullmatch(name):
        return name
    return hashlib.sha256(read_image(path.parent / name)).hexdigest()


def _box(line: Mapping[str, Any], place: str) -> Box:
    box = line.get("box")
    numbers = [edge for edge in box if type(edge) in (int, float)] if isinstance(box, list) else []
    if not isinstance(box, list) or len(box) != 4 or len(numbers) != 4 or not all(abs(edge) < 1e9 for edge in numbers):
        raise SourceError(f"{place} has no box of four numbers; each line is {_FORM}, in pixels.")
    x0, y0, x1, y1 = (float(edge) for edge in numbers)
    return x0, y0, x1, y1
