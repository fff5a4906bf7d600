"""Pictures as people have them: the model gets what a person sees in a viewer, or the file is refused with the reason."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageDraw, ImageFont

from benchmarks.errors import MediaError
from benchmarks.media import examine_image, image_suffix, load_image, shown_image
from benchmarks.media.image_pixels import (
    DAMAGED,
    FIRST_FRAME,
    FIRST_PAGE,
    NARROW,
    NEARLY_BLANK,
    ONE_COLOUR,
    PARTLY_UNSEEN,
)
from benchmarks.media.image_refusal import BASE64, EMPTY, LFS_POINTER, PDF, TEXT, WEB_PAGE, ZEROS
from benchmarks.media.transparent_ground import GROUNDS

WHITE, BLACK, GREY = (255, 255, 255), (0, 0, 0), (128, 128, 128)


def chart(grounds: Any = WHITE, ink: Any = BLACK, mode: str = "RGB", size: tuple[int, int] = (120, 90)) -> Image.Image:
    """A bar chart of ``ink`` and three colours."""
    image = Image.new(mode, size, grounds)
    draw = ImageDraw.Draw(image)
    draw.text((30, 2), "Harvest 43 68 57", fill=ink)
    draw.line((8, 80, 112, 80), fill=ink, width=2)
    return image


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def levels(image: Image.Image) -> np.ndarray[Any, Any]:
    return np.asarray(image.convert("L")).astype(float)


def deep(array: Any, kind: str = "TIFF", **options: Any) -> bytes:
    return saved(Image.fromarray(array), kind, **options)


def tiff(
    array: Any, *, bits: int, sample_format: int | None = None, compression: int = 1, body: bytes | None = None
) -> bytes:
    """A TIFF of one strip, by hand: of kinds that Pillow does not write. ``array``'s type says the order of the bytes."""
    order = ">" if array.dtype.byteorder == ">" else "<"
    height, width, *channels = array.shape
    count = channels[0] if channels else 1
    body = array.tobytes() if body is None else body
    tags = [(256, 4, width), (257, 4, height), (259, 3, compression), (262, 3, 2 if count == 3 else 1)]
    tags += [(273, 4, 8 + 6 * count), (277, 3, count), (278, 4, height), (279, 4, len(body))]
    if sample_format is not None:
        tags.append((339, 3, sample_format))
    entries = [
        struct.pack(order + ("HHIHxx" if kind == 3 else "HHII"), tag, kind, 1, value) for tag, kind, value in tags
    ]
    bit_counts = struct.pack(f"{order}{count}H", *[bits] * count).ljust(6 * count, b"\0")
    entries.insert(
        2,
        struct.pack(order + "HHI", 258, 3, count)
        + (struct.pack(order + "I", 8) if count > 2 else bit_counts[:4].ljust(4, b"\0")),
    )
    head = (b"MM\0*" if order == ">" else b"II*\0") + struct.pack(order + "I", 8 + 6 * count + len(body))
    return head + bit_counts + body + struct.pack(order + "H", len(entries)) + b"".join(entries) + bytes(4)


def png(width: int, height: int, depth: int, kind: int, rows: list[bytes], *chunks: tuple[bytes, bytes]) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
    extra = b"".join(chunk(name, body) for name, body in chunks)
    pixels = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return b"\x89PNG\r\n\x1a\n" + header + extra + pixels + chunk(b"IEND", b"")


LEVELS = levels(chart())
"""The grey levels of the chart, of 0 to 255."""


# --- transparency ------------------------------------------------------------------------------------


