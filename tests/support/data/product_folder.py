"""Folder of invented listings: many brands, styles with several SKUs, odd prices, and printed words that titles repeat."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from tests.support.data.small import write_lines

_CATEGORIES = ("kettle", "lamp", "mug", "bottle", "backpack", "shampoo", "headphones", "blanket", "clock", "stool")
_COLOURS = ("red", "green", "blue", "white", "black", "sand")
_WORDS = ("CALM", "WAVE", "RIDGE", "SHELL", "ARC", "GLOW", "MILD", "LIGHT", "SOUND", "HARD", "SOFT", "BRIGHT", "CLEAR")
_SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "va", "ze")


def write_products(
    folder: Path, *, styles: int, seed: int = 0, logos: int = 2, views: int = 2, frames: int = 2
) -> Path:
    """Write a folder of products with ``views`` pictures and ``frames`` each; a brand's first ``logos`` products have a logo."""
    random = Random(seed)
    names = [f"{a}{b}{c}".title() for a in _SYLLABLES[:5] for b in _SYLLABLES[5:] for c in ("ron", "lis")][
        : styles // 4
    ]
    brands = {name: random.sample(_CATEGORIES, random.randint(1, 4)) for name in names}
    drawn: dict[str, int] = dict.fromkeys(names, 0)
    rows: list[dict[str, Any]] = []
    number = 0

    def picture() -> str:
        nonlocal number
        number += 1
        file = folder / "images" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.frombytes("L", (40, 40), random.randbytes(1600)).save(file)
        return f"images/{number}.png"

    for style in range(styles):
        brand = random.choice(names)
        category, colour = random.choice(brands[brand]), random.choice(_COLOURS)
        words = " ".join(random.sample(_WORDS, random.randint(2, 4)))
        amount = round(random.lognormvariate(3, 1)) + random.choice((0, 0, 0.5, 0.95, 0.99)) + 2
        for volume in random.sample((250, 400, 750, 1000), random.randint(1, 3)):
            boxes = [
                ("brand", brand),
                ("product", category),
                ("colour", colour),
                ("text", words),
                ("volume", f"{volume} ml"),
            ]
            images = [
                {
                    "file": picture(),
                    "view": f"view-{view}",
                    "boxes": [
                        {"attribute": name, "value": value, "box": [1, 1 + 6 * i, 30, 6 + 6 * i]}
                        for i, (name, value) in enumerate(boxes)
                        if view == 0 or name in ("product", "colour")
                    ],
                }
                for view in range(views)
            ]
            box = [{"attribute": "brand", "value": brand, "box": [1, 1, 30, 30]}]
            if drawn[brand] < logos:
                drawn[brand] += 1
                images.append({"file": picture(), "view": "logo", "kind": "logo", "boxes": box})
            images += [
                {"file": picture(), "view": f"live-{frame}", "kind": "frame", "boxes": images[frame % views]["boxes"]}
                for frame in range(frames)
            ]
            rows.append(
                {
                    "id": f"p{len(rows)}",
                    "title": f"{brand} {words.title()} {category}, {colour}, {volume} ml",
                    "brand": brand,
                    "category": category,
                    "spu": f"style-{style}",
                    "price": {"amount": amount, "currency": "USD"},
                    "attributes": {"colour": colour, "volume": f"{volume} ml"},
                    "images": images,
                }
            )
    write_lines(folder / "products.jsonl", rows)
    write_lines(folder / "brands.jsonl", [{"brand": name, "categories": sold} for name, sold in brands.items()])
    return folder
