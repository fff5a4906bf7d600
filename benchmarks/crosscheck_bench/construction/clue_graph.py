"""Multimodal clue graphs (section "Data Collection") of (entity, modality, attribute, value), and their discrepancies.

Picture facts come from the boxes, listing facts from the listing's fields. Text facts are found by rule: a value that
any product of the set has for an attribute and that occurs as a word in the title or description.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from benchmarks.crosscheck_bench.sources.product_folders import Box, Catalogue, Product
from benchmarks.values import compare

Modality = Literal["image", "text", "listing"]

OTHER_BRANDS = ("minor brand", "other brand")
"""Visible brands other than the product's: named on it (an accessory that fits them), or in the background."""

ROLES = (*OTHER_BRANDS, "covered brand", "part", "prop", "text", "spu", "sells")
"""Attributes that say what is visible or what a thing belongs to; modalities are not compared by them."""


@dataclass(frozen=True, slots=True)
class Clue:
    """A clue. ``entity`` is a product's id; ``place`` is its view, title, description or listing.

    ``frame`` is the index of the product's picture, ``box`` is in pixels; both are None outside pictures.
    """

    id: str
    entity: str
    modality: Modality
    attribute: str
    value: str
    place: str
    frame: int | None = None
    box: Box | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the quadruple as a JSON object, with frame and box if it has them."""
        row: dict[str, Any] = {
            "id": self.id,
            "entity": self.entity,
            "modality": self.modality,
            "attribute": self.attribute,
            "value": self.value,
        }
        if self.frame is not None:
            row["frame"] = self.frame
        if self.box is not None:
            row["box"] = list(self.box)
        return row


@dataclass(frozen=True)
class ClueGraph:
    """The clues of one product."""

    product: Product
    facts: tuple[Clue, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Clue]:
        """The facts by id."""
        return {fact.id: fact for fact in self.facts}

    @cached_property
    def comparisons(self) -> Mapping[str, tuple[Clue, ...]]:
        """The facts of each attribute that at least two modalities state."""
        by_attribute: defaultdict[str, list[Clue]] = defaultdict(list)
        for fact in self.facts:
            if fact.attribute not in ROLES:
                by_attribute[_comparison_key(fact.attribute)].append(fact)
        return {name: tuple(facts) for name, facts in by_attribute.items() if len({f.modality for f in facts}) > 1}

    @cached_property
    def discrepancies(self) -> Mapping[str, tuple[Clue, ...]]:
        """The comparisons whose values are not certainly the same: contradictions within the listing itself.

        The templates do not use such an attribute, since its true value is unknown.
        """
        return {
            name: facts
            for name, facts in self.comparisons.items()
            if any(compare(facts[0].value, fact.value).verdict != "same" for fact in facts)
        }

    def facts_of(self, attribute: str, *places: str) -> tuple[Clue, ...]:
        """Return the facts of an attribute, limited to ``places`` if any are named."""
        return tuple(f for f in self.facts if f.attribute == attribute and (not places or f.place in places))

    def to_json(self) -> dict[str, Any]:
        """Return the graph as a JSON object, a line of a build's ``graphs.jsonl``."""
        return {
            "product": self.product.id,
            "facts": [fact.to_json() for fact in self.facts],
            "discrepancies": {name: [fact.id for fact in facts] for name, facts in self.discrepancies.items()},
        }


def build_graphs(
    catalogue: Catalogue,
    read_texts: Mapping[tuple[str, str], Mapping[str, str]] = MappingProxyType({}),
    unstated: Collection[tuple[str, str, str]] = (),
) -> dict[str, ClueGraph]:
    """Return the graph of every product, by product id.

    ``read_texts`` are values that a model or people read off texts, by product id and place, then by attribute. ``unstated``
    are the product ids, places and attributes of which people say that the text states none, whatever the rule finds.
    """
    values = _vocabulary(catalogue)
    graphs = {}
    for product in catalogue.products:
        facts = _facts(product, values, read_texts)
        stated = (f for f in facts if f.modality != "text" or (product.id, f.place, f.attribute) not in unstated)
        graphs[product.id] = ClueGraph(product, tuple(stated))
    return graphs