def transparent(ink: tuple[int, ...], *others: tuple[int, ...]) -> Image.Image:
    image = chart((0, 0, 0, 0), ink, "RGBA")
    for number, other in enumerate(others):
        ImageDraw.Draw(image).text((10, 20 + 15 * number), "43 68 57 kale", fill=other)
    return image


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize(
    ("ink", "others", "ground"),
    [
        ((255, 255, 255, 255), (), BLACK),
        ((0, 0, 0, 255), (), WHITE),
        ((255, 255, 255, 110), (), BLACK),
        ((0, 0, 0, 110), (), WHITE),
        ((255, 255, 230, 255), ((200, 60, 60, 255),), BLACK),
        ((40, 40, 40, 255), ((200, 60, 60, 255),), WHITE),
        ((255, 255, 255, 255), ((0, 0, 0, 255), (5, 5, 5, 255)), GREY),
    ],
)
def test_a_transparent_drawing_is_laid_on_a_ground_that_shows_it(
    kind: str, ink: tuple[int, ...], others: tuple[tuple[int, ...], ...], ground: tuple[int, ...]
) -> None:
    options = {"lossless": True, "exact": True} if kind == "WEBP" else {}
    decoded = examine_image(saved(transparent(ink, *others), kind, **options))
    assert decoded.image.getpixel((0, 0)) == ground
    assert np.ptp(levels(decoded.image)) > 60
    assert not decoded.warnings
    assert any(name in note for name in ("white", "black", "grey") if GROUNDS[name] == ground for note in decoded.notes)


def labelled(*inks: tuple[int, int, int], hard_edges_on: tuple[int, int, int] | None = None) -> Image.Image:
    """Four bars with a value above them, and a line of text in each of ``inks``, on a transparent ground.

    With ``hard_edges_on``, the ground of that colour was made transparent, so that no pixel is half transparent.
    """
    image = Image.new("RGBA", (480, 320), (*(hard_edges_on or (0, 0, 0)), 255 * bool(hard_edges_on)))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(28)
    for at, fill in enumerate([(200, 40, 40), (40, 160, 60), (40, 80, 200), (230, 160, 20)]):
        draw.rectangle((40 + 105 * at, 230 - 30 * at, 110 + 105 * at, 310), fill=fill)
    for line, ink in enumerate(inks):
        coverage = Image.new("L", image.size)
        ImageDraw.Draw(coverage).text((20, 10 + 35 * line), f"Plot {line} = 402", fill=255, font=font)
        text = Image.new("RGBA", image.size, (*ink, 0))
        text.putalpha(coverage)
        image = Image.alpha_composite(image, text)
    if hard_edges_on:
        array = np.array(image)
        array[(array[..., :3] == hard_edges_on).all(-1), 3] = 0
        image = Image.fromarray(array)
    return image


@pytest.mark.parametrize(
    ("inks", "hard_edges_on", "grounds"),
    [
        ([(255, 255, 200)], None, (BLACK,)),
        ([(255, 255, 200)], BLACK, (BLACK,)),
        ([WHITE], BLACK, (BLACK,)),
        ([BLACK], WHITE, (WHITE,)),
        ([(60, 60, 60)], None, (WHITE,)),
        ([BLACK, WHITE], None, (GREY,)),
        ([BLACK, WHITE], WHITE, (GREY,)),
        ([BLACK, WHITE, GREY], None, (GROUNDS["light grey"], GROUNDS["dark grey"])),
    ],
)
def test_no_part_of_a_drawing_is_lost_on_the_ground(
    inks: list[tuple[int, int, int]], hard_edges_on: tuple[int, int, int] | None, grounds: tuple[Any, ...]
) -> None:
    if hard_edges_on == WHITE and WHITE in inks:
        image = Image.alpha_composite(labelled(BLACK, hard_edges_on=WHITE), labelled((0, 0, 0), WHITE))
    else:
        image = labelled(*inks, hard_edges_on=hard_edges_on)
    decoded = examine_image(saved(image))
    assert decoded.image.getpixel((479, 0)) in grounds
    assert decoded.warnings == ()


