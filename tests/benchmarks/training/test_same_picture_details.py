"""Charts of one template with other values are no copies; a picture encoded anew, resized or cropped is one."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from PIL import Image, ImageDraw, ImageFont

from benchmarks.training.same_picture_details import is_one_picture
from benchmarks.training.same_picture_hash import ImageIndex

Draw = Callable[[tuple[int, ...]], Image.Image]
WHOLE = (0.0, 0.0, 1.0)


def pie(values: tuple[int, ...]) -> Image.Image:
    """A pie with a legend of its values."""
    image = Image.new("RGB", (400, 300), "white")
    draw, start, font = ImageDraw.Draw(image), 0.0, ImageFont.load_default(12)
    for number, value in enumerate(values):
        end = start + 360 * value / sum(values)
        draw.pieslice((60, 40, 280, 260), start, end, fill=("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728")[number])
        draw.text((330, 200 + 20 * number), f"{number}: {value}", "black", font)
        start = end
    return image


def table(values: tuple[int, ...]) -> Image.Image:
    """A table with a column of numbers."""
    image = Image.new("RGB", (400, 300), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(14)
    for number, value in enumerate(values):
        draw.rectangle((50, 60 + 30 * number, 350, 90 + 30 * number), outline="black")
        draw.text((60, 66 + 30 * number), ("north", "south", "east", "west")[number], "black", font)
        draw.text((320, 66 + 30 * number), str(value), "black", font)
    return image


def encoded(image: Image.Image, quality: int) -> Image.Image:
    data = io.BytesIO()
    image.save(data, "JPEG", quality=quality)
    return Image.open(data).convert("RGB")


@pytest.mark.parametrize("draw", [pie, table])
@pytest.mark.parametrize("others", [(31, 52, 47, 70), (31, 52, 47, 76), (88, 23, 61, 45)])
def test_other_values_in_one_template_are_another_picture(draw: Draw, others: tuple[int, ...]) -> None:
    chart = draw((31, 52, 47, 71) if draw is pie and others[3] == 76 else (31, 52, 47, 78))
    assert not is_one_picture(draw(others), chart, WHOLE)
    assert not is_one_picture(encoded(draw(others), 60), chart, WHOLE)


@pytest.mark.parametrize("draw", [pie, table])
def test_a_copy_is_the_same_picture(draw: Draw) -> None:
    chart = draw((31, 52, 47, 78))
    width, height = chart.size
    copies = [
        encoded(chart, 30),
        chart.resize((width // 2, height // 2)),
        encoded(chart.resize((width * 2, height * 2)), 60),
    ]
    assert all(is_one_picture(copy, chart, WHOLE) for copy in copies)
    crop = chart.crop((12, 9, 392, 294))
    index = ImageIndex()
    index.add(chart, 0)
    (match,) = index.find(crop)
    assert is_one_picture(crop, chart, match.window)
