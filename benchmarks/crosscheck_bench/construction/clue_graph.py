"""Multimodal clue graphs (section "Data Collection"): quadruples of entity, modality, attribute and value, and where
modalities disagree.

Picture facts are what the boxes show, listing facts the listing's fields. Text facts are found by rule: a value of an
attribute that any product of the set has, and that stands in title or description as a word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from benchmarks.crosscheck_bench.sources.products import Box, Catalogue, Product
from benchmarks.text.answer_equality import same_value

Modality = Literal["image", "text", "listing"]

OTHER_BRANDS = ("minor brand", "other brand")
"""Brands that are to be seen and are not the product's: named on it (made to fit them), or in the background."""

ROLES = (*OTHER_BRANDS, "covered brand", "part", "prop", "text", "spu", "sells")
"""Attributes that say what is to be seen, or what a thing belongs to; modalities are not compared by them."""


@dataclass(frozen=True, slots=True)
class Clue:
    """A clue. ``entity`` is a product's id; ``place`` is the view, title, description or listing that it stands in.

    ``frame`` counts the product's pictures from 0, ``box`` is in pixels; both None for what is not in a picture.
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
        """The quadruple as a JSON object, with frame and box where it has them."""
        found: dict[str, Any] = {
            "id": self.id,
            "entity": self.entity,
            "modality": self.modality,
            "attribute": self.attribute,
            "value": self.value,
        }
        if self.frame is not None:
            found["frame"] = self.frame
        if self.box is not None:
            found["box"] = list(self.box)
        return found


@dataclass(frozen=True)
class ClueGraph:
    """A product's clues."""

    product: Product
    facts: tuple[Clue, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Clue]:
        """The facts by id."""
        return {fact.id: fact for fact in self.facts}

    @cached_property
    def comparisons(self) -> Mapping[str, tuple[Clue, ...]]:
        """The facts of each attribute that two modalities have."""
        found: defaultdict[str, list[Clue]] = defaultdict(list)
        for fact in self.facts:
            if fact.attribute not in ROLES:
                found[_compared(fact.attribute)].append(fact)
        return {name: tuple(facts) for name, facts in found.items() if len({f.modality for f in facts}) > 1}

    @cached_property
    def discrepancies(self) -> Mapping[str, tuple[Clue, ...]]:
        """The comparisons in which not all values are the same: the contradictions that the listing has of itself.

        The templates ask nothing about such an attribute, since its truth is not known.
        """
        return {
            name: facts
            for name, facts in self.comparisons.items()
            if any(not same(name, facts[0].value, fact.value) for fact in facts)
        }

    def facts_of(self, attribute: str, *places: str) -> tuple[Clue, ...]:
        """The facts of an attribute, in these places alone where any are named."""
        return tuple(f for f in self.facts if f.attribute == attribute and (not places or f.place in places))

    def to_json(self) -> dict[str, Any]:
        """The graph as a JSON object, a line of a build's ``graphs.jsonl``."""
        return {
            "product": self.product.id,
            "facts": [fact.to_json() for fact in self.facts],
            "discrepancies": {name: [fact.id for fact in facts] for name, facts in self.discrepancies.items()},
        }


def graphs(catalogue: Catalogue) -> dict[str, ClueGraph]:
    """The graph of every product, by its id."""
    known = _vocabulary(catalogue)
    return {product.id: ClueGraph(product, tuple(_facts(product, known))) for product in catalogue.products}


def same(attribute: str, one: str, other: str) -> bool:
    """Whether two values of an attribute are the same; prices also by their currency."""
    if attribute == "price" and _signs(one) != _signs(other):
        return False
    return same_value(one, other)


def stands_in(value: str, words: str) -> bool:
    """Whether ``value`` stands in a text as whole words, without regard to case."""
    return _found(value, words) is not None


def without(value: str, words: str) -> str | None:
    """The text with ``value`` taken out, and the comma or space that it leaves; None where it does not stand in it."""
    found = _found(value, words)
    if found is None:
        return None
    left, right = words[: found.start()].rstrip(" ,"), words[found.end() :].lstrip(" ")
    joined = left + right if right.startswith(",") and left else f"{left} {right.lstrip(', ')}"
    return joined.strip(" ,") or None


def _found(value: str, words: str) -> re.Match[str] | None:
    # Most values stand in most texts nowhere, and a pattern of its own for each would be slow.
    if value.casefold() not in words.casefold():
        return None
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", words, re.IGNORECASE)


def _signs(price: str) -> str:
    return "".join(c for c in price.upper() if not c.isdigit() and c not in " .,'")


def _compared(attribute: str) -> str:
    return "category" if attribute == "product" else attribute


def _vocabulary(catalogue: Catalogue) -> dict[str, list[str]]:
    """The values of each attribute that any product has, the longest first."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    known["brand"].update(catalogue.brands)
    for product in catalogue.products:
        known["brand"].add(product.brand)
        known["category"].add(product.category)
        for name, value in product.attributes.items():
            known[name].add(value)
    return {name: sorted(values - {""}, key=lambda v: (-len(v), v)) for name, values in sorted(known.items())}


def _facts(product: Product, known: Mapping[str, Sequence[str]]) -> Iterable[Clue]:
    taken: defaultdict[str, int] = defaultdict(int)

    def fact(
        place: str, modality: Modality, attribute: str, value: str, frame: int | None = None, box: Box | None = None
    ) -> Clue:
        name = f"{product.id}/{place}/{attribute}"
        taken[name] += 1
        return Clue(
            name if taken[name] == 1 else f"{name}#{taken[name]}",
            product.id,
            modality,
            attribute,
            value,
            place,
            frame,
            box,
        )

    for number, picture in enumerate(product.pictures):
        for shown in picture.shown:
            yield fact(picture.view, "image", shown.attribute, shown.value, number, shown.box)
    listed = _listed(product)
    for place, words in (("title", product.title), ("description", product.description)):
        for attribute, values in known.items():
            found = _mentioned(values, words)
            own = [value for value in found if value == listed.get(attribute)]
            for value in own or found:
                yield fact(place, "text", attribute, value)
            if attribute == "brand" and own:
                for value in found:
                    if value not in own:
                        yield fact(place, "text", "minor brand", value)
    for attribute, value in listed.items():
        yield fact("listing", "listing", attribute, value)


def _listed(product: Product) -> dict[str, str]:
    listed = {"brand": product.brand, "category": product.category, "spu": product.spu, **product.attributes}
    if product.price is not None:
        listed["price"] = str(product.price)
    return {name: value for name, value in listed.items() if value}


def _mentioned(values: Sequence[str], words: str) -> list[str]:
    """Those of the values that stand in the text; one within another one that stands there is none of its own."""
    found: list[str] = []
    rest = words
    for value in values:
        match = _found(value, rest)
        while match is not None:
            if value not in found:
                found.append(value)
            rest = f"{rest[: match.start()]}\0{rest[match.end() :]}"
            match = _found(value, rest)
    return found