def test_a_drawing_that_no_ground_shows_is_a_warning() -> None:
    inks = [(level, level, level) for level in (0, 64, 128, 192, 255)]
    assert PARTLY_UNSEEN in examine_image(saved(labelled(*inks))).warnings


def test_a_window_with_its_shadow_and_pale_grid_lines_stay_on_white() -> None:
    window = Image.new("RGBA", (520, 360), (0, 0, 0, 60))
    window.paste(chart(size=(480, 320)), (20, 20))
    grid = labelled((60, 60, 60))
    for y in range(60, 230, 40):
        ImageDraw.Draw(grid).line((0, y, 480, y), fill=(235, 235, 235, 255))
    for image in (window, grid):
        decoded = examine_image(saved(image))
        assert "white" in decoded.notes[0]
        assert decoded.warnings == ()


def test_a_white_palette_colour_on_a_transparent_one_is_seen() -> None:
    image = chart(1, 0, "P")
    image.putpalette([255, 255, 255, 0, 0, 0])
    for transparency in (1, bytes([255, 0])):
        assert np.ptp(levels(load_image(saved(image, transparency=transparency)))) == 255
    assert np.ptp(levels(load_image(saved(image, "GIF", transparency=1)))) == 255


@pytest.mark.parametrize("depth", [2, 4, 8])
def test_transparent_level_of_a_few_bits(depth: int) -> None:
    """White is drawn, and a darker level is transparent, which a PNG names in its own bits."""
    top = 2**depth - 1
    per_byte = 8 // depth
    drawn = sum(top << (depth * place) for place in range(per_byte))
    clear = sum((top - 1) << (depth * place) for place in range(per_byte))
    rows = [bytes([drawn if x % 2 else clear for x in range(8)]) for _ in range(20)]
    key = (b"tRNS", struct.pack(">H", top - 1))
    assert np.ptp(levels(load_image(png(8 * per_byte, 20, depth, 0, rows, key)))) == 255


@pytest.mark.parametrize("kind", [0, 2])
def test_transparent_level_of_sixteen_bits(kind: int) -> None:
    channels = 1 if kind == 0 else 3
    values = np.where(LEVELS < 128, 65535, 30000).astype(">u2")  # white ink on a transparent level
    rows = [np.repeat(row[:, None], channels, 1).tobytes() for row in values]
    key = (b"tRNS", struct.pack(">H", 30000) * channels)
    shown = levels(load_image(png(120, 90, 16, kind, rows, key)))
    assert np.ptp(shown) == 255


def test_transparent_corners_of_a_screenshot_stay_white() -> None:
    image = chart(mode="RGBA")
    for corner in ((0, 0), (119, 0), (0, 89), (119, 89)):
        ImageDraw.Draw(image).circle(corner, 6, fill=(0, 0, 0, 0))
    assert load_image(saved(image)).getpixel((0, 0)) == WHITE


def test_an_opaque_alpha_channel_is_no_news() -> None:
    assert examine_image(saved(chart().convert("RGBA"))).notes == ()


# --- levels of more than 8 bits --------------------------------------------------------------------


