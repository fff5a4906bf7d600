"""The data that templates draw on, and how they choose from it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any, TypeVar

from benchmarks.crosscheck_bench.construction.clue_graph import Clue, ClueGraph
from benchmarks.crosscheck_bench.construction.question_drafts import QuestionDraft, Shot, balance_strata
from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS
from benchmarks.crosscheck_bench.sources.crosscheck_source_row import PRODUCTS, PRODUCTS_FIGURE_8
from benchmarks.crosscheck_bench.sources.product_folders import Brand, Catalogue, Product

UNKNOWN = "Unknown"
"""The answer that Figure 8 expects for an unbranded product."""

MAX_PAIRED = 16
"""The most products of each kind that one product is paired with."""

MAX_INCOMPLETE = 256
"""The most incomplete groups that an item is tried with."""

T = TypeVar("T")
Left = TypeVar("Left")
Right = TypeVar("Right")


@dataclass(frozen=True)
class TemplateData:
    """The products with their graphs, and the described brands.

    ``source`` is the name of the construction. ``left_out`` receives the kinds of question that the products do not allow,
    with the reason.
    """

    catalogue: Catalogue
    graphs: Mapping[str, ClueGraph]
    source: str = PRODUCTS
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def products(self) -> Sequence[Product]:
        """The products in the folder's order."""
        return self.catalogue.products

    @property
    def brands(self) -> Mapping[str, Brand]:
        """The described brands."""
        return self.catalogue.brands

    @cached_property
    def brand_names(self) -> tuple[str, ...]:
        """The brands of all products of the set."""
        return tuple(sorted({product.brand for product in self.products} - {""}))

    @cached_property
    def by_category(self) -> Mapping[str, Sequence[Product]]:
        """The products of each category."""
        by_category: dict[str, list[Product]] = {}
        for product in self.products:
            by_category.setdefault(product.category, []).append(product)
        return by_category

    @cached_property
    def _families(self) -> Mapping[str, Sequence[Product]]:
        by_style: dict[str, list[Product]] = {}
        for product in self.products:
            by_style.setdefault(product.spu, []).append(product)
        return by_style

    def same_style(self, product: Product) -> Sequence[Product]:
        """Return the products of its style, including itself."""
        return self._families[product.spu]

    def other_products(self, product: Product, random: Random) -> list[Product]:
        """Return products to pair with one: those of its category first, then others, at most ``MAX_PAIRED`` of each kind.

        All pairs of thousands of products would be millions.
        """
        near_products = random_subset(
            [p for p in self.by_category[product.category] if p != product], MAX_PAIRED, random
        )
        far_products = random_subset(self.products, MAX_PAIRED + len(near_products) + 1, random)
        return near_products + [p for p in far_products if p.category != product.category][:MAX_PAIRED]

    def balance(
        self, kind: str, drafts: Sequence[QuestionDraft], answers: Sequence[str] = ("Yes", "No")
    ) -> list[QuestionDraft]:
        """Return the drafts of one kind with equally many of each answer; none if an answer is missing.

        ``products-figure-8`` balances the answers that exist.
        """
        missing = [answer for answer in answers if answer not in {draft.stratum for draft in drafts}]
        if missing and self.source != PRODUCTS_FIGURE_8:
            self.leave_out(kind, f"no question has the answer {' or '.join(missing)}")
            return []
        return balance_strata(drafts)

    def leave_out(self, kind: str, reason: str) -> None:
        """Record that a kind of question is not built, because one answer would be right more often than others."""
        self.left_out[kind] = f"{kind} cannot be balanced: {reason}"

    def is_consistent(self, product: Product, attribute: str) -> bool:
        """Return whether the product's modalities agree on an attribute."""
        return attribute not in self.graphs[product.id].discrepancies

    def facts(self, product: Product, attribute: str, *where: str) -> tuple[Clue, ...]:
        """Return a product's facts of an attribute in the given views or texts (see ``ClueGraph.facts_of``)."""
        return self.graphs[product.id].facts_of(attribute, *where)

    def listing_facts(self, product: Product, *attributes: str) -> tuple[Clue, ...]:
        """Return the listing's facts of the attributes."""
        return tuple(fact for name in attributes for fact in self.facts(product, name, "listing"))

    def brand_categories(self, brand: str) -> tuple[Clue, ...]:
        """Return the categories that a brand sells, as facts of the brand."""
        entry = self.brands.get(brand)
        return tuple(
            Clue(
                f"brand:{brand}/listing/sells" + (f"#{n}" if n > 1 else ""),
                brand,
                "listing",
                "sells",
                category,
                "listing",
            )
            for n, category in enumerate(entry.categories if entry else (), 1)
        )

    def graph_rows(self) -> list[dict[str, Any]]:
        """Return the graphs of the products, then those of the described brands, as lines of ``graphs.jsonl``."""
        brands = {name: self.brand_categories(name) for name in self.brands}
        return [graph.to_json() for graph in self.graphs.values()] + [
            {"brand": name, "facts": [fact.to_json() for fact in facts], "discrepancies": {}}
            for name, facts in brands.items()
        ]


