"""Colours as a viewer shows them: profiles and gamma converted to sRGB, negatives inverted, dark 16-bit pictures lightened."""

from __future__ import annotations

import io
import sys
from typing import IO, TYPE_CHECKING

from benchmarks.media.grey_levels import is_deep, tiff_tag

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

_UNSEEN = 3
"""The difference, in levels of a channel, that rounding makes and nobody sees."""

_SCREEN_GAMMA = 2.2
_UNSEEN_GAMMA = 0.05
_PHOTOMETRIC, _WHITE_IS_ZERO = 262, 0
_BITS = 258
"""The number of TIFF's tag BitsPerSample."""

_DARK = 16
"""The level of 256 below which a picture uses at most 12 of its 16 bits, and is too dark to see."""

_MOST_PIXELS = 10_000_000
_OTHER_BYTE = {"16B": "16L", "16L": "16B", "16N": "16B" if sys.byteorder == "little" else "16L"}


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


def lighten(image: PILImage, file: IO[bytes], head: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Scale a dark image of 16 bits a channel, in place, to the bits that it uses; return notes and warnings.

    One that cannot be scaled is left as it is, with a warning: of more than 10 megapixels, with a transparent colour, or of
    a kind whose low bytes Pillow does not give.
    """
    is_16 = head[24] == 16 if image.format == "PNG" else tiff_tag(image, _BITS) == 16
    if not is_16 or image.mode not in ("RGB", "RGBA", "LA"):
        return (), ()
    brightest = max(high for _, high in image.getextrema()[: 1 if image.mode == "LA" else 3])  # type: ignore[misc]
    if brightest >= _DARK:
        return (), ()
    bits = _scale(image, file)
    if bits is None:
        used = 8 + int(brightest).bit_length()
        return (), (f"the image is nearly black: its values use only {used} of 16 bits; save it with its full range",)
    return (
        (f"the image's levels: it uses {bits} of 16 bits, and {2**bits - 1} is shown as white",) if bits else ()
    ), ()


def _scale(image: PILImage, file: IO[bytes]) -> int | None:
    """Scale an image's colours to the bits that they use and return these, 0 if all are black; None if that is impossible."""
    import numpy as np
    from PIL import Image

    if image.mode == "LA" or image.width * image.height > _MOST_PIXELS or "transparency" in image.info:
        return None
    file.seek(0)
    low = Image.open(file, formats=[image.format or ""])
    tiles = []
    for tile in low.tile:
        raw, *rest = tile.args if isinstance(tile.args, tuple) else (tile.args,)
        kind, _, order = raw.rpartition(";")
        if kind not in ("RGB", "RGBA", "RGBX") or order not in _OTHER_BYTE:
            return None
        args = f"{kind};{_OTHER_BYTE[order]}"
        tiles.append(tile._replace(args=(args, *rest) if isinstance(tile.args, tuple) else args))
    low.tile = tiles
    levels = np.array(image)
    colours = levels[..., :3].astype(np.uint16) << 8 | np.asarray(low)[..., :3]
    highest = int(colours.max())
    if highest == 0:
        return 0
    bits = max(8, highest.bit_length())
    levels[..., :3] = (colours * (255 / (2**bits - 1))).round()
    image.paste(Image.fromarray(levels))
    return bits
