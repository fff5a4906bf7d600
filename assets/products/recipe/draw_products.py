"""Drawing of the product set: `python -m assets.products.recipe.draw_products FOLDER` writes pictures and their JSON Lines.

Nothing is random, so that it needs no seed: the same pixels on every machine with the same Pillow.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

from assets.products.recipe.product_catalogue import BRANDS, ITEMS
from assets.products.recipe.product_pictures import Picture, pictures


def draw(folder: Path) -> None:
    """Write the set into ``folder``."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    number = 0
    for item in ITEMS:
        images = []
        for picture in pictures(item):
            number += 1
            # A number says nothing of what is shown.
            name = f"images/{number:03d}.png"
            (folder / name).write_bytes(_png(picture))
            images.append(_entry(name, picture))
        rows.append(
            {
                "id": item.id,
                "title": item.title,
                "description": item.description,
                "brand": item.brand or None,
                "category": item.category,
                "spu": item.spu,
                "price": {"amount": item.price, "currency": "USD"},
                "attributes": item.attributes,
                "images": images,
            }
        )
    _write(folder / "products.jsonl", rows)
    _write(folder / "brands.jsonl", [{"brand": brand.name, "categories": list(brand.categories)} for brand in BRANDS])


def _entry(name: str, picture: Picture) -> dict[str, Any]:
    boxes = [{"attribute": attribute, "value": value, "box": list(box)} for attribute, value, box in picture.labels]
    return {"file": name, "view": picture.view, "kind": picture.kind, "boxes": boxes}


def _png(picture: Picture) -> bytes:
    data = io.BytesIO()
    picture.image.save(data, "PNG", optimize=True)
    return data.getvalue()


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
