"""The sheet of facts that people correct: what differs between places, and what a model read otherwise than stated.

A build writes it as ``facts.csv``. A copy in the product folder, with the right values in the column ``value``, decides in the
next build, so that a differing value is corrected instead of left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.crosscheck_bench.construction.clue_graph import ROLES, ClueGraph, listing_values, occurs_in
from benchmarks.crosscheck_bench.sources.product_folders import (
    RESERVED_ATTRIBUTES,
    SOURCE,
    TEXT_FIELDS,
    Catalogue,
    Product,
    ProductPicture,
    VisibleAttribute,
    read_line,
)
from benchmarks.errors import SourceError
from benchmarks.rows.csv_rows import read_columns, read_csv_rows
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem, is_present
from benchmarks.untrusted.spreadsheet_formula_guard import csv_line, unguard_formulas

FILE = "facts.csv"

NOTHING = "(none)"
"""The value of a place that states nothing."""

_COLUMNS = ("product", "place", "attribute", "listing", "stated", "extracted", "outcome", "value")
_NEEDED = (*_COLUMNS[:3], _COLUMNS[-1])
_SETTLED = ("right", "agrees", "corrected")
_UNSETTLED = ("disagrees", "refused")
"""The outcomes that are to be looked at even if people gave a value."""


class FactKey(NamedTuple):
    """A product's id, a place (a view, title, description or listing) and an attribute."""

    product: str
    place: str
    attribute: str


@dataclass(frozen=True, slots=True)
class FactRow:
    """A line of the sheet: the listing's value, the folder's at this place, and the model's; "" for none."""

    key: FactKey
    kind: str
    listed: str
    stated: str
    extracted: str
    outcome: str


Corrections = Mapping[FactKey, str]
"""The right values, as people wrote them; ``NOTHING`` for a place that states none."""


@dataclass(frozen=True, slots=True)
class CorrectionLine:
    """A line that people filled in, by its number in the file."""

    number: int
    key: FactKey
    value: str


@dataclass(frozen=True, slots=True)
class Corrected:
    """The products with people's values, the values that were applied, and the lines that were refused."""

    catalogue: Catalogue
    corrections: Corrections
    refused: Sequence[CorrectionLine]


def read_corrections(folder: Path) -> list[CorrectionLine]:
    """Return the filled lines of the product folder's sheet; none without it. Raises SourceError for a file of another form."""
    file = folder / FILE
    if not is_present(file):
        return []
    columns = read_columns(file)
    if missing := [name for name in _NEEDED if name not in columns]:
        raise SourceError(f"{FILE} has no column {missing[0]!r}; it needs the columns {', '.join(_NEEDED)}.")
    lines = []
    for number, fields in read_csv_rows(file):
        if isinstance(fields, RowProblem):
            raise SourceError(f"{FILE}:{number} cannot be read: {fields}; correct it.")
        row = {name: unguard_formulas(str(value)).strip() for name, value in fields.items()}
        if value := row.get("value", ""):
            lines.append(CorrectionLine(number, FactKey(*(row.get(name, "") for name in _COLUMNS[:3])), value))
    return lines


def correct(catalogue: Catalogue, lines: Sequence[CorrectionLine]) -> Corrected:
    """Return the products with people's values; a line that cannot be applied is among those skipped, with the reason."""
    before = {product.id: product for product in catalogue.products}
    products = dict(before)
    counts = Counter(line.key for line in lines)
    skipped = list(catalogue.skipped)
    corrections: dict[FactKey, str] = {}
    refused = []
    for line in lines:
        key = line.key
        try:
            if key.product not in products:
                raise RowProblem("the folder has no such product")
            if key.attribute not in _attributes(before[key.product]):
                raise RowProblem("the product has no such attribute")
            if counts[key] > 1:
                raise RowProblem("another line corrects the same fact; keep one of them")
            products[key.product] = _corrected(products[key.product], key, line.value)
            corrections[key] = line.value
        except RowProblem as problem:
            skipped.append(SkippedRow(SOURCE, f"{FILE}:{line.number}", str(problem)))
            refused.append(line)
    corrected = replace(catalogue, products=tuple(products.values()), skipped=tuple(skipped))
    return Corrected(corrected, corrections, refused)


def _attributes(product: Product) -> set[str]:
    """Return the attributes of a product that people can correct: those that it has, and those with a meaning of their own."""
    visible = {seen.attribute for picture in product.pictures for seen in picture.visible}
    return {*listing_values(product), *visible, *RESERVED_ATTRIBUTES, *ROLES}