Template = Callable[[TemplateData, Random], list[QuestionDraft]]


def shots(product: Product, *attributes: str, kind: str = "product") -> list[Shot]:
    """Return a product's pictures of a kind that show all of the attributes, with no brand covered."""
    return [
        Shot(product, picture)
        for picture in product.pictures
        if picture.kind == kind and all(picture.shows(a) for a in attributes) and not picture.shows("covered brand")
    ]


def random_subset(items: Sequence[T], most: int, random: Random) -> list[T]:
    """Return at most ``most`` items in random order."""
    return random.sample(items, min(most, len(items)))


def shuffle(items: Sequence[T], random: Random) -> list[T]:
    """Return the items in random order."""
    return random.sample(items, len(items))


def form_groups(items: Iterable[T], size: int, fit: Callable[[T, T], bool]) -> list[list[T]]:
    """Return disjoint groups of ``size`` items, any two of which fit; items that complete no group are left over."""
    groups: list[list[T]] = []
    incomplete: list[list[T]] = []
    for item in items:
        # The latest: items that fit none, such as those of a brand that sells everything, would fill the first places.
        tried = range(max(0, len(incomplete) - MAX_INCOMPLETE), len(incomplete))
        place = next((n for n in tried if all(fit(member, item) for member in incomplete[n])), None)
        if place is None:
            incomplete.append([item])
            continue
        incomplete[place].append(item)
        if len(incomplete[place]) == size:
            groups.append(incomplete.pop(place))
    return groups


def cross_pairs(
    pairs: Iterable[tuple[Left, Right]],
    fit: Callable[[tuple[Left, Right], tuple[Left, Right]], bool],
    name: Callable[[Left, Right], Hashable],
) -> list[tuple[Left, Right, bool]]:
    """Return fours of matching pairs and of the same members exchanged; the last item says which pairs match.

    In a four, each member occurs once in a match and once not. Each exchange, by its ``name``, occurs in one four only.
    """
    crossed: list[tuple[Left, Right, bool]] = []
    exchanged: set[Hashable] = set()
    for (left, right), (other_left, other_right) in form_groups(pairs, 2, fit):
        names = {name(left, other_right), name(other_left, right)}
        if not names & exchanged:
            exchanged |= names
            crossed += [(left, right, True), (left, other_right, False)]
            crossed += [(other_left, other_right, True), (other_left, right, False)]
    return crossed


def key_frames(product: Product, most: int) -> tuple[Shot, ...]:
    """Return up to ``most`` key frames of a product's live slice; () if it has fewer than two."""
    uncovered = [shot for shot in shots(product, kind="frame") if not shot.picture.shows("covered brand")][:most]
    return tuple(uncovered) if len(uncovered) > 1 else ()


PlaceAnswer = Callable[[QuestionDraft, int, Random], QuestionDraft]


def place_answer(draft: QuestionDraft, place: int, random: Random) -> QuestionDraft:
    """Return the draft with its correct option, the first one, moved to ``place`` and the others in random order."""
    truth, *wrong_options = draft.options
    random.shuffle(wrong_options)
    return replace(draft, options=(*wrong_options[:place], truth, *wrong_options[place:]), answer=LETTERS[place])


def rotate_answers(
    drafts: Sequence[QuestionDraft], random: Random, put: PlaceAnswer = place_answer
) -> list[QuestionDraft]:
    """Return the drafts with the correct option at each place in turn; ``put`` moves it and sets the answer."""
    return [put(draft, number % len(draft.options), random) for number, draft in enumerate(drafts)]