DEEP = {
    "float of 0 to 1": deep((LEVELS / 255).astype(np.float32)),
    "float of 0 to 255": deep(LEVELS.astype(np.float32)),
    "float that resampling made": deep((LEVELS / 255 * 1.06 - 0.03).astype(np.float32)),
    "float of -1 to 1": deep((LEVELS / 127.5 - 1).astype(np.float32)),
    "float of temperatures": deep((LEVELS / 10 + 280).astype(np.float32)),
    "float of 0 to 65535": deep((LEVELS * 257).astype(np.float32)),
    "int32 of 0 to 255": deep(LEVELS.astype(np.int32)),
    "int32 of 0 to 65535": deep((LEVELS * 257).astype(np.int32)),
    "int32 of 31 bits": deep((LEVELS * 2**23).astype(np.int32)),
    "int32 of both signs": deep((LEVELS * 1000 - 100_000).astype(np.int32)),
    "16 bits": deep((LEVELS * 257).astype(np.uint16)),
    "16 bits, PNG": deep((LEVELS * 257).astype(np.uint16), "PNG"),
    "12 of 16 bits": deep((LEVELS * 16).astype(np.uint16)),
    "12 of 16 bits, PNG": deep((LEVELS * 16).astype(np.uint16), "PNG"),
    "10 of 16 bits": deep((LEVELS * 4).astype(np.uint16)),
    "8 of 16 bits": deep(LEVELS.astype(np.uint16)),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_levels_are_those_of_the_chart(name: str) -> None:
    decoded = examine_image(DEEP[name])
    assert np.abs(levels(decoded.image) - LEVELS).max() <= 16, name  # resampling exceeds the range by a sixteenth
    assert not decoded.warnings


def test_signed_sixteen_bits() -> None:
    image = Image.open(io.BytesIO(deep(((LEVELS - 128) * 256).astype(np.int16).view(np.uint16))))
    signed = saved(image, "TIFF", tiffinfo={339: 2})
    assert np.abs(levels(load_image(signed)) - LEVELS).max() <= 2


def test_not_a_number_is_black_and_hides_nothing() -> None:
    array = (LEVELS / 255).astype(np.float32)
    array[:5], array[5:8] = np.nan, np.inf
    shown = levels(load_image(deep(array)))
    assert (shown[:5] == 0).all()
    assert np.abs(shown[8:] - LEVELS[8:]).max() <= 1


def with_outlier(array: Any, level: float, pixels: int = 1) -> Any:
    """``array`` with ``level`` in its first pixels."""
    array = array.copy()
    array.ravel()[:pixels] = level
    return array


FLOATS, WORDS = (LEVELS / 255).astype(np.float32), (LEVELS * 16).astype(np.uint16)

OUTLIERS = {
    "one hot pixel of 1e6": with_outlier(FLOATS, 1e6),
    "one hot pixel of 100": with_outlier(FLOATS, 100),
    "a cold and a hot pixel": with_outlier(with_outlier(LEVELS.astype(np.float32), 1e9, 2), -1e9),
    "hot pixels of temperatures": with_outlier((LEVELS / 10 + 280).astype(np.float32), 60_000, 5),
    "-9999": with_outlier(LEVELS.astype(np.float32), -9999, 960),
    "-3.4e38": with_outlier(FLOATS, float(np.finfo(np.float32).min), 960),
    "1e38": with_outlier(LEVELS.astype(np.float32) * 4, 1e38, 960),
    "infinity": with_outlier(FLOATS, np.inf, 960),
    "two fills": with_outlier(with_outlier(FLOATS, 1e30, 960), -999, 500),
    "-32768": with_outlier(LEVELS.astype(np.int32), -32768, 960),
    "a hot pixel of 16 bits": with_outlier(WORDS, 65535),
    "16 bits, 65535": with_outlier(WORDS, 65535, 960),
}


@pytest.mark.parametrize("name", OUTLIERS)
def test_outlying_and_missing_pixels_do_not_hide_the_chart(name: str) -> None:
    decoded = examine_image(deep(OUTLIERS[name]))
    assert np.abs(levels(decoded.image)[8:] - LEVELS[8:]).max() <= 2
    assert decoded.notes
    assert not decoded.warnings


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_what_a_file_declares_as_missing_is_no_level(dtype: Any) -> None:
    image = Image.fromarray(with_outlier(LEVELS + 300, -7, 3000).astype(dtype))
    decoded = examine_image(saved(image, "TIFF", tiffinfo={42113: "-7"}))
    bright = levels(decoded.image)[30:]
    assert np.ptp(bright) == 255 if dtype is np.float32 else np.ptp(bright) > 60
    assert any("-7" in note for note in decoded.notes)


@pytest.mark.parametrize("ink", [0, 1])
def test_ink_on_missing_data_is_seen(ink: float) -> None:
    """A plot of which only the ink has a value, as plots and masks are saved."""
    array = np.where(LEVELS < 128, ink, np.nan).astype(np.float32)
    array[60:70, 20:60] = 0.5
    assert np.ptp(levels(load_image(deep(array)))[:14]) > 100


@pytest.mark.parametrize("level", [0, 1000])
def test_a_few_dark_pixels_on_an_even_ground_are_a_picture(level: int) -> None:
    array = np.full((400, 400), 20_000, np.int32)
    array[100:108, 100:102] = level
    assert np.ptp(levels(load_image(deep(array)))) > 100


@pytest.mark.parametrize("order", "<>")
def test_thirty_two_bits_without_a_sign(order: str) -> None:
    """Pillow reads them as with a sign, or not at all."""
    words = (LEVELS * 16_843_009).astype(order + "u4")
    data = tiff(words, bits=32, sample_format=None)
    if order == ">":
        with pytest.raises(MediaError, match="big-endian 32-bit"):
            load_image(data)
    else:
        decoded = examine_image(data)
        assert np.abs(levels(decoded.image) - LEVELS).max() <= 1
        assert any("32 bits" in note for note in decoded.notes)


@pytest.mark.parametrize("level", [1, 700])
def test_nearly_blank_is_a_warning(level: float) -> None:
    array = np.full((300, 300), 5, np.float32 if level > 1 else np.int32)
    array[0, :20] = level + 10_000
    assert NEARLY_BLANK in examine_image(deep(array)).warnings


def test_three_pixels_that_stand_out_are_no_picture_and_a_small_number_is_one() -> None:
    image = Image.new("RGB", (2000, 1500), "white")
    image.putpixel((700, 700), BLACK)
    assert NEARLY_BLANK in examine_image(saved(image)).warnings
    ImageDraw.Draw(image).text((900, 700), "= 43", fill=BLACK)
    assert examine_image(saved(image)).warnings == ()


def test_a_scale_of_its_own_is_named() -> None:
    assert any("280" in note for note in examine_image(DEEP["float of temperatures"]).notes)
    assert any("12 bits" in note for note in examine_image(DEEP["12 of 16 bits"]).notes)
    assert examine_image(DEEP["16 bits"]).notes == examine_image(DEEP["float of 0 to 1"]).notes == ()


# --- what shows nothing --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        saved(Image.new("RGB", (64, 48), "red")),
        saved(Image.new("RGB", (64, 48), "red"), "JPEG"),
        saved(Image.new("RGBA", (64, 48), (0, 0, 0, 0))),
        saved(Image.fromarray(np.dstack([np.asarray(chart()), np.zeros((90, 120), np.uint8)]))),
        deep(np.zeros((48, 64), np.float32)),
        deep(np.full((48, 64), np.nan, np.float32)),
        deep(np.full((48, 64), 7, np.uint16)),
        saved(chart((250, 250, 250), (255, 255, 255))),
    ],
)
def test_one_colour_is_a_warning_before_and_after_conversion(data: bytes) -> None:
    assert ONE_COLOUR in examine_image(data).warnings


