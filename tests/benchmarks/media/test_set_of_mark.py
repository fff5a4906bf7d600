"""Set-of-mark: boxes and labels on any image, and stores from before there were marks."""

from __future__ import annotations

import hashlib
import io
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageDraw

from benchmarks.media import load_image
from benchmarks.media import set_of_mark as module
from benchmarks.media.set_of_mark import draw_marks
from benchmarks.vocabulary import (
    Decoding,
    Mark,
    Media,
    Message,
    Request,
    Text,
    digest,
    part_from_json,
    part_to_json,
)
from mlx_backends.remote.remote_media import EncodedMedia

COCO = Path(__file__).resolve().parents[4] / "shared" / "data" / "clash" / "coco"
MARKS = (Mark("brand logo", (0.1, 0.1, 0.5, 0.5)), Mark("price tag", (0.3, 0.3, 0.8, 0.8)))


def scaled(width: int, height: int, marks: tuple[Mark, ...] = MARKS) -> tuple[Mark, ...]:
    def box(mark: Mark) -> tuple[float, float, float, float]:
        x0, y0, x1, y1 = mark.box
        return x0 * width, y0 * height, x1 * width, y1 * height

    return tuple(Mark(mark.label, box(mark)) for mark in marks)


def png(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def placed(image: Image.Image, marks: tuple[Mark, ...], monkeypatch: pytest.MonkeyPatch) -> list[module.Box]:
    """Return the places of the labels."""
    places: list[module.Box] = []
    place = module._place

    def noted(*arguments: Any) -> module.Box:
        places.append(place(*arguments))
        return places[-1]

    monkeypatch.setattr(module, "_place", noted)
    draw_marks(image, marks, *image.size)
    return places


def test_medium_without_marks_keeps_its_old_digest() -> None:
    media = Media("ab", ".png")
    assert part_to_json(media) == {"sha256": "ab", "suffix": ".png", "modality": "image"}
    request = Request("i", 0, (Message("user", (media, Text("What?"))),), Decoding())
    # As it was computed before media had marks.
    assert request.digest == "f21f08c4c8809be388ebd1e7dc92816eb32e0718f08fa91e04a234e6042ff2b9"


def test_marks_are_stored_and_change_the_request() -> None:
    marked = Media("ab", ".png", marks=(Mark("logo", (1, 2, 3.5, 4)),))
    assert part_from_json(json.loads(json.dumps(part_to_json(marked)))) == marked
    assert digest(part_to_json(marked)) != digest(part_to_json(Media("ab", ".png")))


@pytest.mark.parametrize("size", [(64, 48), (4000, 3000), (30, 2000), (2000, 30), (8, 6), (640, 480)])
@pytest.mark.parametrize("background", ["white", "black", (255, 45, 45), "gray"])
def test_boxes_are_visible_on_any_background_and_nowhere_else(
    size: tuple[int, int], background: str | tuple[int, int, int]
) -> None:
    if max(size) > 2000 and background != "white":
        pytest.skip("one large picture is enough")
    plain = Image.new("RGB", size, background)
    marked = load_image(png(plain), None, scaled(*size, MARKS[:1]))
    assert marked.size == size
    changed = ImageChops.difference(marked, plain)
    assert changed.getbbox() is not None
    if min(size) >= 48:
        # The middle of the box stays as it is, and its upper edge holds both bright and dark pixels.
        assert marked.getpixel((size[0] * 3 // 10, size[1] * 3 // 10)) == plain.getpixel((0, 0))
        x = size[0] * 45 // 100
        column = [marked.getpixel((x, y)) for y in range(size[1] * 5 // 100, size[1] * 15 // 100)]
        assert (255, 45, 45) in column
        assert (0, 0, 0) in column


def test_labels_stay_inside_and_do_not_hide_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image.new("RGB", (400, 300), "white")
    crowd = tuple(Mark(f"region {i}", (150, 100, 250, 200)) for i in range(12))
    corners = (Mark("seal", (390, 290, 400, 300)), Mark("whole picture", (0, 0, 400, 300)))
    places = placed(image, (*crowd, *corners), monkeypatch)
    assert len(places) == 14
    assert all(0 <= x0 <= x1 < 400 and 0 <= y0 <= y1 < 300 for x0, y0, x1, y1 in places)
    assert not any(module._overlap(a, b) for a, b in combinations(places, 2))


def test_line_width_does_not_depend_on_scaling() -> None:
    large = Image.new("RGB", (2000, 1500), "white")
    small = Image.new("RGB", (200, 150), "white")
    scaled_image = load_image(png(large), 200 * 150, scaled(2000, 1500))
    assert scaled_image.size == (200, 150)
    assert scaled_image.tobytes() == load_image(png(small), None, scaled(200, 150)).tobytes()


def test_boxes_refer_to_the_upright_picture() -> None:
    image = Image.new("RGB", (100, 50), "white")
    exif = Image.Exif()
    exif[0x0112] = 6
    data = io.BytesIO()
    image.save(data, "JPEG", exif=exif)
    marked = load_image(data.getvalue(), None, (Mark("x", (5, 60, 45, 95)),))
    assert marked.size == (50, 100)
    assert marked.getpixel((20, 60)) == (255, 45, 45)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.lists(
        st.tuples(st.text(max_size=40), *(st.floats(-1e6, 1e6, allow_nan=False) for _ in range(4))),
        max_size=5,
    ),
)
def test_any_boxes_and_labels_can_be_drawn(
    width: int, height: int, given_marks: list[tuple[str, float, float, float, float]]
) -> None:
    image = Image.new("RGB", (width, height), "gray")
    marks = tuple(Mark(label, (x0, y0, x1, y1)) for label, x0, y0, x1, y1 in given_marks)
    assert draw_marks(image, marks, width, height).size == (width, height)


def test_a_remote_engine_is_sent_the_picture_with_its_marks(tmp_path: Path) -> None:
    data = png(Image.new("RGB", (200, 100), "white"))
    path = tmp_path / "x.png"
    path.write_bytes(data)
    media = Media(hashlib.sha256(data).hexdigest(), ".png")
    images = EncodedMedia(lambda media: path)
    marks = scaled(200, 100)
    plain = images.png(media, None)
    marked = images.png(Media(media.sha256, ".png", marks=marks), None)
    assert load_image(plain).tobytes() == load_image(data).tobytes()
    assert load_image(marked).tobytes() == load_image(data, None, marks).tobytes()
    assert plain != marked


@pytest.mark.skipif(not COCO.is_dir(), reason="the real photographs are not beside the project")
def test_only_lines_and_labels_change_a_photograph() -> None:
    photo = sorted((COCO / "train2017").glob("*.jpg"))[0]
    plain = load_image(photo)
    marks = scaled(*plain.size)
    marked = load_image(photo, None, marks)
    changed = ImageChops.difference(marked, plain).convert("L").point(lambda value: 255 * (value > 0))
    share = sum(changed.histogram()[255:]) / (plain.width * plain.height)
    assert 0.005 < share < 0.08
    for mark in marks:
        x0, y0, x1, y1 = (round(edge) for edge in mark.box)
        assert changed.getpixel((x0, (y0 + y1) // 2))
        assert changed.getpixel((x1, (y0 * 9 + y1) // 10))


def test_drawing_does_not_modify_its_input() -> None:
    image = Image.new("RGB", (50, 50), "white")
    ImageDraw.Draw(image).point((3, 3), fill="black")
    before = image.tobytes()
    draw_marks(image, scaled(50, 50), 50, 50)
    assert image.tobytes() == before
