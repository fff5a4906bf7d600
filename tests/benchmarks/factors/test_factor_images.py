"""Images at levels of legibility, and where marks stand on them."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from benchmarks.errors import SourceError, SpecError
from benchmarks.factors.decisive_regions import Regions
from benchmarks.factors.factor_images import change_image, image_levels
from benchmarks.vocabulary import Mark


def picture() -> bytes:
    """A white image of 80 x 60 with a black square from 40, 20 to 59, 39."""
    image = Image.new("RGB", (80, 60), "white")
    ImageDraw.Draw(image).rectangle((40, 20, 59, 39), fill="black")
    output = io.BytesIO()
    image.save(output, "PNG")
    return output.getvalue()


REGION = (40.0, 20.0, 60.0, 40.0)


def opened(**levels: str) -> Image.Image:
    return Image.open(io.BytesIO(change_image(picture(), ".png", levels, REGION).data)).convert("RGB")


def test_each_factor_does_what_it_says() -> None:
    assert opened(resolution="0.5").size == (40, 30)
    assert opened(crop="0.5:0:1:0.5").size == (40, 30)
    region = opened(crop="region")
    assert region.size == (20, 20)
    assert region.getextrema() == ((0, 0),) * 3  # nothing but the square
    half = opened(cover="0.5")
    assert half.getpixel((45, 30)) == (128, 128, 128)
    assert half.getpixel((55, 30)) == (0, 0, 0)
    assert half.getpixel((5, 5)) == (255, 255, 255)
    edge = opened(blur="3").getpixel((40, 30))
    assert isinstance(edge, tuple)
    assert 0 < edge[0] < 255
    assert change_image(picture(), ".png", {"jpeg": "10"}, None).data.startswith(b"\xff\xd8")


def test_a_region_that_was_cropped_away_is_not_covered() -> None:
    assert opened(crop="0:0:0.25:0.25", cover="1").getextrema() == ((255, 255),) * 3


def test_marks_stand_on_the_same_thing() -> None:
    changed = change_image(picture(), ".png", {"crop": "0.25:0:1:1", "resolution": "0.5"}, None)
    assert changed.move(Mark("1", REGION)).box == (10, 10, 20, 20)


def test_levels_that_change_nothing_are_no_levels() -> None:
    assert (
        image_levels({"blur": "0", "jpeg": "none", "resolution": "1", "crop": "none", "cover": "0", "length": "9"})
        == {}
    )


def test_regions_outside_the_image_are_refused() -> None:
    assert Regions.parse("0.5:0:1:1").of("0" * 64, (80, 60)) == (40, 0, 80, 60)
    for text in ("0:0:1:2", "1:0:0:1", "a", "nan:0:1:1"):
        with pytest.raises(SpecError):
            Regions.parse(text)
    with pytest.raises(SourceError):
        Regions(None, {"0" * 64: (0, 0, 81, 60)}).of("0" * 64, (80, 60))
    with pytest.raises(SourceError):
        Regions().of("0" * 64, (80, 60))


def test_an_image_of_which_no_pixel_changes_stays_the_same_file() -> None:
    data = picture()
    for levels in ({"crop": "0:0:1:1"}, {"crop": "region"}, {"resolution": "0.999"}):
        assert change_image(data, ".png", levels, (0, 0, *Image.open(io.BytesIO(data)).size)).data == data
    assert change_image(data, ".png", {"blur": "1"}, None).data != data