def occurs_in(value: str, text: str) -> bool:
    """Return whether ``value`` occurs in ``text`` as whole words, ignoring case."""
    return _search_value(value, text) is not None


def remove_value(value: str, text: str) -> str | None:
    """Return ``text`` without ``value`` and the comma or space left behind; None if ``value`` does not occur."""
    match = _search_value(value, text)
    if match is None:
        return None
    before, after = text[: match.start()].rstrip(" ,"), text[match.end() :].lstrip(" ")
    joined_text = before + after if after.startswith(",") and before else f"{before} {after.lstrip(', ')}"
    return joined_text.strip(" ,") or None


def _search_value(value: str, text: str) -> re.Match[str] | None:
    # Most values do not occur at all, and compiling a pattern for each would be slow.
    if value.casefold() not in text.casefold():
        return None
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE)


def _comparison_key(attribute: str) -> str:
    return "category" if attribute == "product" else attribute


def _vocabulary(catalogue: Catalogue) -> dict[str, list[str]]:
    """Return the values of each attribute over all products, longest first."""
    vocabulary: defaultdict[str, set[str]] = defaultdict(set)
    vocabulary["brand"].update(catalogue.brands)
    for product in catalogue.products:
        vocabulary["brand"].add(product.brand)
        vocabulary["category"].add(product.category)
        for name, value in product.attributes.items():
            vocabulary[name].add(value)
    return {name: sorted(values - {""}, key=lambda v: (-len(v), v)) for name, values in sorted(vocabulary.items())}


def _facts(
    product: Product,
    vocabulary: Mapping[str, Sequence[str]],
    read_texts: Mapping[tuple[str, str], Mapping[str, str]],
) -> Iterable[Clue]:
    counts: defaultdict[str, int] = defaultdict(int)

    def fact(
        place: str, modality: Modality, attribute: str, value: str, frame: int | None = None, box: Box | None = None
    ) -> Clue:
        name = f"{product.id}/{place}/{attribute}"
        counts[name] += 1
        return Clue(
            name if counts[name] == 1 else f"{name}#{counts[name]}",
            product.id,
            modality,
            attribute,
            value,
            place,
            frame,
            box,
        )

    for number, picture in enumerate(product.pictures):
        for visible in picture.visible:
            yield fact(picture.view, "image", visible.attribute, visible.value, number, visible.box)
    listed = listing_values(product)
    for place, text in (("title", product.title), ("description", product.description)):
        for attribute, values in vocabulary.items():
            mentions = _find_mentions(values, text)
            own_values = [value for value in mentions if value == listed.get(attribute)]
            for value in own_values or mentions:
                yield fact(place, "text", attribute, value)
            if attribute == "brand" and own_values:
                for value in mentions:
                    if value not in own_values:
                        yield fact(place, "text", "minor brand", value)
        for attribute, value in read_texts.get((product.id, place), {}).items():
            if value not in _find_mentions(vocabulary.get(attribute, ()), text):
                yield fact(place, "text", attribute, value)
    for attribute, value in listed.items():
        yield fact("listing", "listing", attribute, value)


def listing_values(product: Product) -> dict[str, str]:
    """Return the values that a product's listing states, by attribute."""
    listed = {"brand": product.brand, "category": product.category, "spu": product.spu, **product.attributes}
    if product.price is not None:
        listed["price"] = str(product.price)
    return {name: value for name, value in listed.items() if value}


def _find_mentions(values: Sequence[str], text: str) -> list[str]:
    """Return the values that occur in ``text``; a value that occurs only within a longer one does not count."""
    mentions: list[str] = []
    rest = text
    for value in values:
        match = _search_value(value, rest)
        while match is not None:
            if value not in mentions:
                mentions.append(value)
            rest = f"{rest[: match.start()]}\0{rest[match.end() :]}"
            match = _search_value(value, rest)
    return mentions
