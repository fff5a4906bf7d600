"""Product folders: listings with their pictures, and the contents of the boxes in the pictures.

A folder holds ``products.jsonl`` with one product per line, or a subfolder with a ``product.json`` per product, or
both. ``brands.jsonl`` may list all categories that a brand sells. The fields are documented in
docs/crosscheck-construction.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.crosscheck_bench.crosscheck_sample import (
    IMAGE_PLACEHOLDER,
    MAX_BOXES,
    MAX_FRAMES,
    MAX_SHORT_TEXT_LENGTH,
)
from benchmarks.errors import MediaError, SourceError
from benchmarks.media import image_suffix, load_image, pixel_digest
from benchmarks.rows.files import Loader, RawRow, SkippedRow, image_loader, list_folders, read_rows, text_field
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.reader_types import LARGEST_LINE, RowProblem, is_present
from benchmarks.untrusted.safe_json import read_json_file
from benchmarks.vocabulary import Media

SOURCE = "products"

PICTURE_KINDS = ("product", "logo", "frame")
"""The kinds of picture: the product, its brand's logo, or a key frame of a live slice."""

LAYOUT = "products.jsonl with a product a line, or a folder a product with product.json in it"

CURRENCY_SYMBOLS = {
    "USD": "$",
    "EUR": "€",
    "GBP": "£",
    "JPY": "¥",
    "CNY": "¥",
    "INR": "₹",
    "KRW": "₩",
    "THB": "฿",
    "VND": "₫",
}
"""Currencies written as a sign before the amount; all others follow the amount by their code."""

RESERVED_ATTRIBUTES = ("brand", "category", "spu", "price", "product", "text", "part", "prop", "sells")
"""Names that no attribute may have because they already mean a field of the listing or the content of a box."""

TEXT_FIELDS = ("title", "description", "listing")
"""The places of a fact other than a picture."""

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
        sign = CURRENCY_SYMBOLS.get(self.currency)
        return f"{sign}{digits}" if sign else f"{digits} {self.currency}"


@dataclass(frozen=True, slots=True)
class VisibleAttribute:
    """An attribute visible in a box of a picture: x0, y0, x1, y1 in pixels, or None for the whole picture."""

    attribute: str
    value: str
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class ProductPicture:
    """A picture of a product; ``width`` and ``height`` are in upright pixels, ``pixels`` is the digest of its pixels."""

    view: str
    kind: str
    visible: tuple[VisibleAttribute, ...]
    media: Media
    width: int
    height: int
    pixels: str
    load: Loader

    def shows(self, attribute: str) -> tuple[str, ...]:
        """Return the visible values of an attribute."""
        return tuple(item.value for item in self.visible if item.attribute == attribute)


@dataclass(frozen=True, slots=True)
class Product:
    """A listing. ``brand`` is "" for an unbranded product; products of one style share a ``spu``."""

    id: str
    title: str
    description: str
    brand: str
    category: str
    spu: str
    price: Price | None
    attributes: Mapping[str, str]
    pictures: tuple[ProductPicture, ...]

    def picture(self, name: str) -> ProductPicture | None:
        """Return the picture of the view ``name``, or None."""
        return next((picture for picture in self.pictures if picture.view == name), None)


