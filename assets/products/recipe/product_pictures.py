"""Pictures of a product, with labelled boxes."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image

from assets.products.recipe.canvas import PAPER, Box, Canvas, logo
from assets.products.recipe.product_catalogue import BRANDS, ITEMS, PAINTS, Brand, Colour, Item
from assets.products.recipe.product_shapes import ASPECT, draw

INK: Colour = (44, 48, 56)
TAG: Colour = (250, 206, 70)
GREY: Colour = (150, 154, 160)
GROUNDS: tuple[Colour, ...] = ((236, 241, 246), (246, 240, 232), (238, 244, 236), (243, 237, 244))

BoxLabels = list[tuple[str, str, Box]]
"""Attribute, value and box."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a product: its view, kind, pixels and labelled boxes."""

    view: str
    kind: str
    image: Image.Image
    labels: BoxLabels


def brand(name: str) -> Brand:
    return next(known for known in BRANDS if known.name == name)


def ground(item: Item) -> Colour:
    return GROUNDS[sum(map(ord, item.id)) % len(GROUNDS)]


def pictures(item: Item) -> list[Picture]:
    """Return all pictures of a product."""
    views = [front(item), side(item)]
    if item.brand:
        views.append(mark(item))
    if item.covered:
        views.append(front(item, covered=True))
    if item.scene:
        views.append(scene(item))
    if item.live:
        views += [wide(item), close(item), turned(item), offer(item)]
        if item.covered:
            views += [close(item, covered=True), offer(item, covered=True)]
    return views


def front(item: Item, covered: bool = False) -> Picture:
    """Draw the card of a listing: the product with its brand, price tag and printed data."""
    canvas = Canvas(320, 320, ground(item))
    body = _body(item, 110, 168, 200, 210)
    draw(canvas, item.shape, body, PAINTS[item.attributes["colour"]])
    labels: BoxLabels = [("product", item.category, body), ("colour", item.attributes["colour"], body)]
    labels += _brand(canvas, item, 14, 14, 26, covered)
    words = canvas.text((14, 290), item.words, 15, INK)
    labels.append(("text", item.words, words))
    _tag(canvas, f"${item.price}", (222, 60), labels)
    value = item.attributes[item.spec]
    canvas.text((224, 138), item.spec.upper(), 13, GREY)
    labels.append((item.spec, value, canvas.text((224, 154), value, 24, INK)))
    if item.minor:
        canvas.text((224, 208), "MADE TO FIT", 12, GREY)
        labels.append(("minor brand", item.minor, logo(canvas, brand(item.minor), 224, 226, 16)))
    return Picture("covered-front" if covered else "front", "product", canvas.finished(), labels)


def side(item: Item) -> Picture:
    """Draw the product from the side: no brand, no text."""
    canvas = Canvas(256, 256, ground(item))
    body = _body(item, 128, 134, 170, 190)
    draw(canvas, item.shape, body, PAINTS[item.attributes["colour"]], side=True)
    return Picture("side", "product", canvas.finished(), _product(item, body))


def mark(item: Item) -> Picture:
    """Draw the brand's mark alone, in one of three colourings, so that a brand's marks differ from one another."""
    ink = brand(item.brand).ink
    fore, back = ((ink, PAPER), (PAPER, ink), (INK, (232, 224, 208)))[ITEMS.index(item) % 3]
    canvas = Canvas(256, 96, back)
    box = logo(canvas, brand(item.brand), 18, 28, 40, fore)
    return Picture("logo", "logo", canvas.finished(), [("brand", item.brand, box)])


def scene(item: Item) -> Picture:
    """Draw the product in use: what comes with it, what does not, and a poster of another brand."""
    canvas = _room(320, 240, item)
    labels: BoxLabels = _poster(canvas, item, 190, 18, 18)
    body = _body(item, 105, 122, 140, 150)
    draw(canvas, item.shape, body, PAINTS[item.attributes["colour"]])
    labels += _product(item, body)
    prop, part = (236, 118, 300, 198), (182, 164, 228, 200)
    draw(canvas, item.scene, prop, INK)
    draw(canvas, "cloth", part, PAINTS[item.attributes["colour"]])
    canvas.text((176, 204), "INCLUDED", 11, INK)
    labels += [("part", "cloth", part), ("prop", {"cup": "mug"}.get(item.scene, item.scene), prop)]
    canvas.rectangle((6, 202, 160, 236), PAPER, 4)
    labels += _brand(canvas, item, 12, 208, 20, False)
    return Picture("scene", "product", canvas.finished(), labels)


