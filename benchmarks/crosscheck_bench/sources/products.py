"""Product folders: listings with their pictures, and what the boxes in the pictures show.

Either ``products.jsonl`` with a product a line, or a folder a product with ``product.json`` in it, or both; ``brands.jsonl``
may say all that a brand sells. The fields are in docs/crosscheck-construction.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.base import Media
from benchmarks.crosscheck_bench.sample import LONGEST_WORDS, MOST_BOXES, MOST_FRAMES, PLACE
from benchmarks.errors import MediaError, SourceError
from benchmarks.media import image_suffix, load_image, pixel_digest
from benchmarks.rows.files import Loader, RawRow, RowProblem, SkippedRow, folders, image_loader, json_lines, rows, text

SOURCE = "products"

KINDS = ("product", "logo", "frame")
"""What a picture is: one of the product, its brand's mark alone, or a key frame of a live slice."""

EXPECTED = "products.jsonl with a product a line, or a folder a product with product.json in it"

SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹", "KRW": "₩", "THB": "฿", "VND": "₫"}
"""Currencies that stand before the amount by their sign; another one stands behind it by its code."""

RESERVED = ("brand", "category", "spu", "price", "product", "text", "part", "prop", "sells")
"""What no attribute may be called, since it means something else: a field of the listing, or what a box shows."""

PLACES = ("title", "description", "listing")
"""Where else than in a picture a fact can stand."""

