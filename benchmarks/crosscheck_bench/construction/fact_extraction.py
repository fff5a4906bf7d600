"""Facts that a model reads off a product's pictures and texts (section "Data Collection"), and its error rate.

The paper has GPT-4o extract attributes, and compares them across modalities. It prints no prompt, so these are ours. What the
folder states decides: there the model is only measured. Its facts are used where the folder states none: on pictures
without boxes, and where a text has another value than the listing, which is a discrepancy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmarks.build import BuildWriter
from benchmarks.crosscheck_bench.construction.clue_graph import ClueGraph, listing_values, occurs_in
from benchmarks.crosscheck_bench.construction.fact_corrections import NOTHING, Corrections, FactKey, FactRow
from benchmarks.crosscheck_bench.crosscheck_constants import STATED
from benchmarks.crosscheck_bench.crosscheck_sample import IMAGE_PLACEHOLDER
from benchmarks.crosscheck_bench.sources.product_folders import Catalogue, Product, ProductPicture, VisibleAttribute
from benchmarks.errors import MediaError, SourceError
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.text.json_replies import UnreadableReply, read_object, short_line
from benchmarks.text_model import TextModel, generate_all
from benchmarks.values import compare
from benchmarks.vocabulary import Decoding, Generation, JSONObject, Message, Part, Request, Text, canonical_json

_NOT_READ = ("category", "spu")
"""The listing's values that a picture or a text cannot state by itself."""

_MAX_TOKENS = 512
_PROMPT = """\
Read product facts off {what}.
Reply with a JSON object that has exactly these fields: {fields}.
The value of a field is what {where} states, in its own words, or "" if it does not state it. Do not guess."""

Kind = Literal["image", "text"]


@dataclass(frozen=True, slots=True)
class _Place:
    """A picture or a text of a product, and the values that the folder states for it by attribute."""

    product: Product
    name: str
    attributes: Mapping[str, str]
    stated: Mapping[str, Sequence[str]]
    text: str = ""
    picture: ProductPicture | None = None

    @property
    def kind(self) -> Kind:
        return "text" if self.picture is None else "image"


@dataclass(frozen=True, slots=True)
class Extraction:
    """A model's facts.

    Attributes:
        catalogue: The products, with what was read off pictures without boxes.
        texts: The values read off texts by product id and place, then by attribute.
        rows: Each value that was compared or used, in the products' order.
        summary: The counts and the error rates for the manifest.
    """

    catalogue: Catalogue
    texts: Mapping[tuple[str, str], Mapping[str, str]]
    rows: Sequence[FactRow]
    summary: Mapping[str, Any]


def extract(
    catalogue: Catalogue,
    graphs: Mapping[str, ClueGraph],
    without_boxes: frozenset[tuple[str, str]],
    corrections: Corrections,
    model: TextModel,
    writer: BuildWriter,
    seed: int,
) -> Extraction:
    """Return what ``model`` reads off each picture and text; the pictures are added to the build.

    ``without_boxes`` are the pictures, by product id and view, for which the folder states nothing. Raises ModelError if the
    model answers nothing, SourceError for a picture that changed since it was read.
    """
    places = [place for product in catalogue.products for place in _places(product, graphs[product.id], corrections)]
    requests = [_request(place, number, seed) for number, place in enumerate(places)]
    for place in places:
        if place.picture is not None:
            store_picture(place.product, place.picture, writer)
    replies = generate_all(model, requests)
    rows: list[FactRow] = []
    visible: defaultdict[tuple[str, str], list[VisibleAttribute]] = defaultdict(list)
    texts: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    unparsed = 0
    for place, request in zip(places, requests, strict=True):
        where = place.product.id, place.name
        values = _values(replies.get(request.id), place)
        unparsed += values is None
        for row in _compare(place, values):
            rows.append(row)
            if row.stated or not row.extracted or row.key in corrections:
                continue
            if place.picture is not None and where in without_boxes:
                value = row.listed if row.outcome == "agrees" else row.extracted
                visible[where].append(VisibleAttribute(row.key.attribute, value))
            elif row.outcome == "differs" and place.picture is None and occurs_in(row.extracted, place.text):
                texts[where][row.key.attribute] = row.extracted
    used = sum(map(len, visible.values())) + sum(map(len, texts.values()))
    products = tuple(_with_visible(product, visible) for product in catalogue.products)
    replied = {"read": len(places) - unparsed, "unparsed": unparsed}
    summary = {**_summary(rows), "used": used, "replies": replied}
    return Extraction(replace(catalogue, products=products), texts, rows, summary)