def colours(scale: int, channels: int, kind: str) -> bytes:
    """A chart of 16 bits a channel that uses as few of them as ``scale`` says."""
    array = (np.asarray(labelled(BLACK, hard_edges_on=WHITE).convert("RGB")).astype(int) * scale).astype(np.uint16)
    if channels == 4:
        array = np.dstack([array, np.full(array.shape[:2], 65535, np.uint16)])
    if channels == 2:
        array = np.dstack([array[..., 1], np.full(array.shape[:2], 65535, np.uint16)])
    if kind == "PNG":
        rows = [row.astype(">u2").tobytes() for row in array]
        return png(480, 320, 16, {2: 4, 3: 2, 4: 6}[channels], rows)
    compression = 1 if kind == "raw" else 8
    body = array.astype("<u2").tobytes()
    return tiff(
        array.astype("<u2"), bits=16, compression=compression, body=zlib.compress(body) if compression > 1 else body
    )


@pytest.mark.parametrize(("channels", "kind"), [(3, "PNG"), (4, "PNG"), (3, "raw"), (3, "deflate")])
@pytest.mark.parametrize(("scale", "bits"), [(1, 8), (4, 10), (16, 12)])
def test_few_bits_a_channel_in_sixteen_are_scaled(channels: int, kind: str, scale: int, bits: int) -> None:
    decoded = examine_image(colours(scale, channels, kind))
    shown = np.asarray(labelled(BLACK, hard_edges_on=WHITE).convert("RGB")).astype(float)
    assert np.abs(np.asarray(decoded.image) - shown).max() <= 1
    assert any(f"{bits} of 16 bits" in note for note in decoded.notes)
    assert decoded.warnings == ()