_ATTRIBUTE = re.compile(r"\w[\w .-]{0,39}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_CODE = re.compile(r"[A-Z]{3}")

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Price:
    """An amount of money; ``currency`` is its ISO 4217 code."""

    amount: float
    currency: str

    def __str__(self) -> str:
        digits = f"{self.amount:.0f}" if float(self.amount).is_integer() else f"{self.amount:.2f}"
        sign = SYMBOLS.get(self.currency)
        return f"{sign}{digits}" if sign else f"{digits} {self.currency}"


@dataclass(frozen=True, slots=True)
class ShownAttribute:
    """What a box of a picture shows; ``box`` is x0, y0, x1, y1 in pixels, None for the picture as a whole."""

    attribute: str
    value: str
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class ProductPicture:
    """A picture of a product; ``width`` and ``height`` in pixels as it stands upright, ``pixels`` the digest of its pixels."""

    view: str
    kind: str
    shown: tuple[ShownAttribute, ...]
    media: Media
    width: int
    height: int
    pixels: str
    load: Loader

    def shows(self, attribute: str) -> tuple[str, ...]:
        """The values of an attribute that are to be seen."""
        return tuple(each.value for each in self.shown if each.attribute == attribute)


@dataclass(frozen=True, slots=True)
class Product:
    """A listing. ``brand`` is "" for an unbranded one; products of one style have one ``spu``."""

    id: str
    title: str
    description: str
    brand: str
    category: str
    spu: str
    price: Price | None
    attributes: Mapping[str, str]
    pictures: tuple[ProductPicture, ...]

    def view(self, name: str) -> ProductPicture | None:
        """The picture of that view."""
        return next((each for each in self.pictures if each.view == name), None)


@dataclass(frozen=True, slots=True)
class Brand:
    """All the categories that a brand sells; ``told`` whether a question shows them, as it must for a brand nobody knows."""

    name: str
    categories: tuple[str, ...]
    told: bool = True


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The products of a folder in their order, the brands that are described, and what was left out."""

    products: tuple[Product, ...]
    brands: Mapping[str, Brand]
    skipped: tuple[SkippedRow, ...]


def read(folder: Path) -> Catalogue:
    """The products in ``folder``. Raises SourceError where it is none of products, or has no product that can be used."""
    try:
        found = list(_rows(folder))
    except OSError as error:
        raise SourceError(f"{folder} cannot be read ({error.strerror}); products need {EXPECTED}.") from error
    if not found:
        raise SourceError(f"{folder} is no folder of products; expected {EXPECTED}.")
    products: dict[str, Product] = {}
    skipped: list[SkippedRow] = []
    for row in found:
        if isinstance(row, SkippedRow):
            skipped.append(row)
            continue
        try:
            product = _product(row, skipped)
            if product.id in products:
                raise RowProblem("repeated: another product has this id")
            products[product.id] = product
        except RowProblem as problem:
            skipped.append(SkippedRow(SOURCE, row.where, str(problem)))
    if not products:
        raise SourceError(f"{folder} has no product that can be used ({skipped[0].row}: {skipped[0].reason}).")
    return Catalogue(tuple(products.values()), _brands(folder, skipped), tuple(skipped))


def _rows(folder: Path) -> Iterator[RawRow | SkippedRow]:
    listing = folder / "products.jsonl"
    if listing.is_file():
        yield from rows(listing, folder, SOURCE)
    for each in folders(folder):
        file = each / "product.json"
        if file.is_file():
            yield from _single(file, each.name)


def _single(file: Path, name: str) -> Iterator[RawRow | SkippedRow]:
    from json import loads

    where = f"{name}/product.json"
    try:
        fields = loads(file.read_bytes())
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        yield RawRow(where, {"id": name, **fields}, (file.parent,))
    else:
        yield SkippedRow(SOURCE, where, "the file is not a JSON object")


def _product(row: RawRow, skipped: list[SkippedRow]) -> Product:
    fields = row.fields
    name = text(fields, "id")
    if not _ID.fullmatch(name):
        raise RowProblem("the id is not 1 to 80 letters, digits, dots, dashes and underscores")
    pictures = tuple(_pictures(row, skipped))
    if not pictures:
        raise RowProblem("the product has no image that can be used")
    if len({picture.view for picture in pictures}) < len(pictures):
        raise RowProblem("two images of the product are the same view")
    return Product(
        id=name,
        title=_line(fields, "title"),
        description=_line(fields, "description", needed=False),
        brand=_line(fields, "brand", needed=False),
        category=_line(fields, "category"),
        spu=_line(fields, "spu", needed=False) or name,
        price=_price(fields.get("price")),
        attributes=_attributes(fields.get("attributes")),
        pictures=pictures,
    )


def _pictures(row: RawRow, skipped: list[SkippedRow]) -> Iterator[ProductPicture]:
    images = row.fields.get("images")
    if not isinstance(images, list) or len(images) > MOST_FRAMES:
        raise RowProblem(f"the images are not a list of at most {MOST_FRAMES}")
    for number, fields in enumerate(images, 1):
        try:
            if isinstance(fields, str):
                fields = {"file": fields}
            if not isinstance(fields, dict):
                raise RowProblem("the image is neither a file name nor an object")
            yield _picture(fields, number, row)
        except RowProblem as problem:
            skipped.append(SkippedRow(SOURCE, f"{row.where} image {number}", str(problem)))


def _picture(fields: Mapping[str, Any], number: int, row: RawRow) -> ProductPicture:
    kind = fields.get("kind", "product")
    if kind not in KINDS:
        raise RowProblem(f"the kind of image is not one of {', '.join(KINDS)}")
    view = text(fields, "view") or str(number)
    if not _ID.fullmatch(view) or view in PLACES:
        raise RowProblem(
            f"the view is not 1 to 80 letters, digits, dots, dashes and underscores, or one of {', '.join(PLACES)}"
        )
    loader = image_loader(RawRow(row.where, fields, row.folders), "file")
    try:
        data = loader()
        image = load_image(data)
    except MediaError as error:
        raise RowProblem(f"the image {error.reason}") from error
    boxes = fields.get("boxes") or []
    if not isinstance(boxes, list) or len(boxes) > MOST_BOXES:
        raise RowProblem(f"the boxes are not a list of at most {MOST_BOXES}")
    shown = tuple(_shown(each, image.width, image.height) for each in boxes)
    media = Media(hashlib.sha256(data).hexdigest(), image_suffix(data) or "")
    return ProductPicture(view, kind, shown, media, image.width, image.height, pixel_digest(image), loader)


def _shown(value: Any, width: int, height: int) -> ShownAttribute:
    if not isinstance(value, dict):
        raise RowProblem("a box is not an object")
    attribute = _line(value, "attribute")
    if not _ATTRIBUTE.fullmatch(attribute):
        raise RowProblem("a box's attribute is not plain or longer than 40 characters")
    return ShownAttribute(attribute, _line(value, "value"), _box(value.get("box"), width, height))


def _box(value: Any, width: int, height: int) -> Box | None:
    if value is None:
        return None
    if (
        not isinstance(value, list)
        or len(value) != 4
        or not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in value)
    ):
        raise RowProblem("a box is not four numbers")
    x0, y0, x1, y1 = value
    if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
        raise RowProblem("a box has no area or is not within its picture")
    return (x0, y0, x1, y1)


def _price(value: Any) -> Price | None:
    if value is None:
        return None
    amount, currency = (value.get("amount"), value.get("currency")) if isinstance(value, dict) else (None, None)
    if not isinstance(amount, int | float) or isinstance(amount, bool) or not 0 < amount < 1e12:
        raise RowProblem("the price is not an amount above 0 with a currency")
    if not isinstance(currency, str) or not _CODE.fullmatch(currency):
        raise RowProblem("the price's currency is not a code of three capital letters")
    return Price(amount, currency)


def _attributes(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RowProblem("the attributes are not an object")
    if any(not _ATTRIBUTE.fullmatch(name) or name in RESERVED or name.endswith(" brand") for name in value):
        raise RowProblem(
            f"an attribute's name is not plain, longer than 40 characters, or one of {', '.join(RESERVED)}"
        )
    return {name: _line(value, name) for name in value}


def _line(fields: Mapping[str, Any], name: str, *, needed: bool = True) -> str:
    """One line of text that can stand in a question."""
    value = text(fields, name)
    if not value:
        if needed:
            raise RowProblem(f"the {name} is missing or is not text")
        return ""
    if len(value) > LONGEST_WORDS or len(value.splitlines()) > 1:
        raise RowProblem(f"a text is longer than {LONGEST_WORDS} characters or has more than one line")
    if PLACE in value:
        raise RowProblem(f"a text holds {PLACE}, which marks where a picture stands")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowProblem("the text is not valid Unicode") from error
    return value


def _brands(folder: Path, skipped: list[SkippedRow]) -> dict[str, Brand]:
    file = folder / "brands.jsonl"
    if not file.is_file():
        return {}
    brands: dict[str, Brand] = {}
    for number, fields in json_lines(file):
        try:
            if not isinstance(fields, dict):
                raise RowProblem("the line is not a JSON object")
            name, categories = _line(fields, "brand"), fields.get("categories")
            if not isinstance(categories, list) or not categories:
                raise RowProblem("the brand's categories are not a list")
            if name in brands:
                raise RowProblem("repeated: another row describes this brand")
            sold = tuple(_line({"category": each}, "category") for each in categories)
            brands[name] = Brand(name, sold, fields.get("told") is not False)
        except RowProblem as problem:
            skipped.append(SkippedRow(SOURCE, f"brands.jsonl:{number}", str(problem)))
    return brands
