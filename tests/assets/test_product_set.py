"""The product set is what its script draws, small, and legible where boxes say that something is to be read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from assets.products.recipe.draw_products import draw

SET = Path(__file__).resolve().parents[2] / "assets" / "products"


def _images(folder: Path) -> dict[str, Image.Image]:
    return {file.name: Image.open(file).convert("RGB") for file in sorted((folder / "images").iterdir())}


@pytest.mark.slow
def test_the_script_draws_the_set_again(tmp_path: Path) -> None:
    draw(tmp_path)
    for name in ("products.jsonl", "brands.jsonl"):
        assert (tmp_path / name).read_bytes() == (SET / name).read_bytes()
    shipped, drawn = _images(SET), _images(tmp_path)
    assert list(shipped) == list(drawn)
    for name, image in drawn.items():
        # Another FreeType may draw the edges of letters otherwise.
        difference = np.abs(np.asarray(image, float) - np.asarray(shipped[name], float)).mean()
        assert difference < 2, name


def test_the_set_is_small() -> None:
    files = [file for file in SET.rglob("*") if file.is_file() and "recipe" not in file.parts]
    assert sum(file.stat().st_size for file in files) < 500_000
    assert "CC0" in (SET / "LICENSE").read_text("utf-8")


def test_every_box_has_content_and_lies_in_its_picture() -> None:
    for line in (SET / "products.jsonl").read_text("utf-8").splitlines():
        product = json.loads(line)
        for entry in product["images"]:
            pixels = np.asarray(Image.open(SET / entry["file"]).convert("L"), float)
            for box in entry["boxes"]:
                x0, y0, x1, y1 = box["box"]
                assert 0 <= x0 < x1 <= pixels.shape[1]
                assert 0 <= y0 < y1 <= pixels.shape[0]
                inside = pixels[y0:y1, x0:x1]
                assert inside.max() - inside.min() > 25, (product["id"], entry["view"], box)


def test_brands_have_distinct_logos() -> None:
    seen: dict[bytes, str] = {}
    for line in (SET / "products.jsonl").read_text("utf-8").splitlines():
        product = json.loads(line)
        for entry in product["images"]:
            if entry["kind"] == "logo":
                assert seen.setdefault((SET / entry["file"]).read_bytes(), product["id"]) == product["id"]
