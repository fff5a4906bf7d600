"""Material: what templates draw on, and how they choose from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import TypeVar

from benchmarks.crosscheck_bench.constants import LETTERS
from benchmarks.crosscheck_bench.construction.clue_graph import Clue, ClueGraph
from benchmarks.crosscheck_bench.construction.drafts import QuestionDraft, Shot
from benchmarks.crosscheck_bench.sources.products import Brand, Catalogue, Product

UNKNOWN = "Unknown"
"""The answer that Figure 8 wants for an unbranded product."""

MOST_OTHERS = 16
"""Products of a kind that one product is set beside."""

T = TypeVar("T")


@dataclass(frozen=True)
class TemplateData:
    """What templates draw on: the products with their graphs, and what is known of brands."""

    catalogue: Catalogue
    graphs: Mapping[str, ClueGraph]

    @property
    def products(self) -> Sequence[Product]:
        """The products in the folder's order."""
        return self.catalogue.products

    @property
    def brands(self) -> Mapping[str, Brand]:
        """The brands that are described."""
        return self.catalogue.brands

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every brand that a product of the set has."""
        return tuple(sorted({product.brand for product in self.products} - {""}))

    @cached_property
    def by_category(self) -> Mapping[str, Sequence[Product]]:
        """The products of each category."""
        found: dict[str, list[Product]] = {}
        for product in self.products:
            found.setdefault(product.category, []).append(product)
        return found

    @cached_property
    def _families(self) -> Mapping[str, Sequence[Product]]:
        found: dict[str, list[Product]] = {}
        for product in self.products:
            found.setdefault(product.spu, []).append(product)
        return found

    def family(self, product: Product) -> Sequence[Product]:
        """The products of its style, itself among them."""
        return self._families[product.spu]

    def others(self, product: Product, random: Random) -> list[Product]:
        """Other products to set beside one: those of its category first, then any; at most ``MOST_OTHERS`` of each kind.

        All pairs of thousands of products would be millions.
        """
        near = some([p for p in self.by_category[product.category] if p != product], MOST_OTHERS, random)
        far = some(self.products, MOST_OTHERS + len(near) + 1, random)
        return near + [p for p in far if p.category != product.category][:MOST_OTHERS]

    def sound(self, product: Product, attribute: str) -> bool:
        """Whether the product's modalities agree about an attribute."""
        return attribute not in self.graphs[product.id].discrepancies

    def facts(self, product: Product, attribute: str, *where: str) -> tuple[Clue, ...]:
        """A product's facts of an attribute in these views or texts (see ``ClueGraph.facts_of``)."""
        return self.graphs[product.id].facts_of(attribute, *where)

    def listing(self, product: Product, *attributes: str) -> tuple[Clue, ...]:
        """What the listing says of the attributes."""
        return tuple(fact for name in attributes for fact in self.facts(product, name, "listing"))

    def sells(self, brand: str) -> tuple[Clue, ...]:
        """The categories that a brand sells, as facts of the brand."""
        known = self.brands.get(brand)
        return tuple(
            Clue(
                f"brand:{brand}/listing/sells" + (f"#{n}" if n > 1 else ""), brand, "listing", "sells", each, "listing"
            )
            for n, each in enumerate(known.categories if known else (), 1)
        )


Template = Callable[[TemplateData, Random], list[QuestionDraft]]


def shots(product: Product, *attributes: str, kind: str = "product") -> list[Shot]:
    """A product's pictures of a kind that show all of the attributes, uncovered."""
    return [
        Shot(product, picture)
        for picture in product.pictures
        if picture.kind == kind and all(picture.shows(a) for a in attributes) and not picture.shows("covered brand")
    ]


def some(items: Sequence[T], most: int, random: Random) -> list[T]:
    """At most so many of the items, in an order that the generator decides."""
    return random.sample(items, min(most, len(items)))


def shuffled(drafts: Sequence[QuestionDraft], random: Random) -> list[QuestionDraft]:
    """The drafts in an order that the generator decides."""
    return random.sample(drafts, len(drafts))


def frames(product: Product, most: int) -> tuple[Shot, ...]:
    """The key frames of a product's live slice, as many as a question shows; () where it has fewer than two."""
    found = [shot for shot in shots(product, kind="frame") if not shot.picture.shows("covered brand")][:most]
    return tuple(found) if len(found) > 1 else ()


Put = Callable[[QuestionDraft, int, Random], QuestionDraft]


def option_at(draft: QuestionDraft, place: int, random: Random) -> QuestionDraft:
    """The draft with its right option, which is the first, at ``place``, and the others in random order."""
    truth, *wrong = draft.options
    random.shuffle(wrong)
    return replace(draft, options=(*wrong[:place], truth, *wrong[place:]), answer=LETTERS[place])


def placed(drafts: Sequence[QuestionDraft], random: Random, put: Put = option_at) -> list[QuestionDraft]:
    """The drafts with the right option at each place in turn; ``put`` puts it there, and sets the answer."""
    return [put(draft, number % len(draft.options), random) for number, draft in enumerate(drafts)]
