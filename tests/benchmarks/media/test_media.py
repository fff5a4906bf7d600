"""Images: every file gives an RGB image or a clear refusal."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from benchmarks.errors import MediaError, SpecError
from benchmarks.media import LARGEST_IMAGE, image_suffix, load_image, pixel_digest, read_media
from benchmarks.vocabulary import Media
from tests.support.data.small import bomb, picture


def _saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [("PNG", ".png"), ("JPEG", ".jpg"), ("GIF", ".gif"), ("WEBP", ".webp"), ("BMP", ".bmp"), ("TIFF", ".tif")],
)
def test_six_formats_are_read_under_any_file_name(tmp_path: Path, kind: str, suffix: str) -> None:
    path = tmp_path / "picture.txt"
    path.write_bytes(picture(7, kind))
    image = load_image(path)
    assert (image.mode, image.size) == ("RGB", (48, 32))
    assert image_suffix(path.read_bytes()) == suffix


def test_alpha_is_laid_on_white() -> None:
    image = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    image.putpixel((1, 0), (0, 0, 0, 0))
    loaded = load_image(_saved(image))
    assert [loaded.getpixel((x, 0)) for x in (0, 1)] == [(255, 0, 0), (255, 255, 255)]


def test_a_transparent_palette_is_laid_on_white() -> None:
    image = Image.new("P", (1, 1), 0)
    image.putpalette([10, 20, 30])
    assert load_image(_saved(image, transparency=0)).getpixel((0, 0)) == (255, 255, 255)


def test_sixteen_bits_are_scaled_and_not_clipped() -> None:
    image = Image.new("I;16", (1, 1), 128 * 257)
    assert load_image(_saved(image)).getpixel((0, 0)) == (128, 128, 128)


def test_camera_orientation_is_applied() -> None:
    image = Image.new("RGB", (4, 2), "white")
    exif = Image.Exif()
    exif[0x0112] = 6
    assert load_image(_saved(image, "JPEG", exif=exif)).size == (2, 4)


def test_a_bomb_is_refused_from_its_header() -> None:
    for width, height in ((8001, 8000), (60_000, 60_000)):
        assert width * height > LARGEST_IMAGE
        with pytest.raises(MediaError, match="more than 64 megapixels"):
            load_image(bomb(width, height))


def test_damaged_image_of_the_largest_size_is_not_called_a_bomb() -> None:
    with pytest.raises(MediaError, match="truncated or damaged"):
        load_image(bomb(8000, 8000))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_a_truncated_file_is_refused(kind: str) -> None:
    data = picture(3, kind)
    with pytest.raises(MediaError, match="truncated or damaged"):
        load_image(data[: len(data) // 2])


@pytest.mark.parametrize("data", [b"\x89PNG", b"\0\1\2", bytes(range(128, 256))])
def test_non_image_is_refused(data: bytes) -> None:
    with pytest.raises(MediaError, match="is not a PNG"):
        load_image(data)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"the image 'gone\.png' is missing") as caught:
        load_image(tmp_path / "gone.png")
    assert caught.value.reason.startswith("is missing")
    with pytest.raises(MediaError, match="is missing"):
        load_image(tmp_path)


@settings(deadline=None)
@given(st.binary(max_size=40), st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"]), st.integers(0, 60))
def test_hostile_bytes_give_an_image_or_a_media_error(noise: bytes, kind: str, at: int) -> None:
    data = picture(5, kind)
    try:
        image = load_image(data[:at] + noise + data[at + len(noise) :])
    except MediaError:
        return
    assert image.mode == "RGB"


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 20_000))
def test_scaling_keeps_the_aspect_and_never_enlarges(width: int, height: int, limit: int) -> None:
    image = load_image(_saved(Image.new("RGB", (width, height))), max_pixels=limit)
    assert image.width * image.height <= max(limit, 1)
    if width * height <= limit:
        assert image.size == (width, height)
    elif min(image.size) > 1:
        assert abs(image.width / width - image.height / height) <= 1 / min(width, height)


def test_zero_max_pixels_is_a_spec_error() -> None:
    with pytest.raises(SpecError, match="at least 1 pixel"):
        load_image(picture(1), max_pixels=0)


def test_digest_covers_the_picture_not_the_file() -> None:
    png, bmp = load_image(picture(9)), load_image(picture(9, "BMP"))
    assert pixel_digest(png) == pixel_digest(bmp) != pixel_digest(load_image(picture(10)))
    wide, tall = (Image.new("RGB", size) for size in ((2, 3), (3, 2)))
    assert pixel_digest(wide) != pixel_digest(tall)


def test_medium_with_the_wrong_digest_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(b"other pixels")
    media = Media(hashlib.sha256(b"pixels").hexdigest(), ".png")
    with pytest.raises(MediaError, match="is not the one that was built"):
        read_media(path, media)
    path.write_bytes(b"pixels")
    assert read_media(path, media) == b"pixels"