def store_picture(product: Product, picture: ProductPicture, writer: BuildWriter) -> None:
    """Add a picture to the build. Raises SourceError if it changed since the products were read."""
    try:
        stored = writer.add_media(picture.load(), picture.media.suffix)
    except MediaError as error:
        raise SourceError(f"{error} It was there when the products were read; build again.") from error
    if stored != picture.media:
        raise SourceError(
            f"the image {picture.view!r} of {product.id} changed while the products were read; build again."
        )


def _places(product: Product, graph: ClueGraph, corrections: Corrections) -> Iterator[_Place]:
    def stated(place: str, values: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
        return {
            name: (NOTHING,) if corrections.get(FactKey(product.id, place, name)) == NOTHING else known
            for name, known in values.items()
        }

    listed = {name: value for name, value in listing_values(product).items() if name not in _NOT_READ}
    if not listed:
        return
    for picture in product.pictures:
        shown = {name: picture.shows(name) for name in listed}
        yield _Place(product, picture.view, listed, stated(picture.view, shown), picture=picture)
    for name, text in (("title", product.title), ("description", product.description)):
        if text:
            mentions = {attribute: [fact.value for fact in graph.facts_of(attribute, name)] for attribute in listed}
            yield _Place(product, name, listed, stated(name, mentions), text)


def _request(place: _Place, number: int, seed: int) -> Request:
    fields = ", ".join(map(canonical_json, place.attributes))
    if place.picture is not None:
        text = _PROMPT.format(what="this picture of a product listing", where="the picture", fields=fields)
        parts: tuple[Part, ...] = (place.picture.media, Text(text))
    else:
        what = f"the {place.name} of a product listing"
        prompt = _PROMPT.format(what=what, where=f"the {place.name}", fields=fields)
        parts = (Text(f"{prompt}\n{place.name.capitalize()}: {canonical_json(place.text)}"),)
    form = JSONObject(dict.fromkeys(place.attributes, ()))
    decoding = Decoding(max_tokens=_MAX_TOKENS, seed=seed)
    return Request(f"crosscheck-facts-{number}", 0, (Message("user", parts),), decoding, form)


def _values(reply: Generation | None, place: _Place) -> Mapping[str, str] | None:
    """Return the values of a reply by attribute, "" for what is not stated; None for a reply that cannot be read."""
    if reply is None or reply.finish_reason == "error":
        return None
    try:
        fields = read_object(reply.text)
    except UnreadableReply:
        return None
    values = {}
    for name in place.attributes:
        value = fields.get(name) or ""
        line = short_line(value) if value else ""
        if line is None or IMAGE_PLACEHOLDER in line:
            return None
        values[name] = line
    return values


def _compare(place: _Place, values: Mapping[str, str] | None) -> Iterator[FactRow]:
    for attribute, listed in place.attributes.items():
        stated, value = place.stated[attribute], "" if values is None else values[attribute]
        if stated:
            outcome = "unparsed" if values is None else _outcome(stated, value)
        elif value:
            outcome = "agrees" if compare(listed, value).verdict == "same" else "differs"
        else:
            continue
        key = FactKey(place.product.id, place.name, attribute)
        yield FactRow(key, place.kind, listed, "; ".join(stated), value, outcome)


def _outcome(stated: Sequence[str], value: str) -> str:
    """Return what a reply's value is, "" for none; people may have stated that there is none."""
    if NOTHING in stated:
        return "wrong" if value else "right"
    if not value:
        return "missed"
    return "right" if any(compare(known, value).verdict == "same" for known in stated) else "wrong"


def _summary(rows: Sequence[FactRow]) -> dict[str, Any]:
    """Return the counts of values that the folder states, by modality, and of others; the intervals are over products.

    An error is a wrong or a missed value of a reply that was read; what is unparsed is counted apart.
    """
    summary: dict[str, Any] = {}
    for kind in ("image", "text"):
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row.kind == kind and row.outcome in STATED:
                counts[row.key.product][row.outcome] += 1
        total = sum(counts.values(), Counter[str]())
        errors = clustered_wilson(
            [count["wrong"] + count["missed"] for count in counts.values()],
            [count.total() - count["unparsed"] for count in counts.values()],
        )
        summary[kind] = {
            "stated": total.total(),
            **{outcome: total[outcome] for outcome in STATED},
            "error_rate": None if errors.value is None else round(errors.value, 4),
            "interval": None
            if errors.low is None or errors.high is None
            else [round(errors.low, 4), round(errors.high, 4)],
        }
    others = Counter(row.outcome for row in rows)
    return {**summary, "not_stated": {"agrees": others["agrees"], "differs": others["differs"]}}


def _with_visible(product: Product, visible: Mapping[tuple[str, str], Sequence[VisibleAttribute]]) -> Product:
    pictures = tuple(
        replace(picture, visible=(*picture.visible, *visible.get((product.id, picture.view), ())))
        for picture in product.pictures
    )
    return replace(product, pictures=pictures)