@pytest.mark.parametrize("channels", [3, 4])
def test_full_range_a_channel_is_left(channels: int) -> None:
    assert examine_image(colours(257, channels, "PNG")).notes == ()
    assert examine_image(colours(64, channels, "PNG")).notes == ()


def test_few_bits_that_cannot_be_scaled_are_a_warning_that_says_so() -> None:
    (warning,) = examine_image(colours(16, 2, "PNG")).warnings
    assert "12 of 16 bits" in warning


@pytest.mark.parametrize("size", [(1, 3000), (20_000, 3), (1093, 5), (1, 1), (4000, 16)])
def test_a_line_is_a_warning(size: tuple[int, int]) -> None:
    assert NARROW in examine_image(saved(Image.effect_noise(size, 90).convert("RGB"))).warnings


@pytest.mark.parametrize(
    ("kind", "warning"), [("GIF", FIRST_FRAME), ("WEBP", FIRST_FRAME), ("PNG", FIRST_FRAME), ("TIFF", FIRST_PAGE)]
)
def test_of_several_pictures_the_first_is_shown_with_a_warning(kind: str, warning: str) -> None:
    other = Image.new("RGB", (120, 90), "red")
    decoded = examine_image(saved(chart(), kind, save_all=True, append_images=[other]))
    assert decoded.warnings == (warning,)
    assert np.abs(levels(decoded.image) - LEVELS).mean() < 8
    assert examine_image(saved(chart(), kind)).warnings == ()


def test_phone_photo_with_a_second_picture_is_no_news() -> None:
    data = saved(chart(), "MPO", save_all=True, append_images=[Image.new("RGB", (120, 90), "red")])
    assert examine_image(data).warnings == ()


# --- what is no picture -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", EMPTY),
        (bytes(5000), ZEROS),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1234\n", LFS_POINTER),
        (b"<!DOCTYPE html><html>404</html>", WEB_PAGE),
        (b"\xef\xbb\xbf\r\n  <!-- error -->\n<HTML lang=en><body><svg></svg></body></HTML>", WEB_PAGE),
        ("<html><p>nichts gefunden</p></html>".encode("utf-16"), WEB_PAGE),
        (b'{"error": "not found"}', TEXT),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', TEXT),
        ("Kein Bild: zurück".encode(), TEXT),
        (b"data:image/png;base64,iVBORw0KGgoAAAANSUhEUg", BASE64),
        (b"/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBg", BASE64),
        (b"%PDF-1.7\n...", PDF),
    ],
)
def test_reason_and_advice_fit_what_the_file_is(data: bytes, reason: str) -> None:
    for read in (load_image, shown_image):
        with pytest.raises(MediaError) as caught:
            read(data)
        assert caught.value.reason == reason


