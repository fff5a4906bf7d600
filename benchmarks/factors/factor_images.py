"""Images at the levels of a design's factors."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.factors.factor_levels import NONE, REGION, Box, parse_box
from benchmarks.media.image_files import load_image
from benchmarks.vocabulary import Mark

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

UNCHANGED: Mapping[str, str] = {"crop": NONE, "cover": "0", "resolution": "1", "blur": "0", "jpeg": NONE}
"""The factors that change an image, with the level at which each leaves it as it is."""

_GREY = (128, 128, 128)


@dataclass(frozen=True, slots=True)
class ChangedImage:
    """An image file at some levels, with the part of the original that it shows and its scale."""

    data: bytes
    suffix: str
    left: float = 0
    top: float = 0
    scale_x: float = 1
    scale_y: float = 1

    def move(self, mark: Mark) -> Mark:
        """Return a mark of the original in the pixels of this image."""
        x0, y0, x1, y1 = mark.box
        return Mark(mark.label, (self._x(x0), self._y(y0), self._x(x1), self._y(y1)))

    def _x(self, x: float) -> float:
        return (x - self.left) * self.scale_x

    def _y(self, y: float) -> float:
        return (y - self.top) * self.scale_y


def needs_region(levels: Mapping[str, str]) -> bool:
    """Return whether levels of an image concern its decisive region."""
    return levels.get("crop") == REGION or levels.get("cover", "0") != "0"


def image_levels(levels: Mapping[str, str]) -> dict[str, str]:
    """Return the levels that change an image, without those that leave it as it is and those of texts."""
    return {name: levels[name] for name, level in UNCHANGED.items() if levels.get(name, level) != level}


def change_image(data: bytes, suffix: str, levels: Mapping[str, str], region: Box | None) -> ChangedImage:
    """Return an image file at levels, which are those of :func:`image_levels`; ``region`` is in pixels.

    It is cropped, covered, scaled down, blurred and compressed, in this order. If that changes no pixel, it is the file itself,
    so that equal inputs stay equal. Raises MediaError for an image that cannot be read.
    """
    image = original = load_image(data)
    left = top = 0
    crop = levels.get("crop", NONE)
    if crop != NONE:
        box = region if crop == REGION else _in_pixels(parse_box(crop), image)
        assert box is not None
        left, top, right, bottom = _whole_pixels(box, image)
        image = image.crop((left, top, right, bottom))
    cover = float(levels.get("cover", "0"))
    if cover:
        assert region is not None
        image = image.copy()
        _cover(image, (region[0] - left, region[1] - top, region[2] - left, region[3] - top), cover)
    width, height = image.size
    share = float(levels.get("resolution", "1"))
    if share != 1:
        from PIL import Image

        size = max(1, round(width * share)), max(1, round(height * share))
        image = image.resize(size, Image.Resampling.LANCZOS)
    blur = float(levels.get("blur", "0"))
    if blur:
        from PIL import ImageFilter

        image = image.filter(ImageFilter.GaussianBlur(blur))
    output, quality = io.BytesIO(), levels.get("jpeg", NONE)
    if quality != NONE:
        image.save(output, "JPEG", quality=int(quality))
    elif image.size == original.size and image.tobytes() == original.tobytes():
        return ChangedImage(data, suffix)
    else:
        image.save(output, "PNG")
    suffix = ".png" if quality == NONE else ".jpg"
    return ChangedImage(output.getvalue(), suffix, left, top, image.width / width, image.height / height)


def _cover(image: PILImage, region: Box, share: float) -> None:
    """Cover a share of a region's width with grey, from its left edge."""
    x0, y0, x1, y1 = region
    if x1 > 0 and y1 > 0 and x0 < image.width and y0 < image.height:  # else it was cropped away
        image.paste(_GREY, _whole_pixels((x0, y0, x0 + share * (x1 - x0), y1), image))


def _in_pixels(box: Box, image: PILImage) -> Box:
    x0, y0, x1, y1 = box
    return x0 * image.width, y0 * image.height, x1 * image.width, y1 * image.height


def _whole_pixels(box: Box, image: PILImage) -> tuple[int, int, int, int]:
    """Return a box in whole pixels, at least one each way, within the image."""
    x0 = min(max(0, round(box[0])), image.width - 1)
    y0 = min(max(0, round(box[1])), image.height - 1)
    return x0, y0, min(max(x0 + 1, round(box[2])), image.width), min(max(y0 + 1, round(box[3])), image.height)