def wide(item: Item) -> Picture:
    """Draw the first frame of a live slice: a host, a table, the product far away."""
    canvas = _room(256, 192, item)
    labels = _poster(canvas, item, 140, 14, 16)
    canvas.ellipse((40, 34, 84, 82), (222, 180, 150))
    canvas.rectangle((26, 84, 100, 150), (96, 110, 150), 16)
    canvas.rectangle((0, 142, 256, 192), (188, 160, 128))
    body = _body(item, 178, 112, 70, 70)
    draw(canvas, item.shape, body, PAINTS[item.attributes["colour"]])
    return Picture("live-1", "frame", canvas.finished(), labels + _product(item, body))


def close(item: Item, covered: bool = False) -> Picture:
    """Draw the second frame: the product close to the camera, with its brand."""
    canvas = Canvas(256, 192, ground(item))
    body = _body(item, 128, 76, 150, 126)
    draw(canvas, item.shape, body, PAINTS[item.attributes["colour"]])
    labels = _product(item, body) + _brand(canvas, item, 14, 158, 24, covered)
    return Picture("covered-live-2" if covered else "live-2", "frame", canvas.finished(), labels)


def turned(item: Item) -> Picture:
    """Draw the third frame: the product turned to its side."""
    canvas = _room(256, 192, item)
    body = _body(item, 128, 92, 140, 140)
    draw(canvas, item.shape, body, PAINTS[item.attributes["colour"]], side=True)
    return Picture("live-3", "frame", canvas.finished(), _product(item, body))


def offer(item: Item, covered: bool = False) -> Picture:
    """Draw the fourth frame: the product with its price, its data and, small, its brand."""
    canvas = Canvas(256, 192, ground(item))
    body = _body(item, 70, 104, 110, 130)
    draw(canvas, item.shape, body, PAINTS[item.attributes["colour"]])
    labels = _product(item, body)
    _tag(canvas, f"${item.price}", (150, 30), labels)
    value = item.attributes[item.spec]
    labels.append((item.spec, value, canvas.text((152, 104), value, 20, INK)))
    if item.minor:
        canvas.text((142, 134), "MADE TO FIT", 10, GREY)
        labels.append(("minor brand", item.minor, logo(canvas, brand(item.minor), 142, 150, 14)))
    labels += _brand(canvas, item, 10, 10, 18, covered)
    return Picture("covered-live-4" if covered else "live-4", "frame", canvas.finished(), labels)


def _body(item: Item, x: int, y: int, width: int, height: int) -> Box:
    """Return a box around x, y in the product's proportions; smaller volumes are smaller."""
    aspect = ASPECT[item.shape] * (1.2 if item.attributes.get("volume") in ("1.0 L", "250 ml") else 1.0)
    tall = min(height, round(width / aspect))
    tall = tall * 4 // 5 if item.attributes.get("volume") in ("1.0 L", "250 ml") else tall
    broad = round(tall * aspect)
    return x - broad // 2, y + height // 2 - tall, x - broad // 2 + broad, y + height // 2


def _product(item: Item, body: Box) -> BoxLabels:
    return [("product", item.category, body), ("colour", item.attributes["colour"], body)]


def _brand(canvas: Canvas, item: Item, x: int, y: int, height: int, covered: bool) -> BoxLabels:
    if not item.brand:
        return []
    if not covered:
        return [("brand", item.brand, logo(canvas, brand(item.brand), x, y, height))]
    box = logo(Canvas(*canvas.size, PAPER), brand(item.brand), x, y, height)
    canvas.rectangle(box, GREY, 3)
    for i, left in enumerate(range(box[0], box[2] - 8, 12)):
        canvas.rectangle((left, box[1] + (i % 2) * 9, left + 9, box[1] + (i % 2) * 9 + 9), (188, 192, 198))
    return [("covered brand", item.brand, box)]


def _tag(canvas: Canvas, price: str, at: tuple[int, int], labels: BoxLabels) -> None:
    x, y = at
    canvas.polygon([(x, y + 24), (x + 18, y), (x + 88, y), (x + 88, y + 48), (x + 18, y + 48)], TAG)
    canvas.ellipse((x + 12, y + 19, x + 22, y + 29), PAPER)
    canvas.text((x + 55, y + 24), price, 26, INK, "mm")
    labels.append(("price", price, (x, y, x + 89, y + 49)))


def _room(width: int, height: int, item: Item) -> Canvas:
    canvas = Canvas(width, height, (226, 222, 214))
    canvas.rectangle((0, height * 0.82, width, height), (188, 160, 128))
    return canvas


def _poster(canvas: Canvas, item: Item, x: int, y: int, height: int) -> BoxLabels:
    if not item.poster:
        return []
    box = logo(Canvas(*canvas.size, PAPER), brand(item.poster), x, y, height)
    canvas.rectangle((box[0] - 8, box[1] - 8, box[2] + 8, box[3] + 8), PAPER, 3, GREY)
    return [("other brand", item.poster, logo(canvas, brand(item.poster), x, y, height))]