def brands(*names: bytes) -> bytes:
    body = b"ftyp" + names[0] + bytes(4) + b"".join(names[1:])
    return struct.pack(">I", len(body) + 4) + body + bytes(200)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (brands(b"heic", b"mif1", b"heic"), "HEIC"),
        (brands(b"mif1", b"mif1", b"heic"), "HEIC"),
        (brands(b"mif1", b"avif", b"miaf"), "AVIF"),
        (brands(b"avif", b"avif"), "AVIF"),
        (brands(b"isom", b"mp41"), "video"),
        (b'<?xml version="1.0"?>\n<!-- drawn --><svg xmlns="http://www.w3.org/2000/svg"><script/></svg>', "SVG"),
        (b"8BPS\0\1", "Photoshop"),
        (b"\xff\x0a\0", "JPEG XL"),
        (b"PK\x03\x04...", "ZIP"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript"),
    ],
)
def test_a_format_that_is_not_read_is_named(data: bytes, name: str) -> None:
    with pytest.raises(MediaError, match=name):
        load_image(data)


BYTES, COLOUR = LEVELS.astype(np.uint8), np.asarray(chart())


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (tiff(LEVELS, bits=64, sample_format=3), "64-bit floats"),
        (tiff(LEVELS.astype(np.float16), bits=16, sample_format=3), "16-bit floats"),
        (tiff((COLOUR / 255).astype(np.float32), bits=32, sample_format=3), "32-bit floats in 3 channels"),
        (tiff(LEVELS.astype(np.complex64), bits=64, sample_format=6), "64-bit complex floats"),
        (tiff(BYTES, bits=8, compression=50001, body=b"RIFF" + bytes(90)), "WebP compression"),
        (tiff(BYTES, bits=8, compression=34712, body=bytes(90)), "JPEG 2000 compression"),
        (tiff(BYTES, bits=8, compression=41234, body=bytes(90)), "unknown"),
        (b"II+\0\x08\0\0\0" + bytes(90), "BigTIFF"),
    ],
)
def test_a_tiff_of_a_kind_that_is_not_read_is_named(data: bytes, name: str) -> None:
    with pytest.raises(MediaError, match=name) as caught:
        load_image(data)
    assert "PNG" in caught.value.reason


@pytest.mark.parametrize("share", [0.02, 0.4, 0.97])
def test_a_truncated_tiff_is_still_damaged(share: float) -> None:
    whole = saved(chart(), "TIFF", compression="tiff_deflate")
    with pytest.raises(MediaError) as caught:
        load_image(whole[: int(share * len(whole))])
    assert caught.value.reason == DAMAGED


@pytest.mark.parametrize("subfile", [1, 4])
def test_a_thumbnail_or_a_mask_is_no_second_page(subfile: int) -> None:
    small = chart().resize((40, 30))
    small.encoderinfo = {"tiffinfo": {254: subfile}}
    other = chart()
    other.encoderinfo = {}
    first = saved(chart(), "TIFF", save_all=True, append_images=[small])
    assert examine_image(first).warnings == ()
    both = saved(chart(), "TIFF", save_all=True, append_images=[small, other])
    assert examine_image(both).warnings == (FIRST_PAGE,)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 100, "subsampling": 0}])