def read_texts(catalogue: Catalogue, corrections: Corrections) -> dict[tuple[str, str], dict[str, str]]:
    """Return what people read off titles and descriptions, by product id and place, then by attribute."""
    texts = {(p.id, place): text for p in catalogue.products for place, text in _texts(p).items()}
    read: dict[tuple[str, str], dict[str, str]] = {}
    for key, value in corrections.items():
        if occurs_in(value, texts.get(key[:2], "")):
            read.setdefault(key[:2], {})[key.attribute] = value
    return read


def unstated_facts(corrections: Corrections) -> frozenset[FactKey]:
    """Return the facts of which people say that their place states none."""
    return frozenset(key for key, value in corrections.items() if value == NOTHING)


def sheet(rows: Iterable[FactRow], graphs: Mapping[str, ClueGraph], corrected: Corrected) -> bytes:
    """Return the sheet, with what is to be corrected first; empty if there is nothing to list.

    Besides ``rows`` it has the facts of all modalities that disagree, and people's earlier lines. What the folder states and
    disagrees is listed as that, however a model read it.
    """
    corrections = corrected.corrections
    listed = {row.key: row for row in rows}
    for row in _disagreeing(graphs.values()):
        known = listed.setdefault(row.key, row)
        if known.stated:
            listed[row.key] = replace(known, outcome=row.outcome)
    for key in corrections:
        listed.setdefault(key, FactRow(key, "", "", "", "", "corrected"))
    valued = []
    for line in corrected.refused:
        known = listed.get(line.key, FactRow(line.key, "", "", "", "", ""))
        valued.append((replace(known, outcome="refused"), line.value))
    refused = {line.key for line in corrected.refused}
    valued.extend((row, corrections.get(row.key, "")) for row in listed.values() if row.key not in refused)
    if not valued:
        return b""
    valued.sort(key=lambda pair: pair[0].outcome not in _UNSETTLED and (pair[0].outcome in _SETTLED or bool(pair[1])))
    lines = [csv_line((*row.key, row.listed, row.stated, row.extracted, row.outcome, value)) for row, value in valued]
    return "".join((csv_line(_COLUMNS), *lines)).encode("utf-8")


def _disagreeing(graphs: Iterable[ClueGraph]) -> Iterator[FactRow]:
    for graph in graphs:
        listed = listing_values(graph.product)
        for name, facts in graph.discrepancies.items():
            for fact in facts:
                key = FactKey(fact.entity, fact.place, fact.attribute)
                yield FactRow(key, fact.modality, listed.get(name, ""), fact.value, "", "disagrees")


def _corrected(product: Product, key: FactKey, value: str) -> Product:
    """Return the product with a value. Raises RowProblem for a place, an attribute or a value that cannot be corrected."""
    text = "" if value == NOTHING else read_line({key.attribute: value}, key.attribute)
    if key.place == "listing":
        return _with_listed(product, key.attribute, text)
    if key.place in TEXT_FIELDS:
        if text and not occurs_in(text, _texts(product)[key.place]):
            raise RowProblem(f"the {key.place} does not have this value; change the {key.place} in the product's row")
        return product
    if product.picture(key.place) is None:
        raise RowProblem("the product has no such place")
    pictures = [_with_seen(p, key.attribute, text) if p.view == key.place else p for p in product.pictures]
    return replace(product, pictures=tuple(pictures))


def _texts(product: Product) -> dict[str, str]:
    return {"title": product.title, "description": product.description}


def _with_listed(product: Product, attribute: str, value: str) -> Product:
    if attribute == "brand":
        return replace(product, brand=value)
    if attribute not in product.attributes:
        raise RowProblem(f"the {attribute} of a listing is corrected in the product's row")
    attributes = {**product.attributes, attribute: value}
    return replace(product, attributes={name: known for name, known in attributes.items() if known})


def _with_seen(picture: ProductPicture, attribute: str, value: str) -> ProductPicture:
    """Return the picture with one value of an attribute, in the first box that it had."""
    before: Sequence[VisibleAttribute] = [seen for seen in picture.visible if seen.attribute == attribute]
    others = tuple(seen for seen in picture.visible if seen.attribute != attribute)
    box = before[0].box if before else None
    return replace(picture, visible=(*others, VisibleAttribute(attribute, value, box)) if value else others)
