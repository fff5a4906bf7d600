"""Colours as a viewer shows them: ICC profiles and gamma converted to sRGB, negatives of deep TIFF files inverted."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from benchmarks.media.grey_levels import is_deep, tiff_tag

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

_UNSEEN = 3
"""The difference, in levels of a channel, that rounding makes and nobody sees."""

_SCREEN_GAMMA = 2.2
_UNSEEN_GAMMA = 0.05
_PHOTOMETRIC, _WHITE_IS_ZERO = 262, 0


def as_shown(image: PILImage, rgb: PILImage) -> PILImage:
    """Return ``rgb``, made from ``image`` without its profile, as a viewer shows it; ``rgb`` itself if that is the same."""
    from PIL import ImageChops, ImageOps

    profile = image.info.get("icc_profile")
    shown = _from_profile(image, rgb, profile) if isinstance(profile, bytes) and profile else _from_gamma(image, rgb)
    if is_deep(image) and tiff_tag(image, _PHOTOMETRIC) == _WHITE_IS_ZERO:
        shown = ImageOps.invert(shown)  # Pillow does so for 8 bits only
    if shown is rgb:
        return rgb
    extrema = ImageChops.difference(shown, rgb).getextrema()
    return rgb if all(high <= _UNSEEN for _, high in extrema) else shown  # type: ignore[misc]


def _from_profile(image: PILImage, rgb: PILImage, profile: bytes) -> PILImage:
    from PIL import ImageCms

    try:
        opened = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        match opened.profile.xcolor_space.strip():
            case "RGB":
                source = rgb
            case "GRAY":
                source = rgb.convert("L")
            case "CMYK" if image.mode == "CMYK":
                source = image
            case _:
                return rgb
        shown = ImageCms.profileToProfile(
            source,
            opened,
            ImageCms.createProfile("sRGB"),
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
            "RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    except (ImageCms.PyCMSError, OSError, ValueError):
        return rgb  # viewers ignore a damaged profile
    return shown or rgb


def _from_gamma(image: PILImage, rgb: PILImage) -> PILImage:
    gamma = image.info.get("gamma")
    if image.format != "PNG" or "srgb" in image.info or not isinstance(gamma, float) or gamma <= 0:
        return rgb
    exponent = 1 / (gamma * _SCREEN_GAMMA)
    if abs(exponent - 1) < _UNSEEN_GAMMA:
        return rgb
    return rgb.point([round(255 * (level / 255) ** exponent) for level in range(256)] * 3)