@dataclass(frozen=True, slots=True)
class Brand:
    """All categories that a brand sells; ``show_categories`` if a question displays them, as it must for an unknown brand."""

    name: str
    categories: tuple[str, ...]
    show_categories: bool = True


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The products of a folder in order, the described brands, and the rows that were skipped."""

    products: tuple[Product, ...]
    brands: Mapping[str, Brand]
    skipped: tuple[SkippedRow, ...]


def read_catalogue(folder: Path) -> Catalogue:
    """Return the products in ``folder``. Raises SourceError if it is not a product folder or has no usable product."""
    try:
        raw_rows = list(_rows(folder))
    except OSError as error:
        raise SourceError(f"{folder} cannot be read ({error.strerror}); products need {LAYOUT}.") from error
    if not raw_rows:
        raise SourceError(f"{folder} is not a product folder; expected {LAYOUT}.")
    products: dict[str, Product] = {}
    skipped: list[SkippedRow] = []
    for row in raw_rows:
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
        raise SourceError(f"{folder} has no usable product ({skipped[0].row}: {skipped[0].reason}).")
    return Catalogue(tuple(products.values()), _brands(folder, skipped), tuple(skipped))


def _rows(folder: Path) -> Iterator[RawRow | SkippedRow]:
    listing = folder / "products.jsonl"
    if is_present(listing):
        yield from read_rows(listing, folder, SOURCE)
    for subfolder in list_folders(folder):
        file = subfolder / "product.json"
        if is_present(file):
            yield from _single(file, subfolder.name)


def _single(file: Path, name: str) -> Iterator[RawRow | SkippedRow]:
    where = f"{name}/product.json"
    try:
        fields = read_json_file(file, LARGEST_LINE)
    except (OSError, ValueError):
        fields = None
    if isinstance(fields, dict):
        yield RawRow(where, {"id": name, **fields}, (file.parent,))
    else:
        yield SkippedRow(SOURCE, where, "the file is not a JSON object")


def _product(row: RawRow, skipped: list[SkippedRow]) -> Product:
    fields = row.fields
    name = text_field(fields, "id")
    if not _ID.fullmatch(name):
        raise RowProblem("the id is not 1 to 80 letters, digits, dots, dashes and underscores")
    pictures = tuple(_pictures(row, skipped))
    if not pictures:
        raise RowProblem("the product has no image that can be used")
    if len({picture.view for picture in pictures}) < len(pictures):
        raise RowProblem("two images of the product are the same view")
    return Product(
        id=name,
        title=read_line(fields, "title"),
        description=read_line(fields, "description", needed=False),
        brand=read_line(fields, "brand", needed=False),
        category=read_line(fields, "category"),
        spu=read_line(fields, "spu", needed=False) or name,
        price=_price(fields.get("price")),
        attributes=_attributes(fields.get("attributes")),
        pictures=pictures,
    )


def _pictures(row: RawRow, skipped: list[SkippedRow]) -> Iterator[ProductPicture]:
    images = row.fields.get("images")
    if not isinstance(images, list) or len(images) > MAX_FRAMES:
        raise RowProblem(f"the images are not a list of at most {MAX_FRAMES}")
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
    if kind not in PICTURE_KINDS:
        raise RowProblem(f"the kind of image is not one of {', '.join(PICTURE_KINDS)}")
    view = text_field(fields, "view") or str(number)
    if not _ID.fullmatch(view) or view in TEXT_FIELDS:
        raise RowProblem(
            f"the view is not 1 to 80 letters, digits, dots, dashes and underscores, or one of {', '.join(TEXT_FIELDS)}"
        )
    loader = image_loader(RawRow(row.where, fields, row.folders), "file")
    try:
        data = loader()
        image = load_image(data)
    except MediaError as error:
        raise RowProblem(f"the image {error.reason}") from error
    boxes = fields.get("boxes") or []
    if not isinstance(boxes, list) or len(boxes) > MAX_BOXES:
        raise RowProblem(f"the boxes are not a list of at most {MAX_BOXES}")
    visible = tuple(_visible_attribute(box, image.width, image.height) for box in boxes)
    media = Media(hashlib.sha256(data).hexdigest(), image_suffix(data) or "")
    return ProductPicture(view, kind, visible, media, image.width, image.height, pixel_digest(image), loader)


def _visible_attribute(value: Any, width: int, height: int) -> VisibleAttribute:
    if not isinstance(value, dict):
        raise RowProblem("a box is not an object")
    attribute = read_line(value, "attribute")
    if not _ATTRIBUTE.fullmatch(attribute):
        raise RowProblem("a box's attribute is not plain or longer than 40 characters")
    return VisibleAttribute(attribute, read_line(value, "value"), _box(value.get("box"), width, height))


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
    if any(not _ATTRIBUTE.fullmatch(name) or name in RESERVED_ATTRIBUTES or name.endswith(" brand") for name in value):
        raise RowProblem(
            f"an attribute's name is not plain, longer than 40 characters, or one of {', '.join(RESERVED_ATTRIBUTES)}"
        )
    return {name: read_line(value, name) for name in value}


def read_line(fields: Mapping[str, Any], name: str, *, needed: bool = True) -> str:
    """Return a field as one line of text that a question can contain."""
    value = text_field(fields, name)
    if not value:
        if needed:
            raise RowProblem(f"the {name} is missing or is not text")
        return ""
    if len(value) > MAX_SHORT_TEXT_LENGTH or len(value.splitlines()) > 1:
        raise RowProblem(f"a text is longer than {MAX_SHORT_TEXT_LENGTH} characters or has more than one line")
    if IMAGE_PLACEHOLDER in value:
        raise RowProblem(f"a text holds {IMAGE_PLACEHOLDER}, which marks where a picture stands")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowProblem("the text is not valid Unicode") from error
    return value


def _brands(folder: Path, skipped: list[SkippedRow]) -> dict[str, Brand]:
    file = folder / "brands.jsonl"
    if not is_present(file):
        return {}
    brands: dict[str, Brand] = {}
    for number, fields in read_json_lines(file):
        try:
            if not isinstance(fields, dict):
                raise RowProblem("the line is not a JSON object")
            name, categories = read_line(fields, "brand"), fields.get("categories")
            if not isinstance(categories, list) or not categories:
                raise RowProblem("the brand's categories are not a list")
            if name in brands:
                raise RowProblem("repeated: another row describes this brand")
            sold = tuple(read_line({"category": category}, "category") for category in categories)
            brands[name] = Brand(name, sold, fields.get("told") is not False)
        except RowProblem as problem:
            skipped.append(SkippedRow(SOURCE, f"brands.jsonl:{number}", str(problem)))
    return brands