@pytest.mark.parametrize("lacking", [1, 2])
def test_a_jpeg_without_its_end_is_shown_whole(options: dict[str, Any], lacking: int) -> None:
    whole = saved(chart(), "JPEG", **options)
    assert load_image(whole[:-lacking]) == load_image(whole)
    for lost in (12, 40, len(whole) // 2):
        with pytest.raises(MediaError) as caught:
            load_image(whole[:-lost])
        assert caught.value.reason == DAMAGED


# --- colours -----------------------------------------------------------------------------------------


def profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def pixel(image: Image.Image, x: int, y: int) -> tuple[int, int, int]:
    red, green, blue = np.asarray(image)[y, x].tolist()
    return red, green, blue


def swapped_profile() -> bytes:
    """The profile of a display whose red is green and whose green is red."""
    data = profile()
    count = struct.unpack(">I", data[128:132])[0]
    names = {b"rXYZ": b"gXYZ", b"gXYZ": b"rXYZ"}
    table = bytearray(data)
    for at in range(132, 132 + 12 * count, 12):
        name = bytes(table[at : at + 4])
        table[at : at + 4] = names.get(name, name)
    return bytes(table)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_a_colour_profile_is_converted_when_own_pictures_are_built(kind: str) -> None:
    picture = chart(ink=(255, 0, 0))
    options = {"lossless": True} if kind == "WEBP" else {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    data = saved(picture, kind, icc_profile=swapped_profile(), **options)
    shown = shown_image(data)
    assert image_suffix(shown) == ".png"
    red, green, _ = pixel(load_image(shown), 50, 80)
    assert green > 200 > 60 > red
    assert pixel(load_image(data), 50, 80)[0] > 240  # what older builds hold looks as it did


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_what_needs_no_conversion_keeps_its_bytes(mode: str) -> None:
    picture = chart().convert(mode)
    for data in (saved(picture), saved(picture, icc_profile=profile()), saved(picture, icc_profile=b"no profile")):
        assert shown_image(data) is data


def test_a_linear_picture_is_lightened_as_browsers_do() -> None:
    rows = [row.astype(np.uint8).tobytes() for row in np.full((20, 20), 55)]
    linear = png(20, 20, 8, 0, rows, (b"gAMA", struct.pack(">I", 100_000)))
    assert pixel(load_image(shown_image(linear)), 5, 5)[0] == pytest.approx(127, abs=3)
    for gamma in (45_455, 0):
        usual = png(20, 20, 8, 0, rows, (b"gAMA", struct.pack(">I", gamma)))
        assert shown_image(usual) is usual


def test_a_deep_negative_is_no_longer_one() -> None:
    data = bytearray(deep((LEVELS * 257).astype(np.uint16)))
    at = data.index(struct.pack("<HHI", 262, 3, 1)) + 8
    data[at : at + 2] = b"\0\0"
    assert np.abs(levels(load_image(shown_image(bytes(data)))) - (255 - LEVELS)).max() <= 1


# --- every mode that Pillow writes --------------------------------------------------------------------

FORMATS = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "TIFF": ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "I;16", "I;16B", "I", "F"),
    "JPEG": ("1", "L", "RGB", "CMYK", "YCbCr"),
    "WEBP": ("L", "LA", "RGB", "RGBA"),
    "GIF": ("1", "L", "P", "RGB", "RGBA"),
    "BMP": ("1", "L", "P", "RGB", "RGBA"),
}


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([(kind, mode) for kind, modes in FORMATS.items() for mode in modes]), st.data())
def test_a_chart_in_any_mode_has_its_luminance_or_is_refused(place: tuple[str, str], data: st.DataObject) -> None:
    kind, mode = place
    dark, light = data.draw(st.integers(0, 80)), data.draw(st.integers(170, 255))
    bars = data.draw(st.lists(st.integers(5, 70), min_size=1, max_size=4))
    grey = Image.new("L", (96, 80), light)
    for number, height in enumerate(bars):
        ImageDraw.Draw(grey).rectangle((8 + 22 * number, 76 - height, 22 + 22 * number, 76), fill=dark)
    if mode in ("LAB", "YCbCr", "CMYK", "RGBX"):
        image = grey.convert("RGB").convert(mode)
    elif mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(grey).astype(">u2" if mode == "I;16B" else "<u2")) * 257)
    elif mode == "1":
        image = grey.point(lambda level: 255 * (level > 128)).convert("1")
        grey = image.convert("L")
    else:
        image = grey.convert(mode)
    shown = levels(load_image(saved(image, kind, **({"quality": 95} if kind in ("JPEG", "WEBP") else {}))))
    assert np.abs(shown - np.asarray(grey)).mean() <= 4
