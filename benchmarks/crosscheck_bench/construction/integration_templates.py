"""L2 questions from templates, without a model; the wording is Figure 8's, completed where the figure breaks off.

The same drafts are the input of a model that writes questions: pictures, clues and the answer that must follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from benchmarks.crosscheck_bench.construction.clue_graph import Clue, occurs_in, remove_value
from benchmarks.crosscheck_bench.construction.question_drafts import (
    QuestionDraft,
    Shot,
    balance_strata,
    image_placeholders,
    interleave,
    option_placeholders,
)
from benchmarks.crosscheck_bench.construction.template_data import (
    MAX_PAIRED,
    UNKNOWN,
    TemplateData,
    cross_pairs,
    key_frames,
    random_subset,
    rotate_answers,
    shots,
    shuffle,
)
from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS
from benchmarks.crosscheck_bench.crosscheck_sample import IMAGE_PLACEHOLDER
from benchmarks.crosscheck_bench.sources.crosscheck_source_row import PRODUCTS_FIGURE_8
from benchmarks.crosscheck_bench.sources.product_folders import Brand, Product
from benchmarks.values import compare

MAX_KEY_FRAMES = 4
"""The number of key frames in Figure 8's BR*."""

BR = "Please output the brand of the product introduced in this video."
BR_FORM = 'If there is no brand, output "Unknown." Please output the brand name only, and nothing else!'
SPU = (
    "Note that the image may contain irrelevant information such as backgrounds; please select the product of the same SPU as "
    "the given product image:"
)
SPU_FORM = 'Your output should only select one answer from "A", "B", "C", "D".'
SPU_OPTIONS = ("No. 1", "No. 2", "No. 3", "No. 4")
SPU_EXAMPLE = "Appendix C, example 2"
SPU_PAIR = "Do both images depict the same product?"
SKU = "Based on product names and visual information, determine if these two SKUs refer to the same product."
SKU_FORM = "Output Format: Your entire response should consist of a single letter (e.g., A, B, or C)"
SKU_OPTIONS = (
    "Confirmed as same product",
    "Confirmed as different products",
    "Insufficient information to determine",
)
BDC = (
    "Given a brand name and an image of a product, determine whether this brand sells products in the same category as the "
    "item shown in the image."
)
BDC_FORM = (
    "Steps: 1. Identify the main category of the product shown in the image (for example: running shoes, cream, smartphone, "
    'etc.). 2. Determine whether the given brand sells products in this category. 3. Answer "Yes" if the brand sells '
    'products in this category, or "No" if it does not. ## Your answer can only contain Yes/No. No any other output is '
    "required!"
)

Titles = Callable[[Product, Sequence[str]], Iterator[str | None]]
"""Yields the titles of a SKU's second product, by the product and the deciding attributes."""


def content_brand(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of BR*: the brand introduced in a live slice, or "Unknown" for an unbranded product."""
    drafts: list[QuestionDraft] = []
    for product in data.products:
        slice_ = key_frames(product, MAX_KEY_FRAMES)
        if not slice_ or not data.is_consistent(product, "brand"):
            continue
        views = [shot.picture.view for shot in slice_]
        brand_facts = data.facts(product, "brand", *views)
        if product.brand and not brand_facts:
            continue
        shows_other_brand = any(shot.picture.shows("other brand") for shot in slice_)
        clues = brand_facts[:1] + data.facts(product, "product", *views)[: 1 if brand_facts else 2]
        context = f"Here is a video slice of a live, with key frames {image_placeholders(len(slice_))}"
        answer = product.brand or UNKNOWN
        conflict = "another brand in the background" if shows_other_brand else ""
        drafts.append(QuestionDraft("BR*", context, BR, BR_FORM, answer, slice_, clues, answer, conflict=conflict))
    return shuffle(drafts, random)


def same_style(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of SPU: the picture, out of four, of the reference's style; or whether two pictures show one product.

    The second form is Appendix C's second example.
    """
    choices: list[QuestionDraft] = []
    pairs: list[QuestionDraft] = []
    for product in data.products:
        views = shots(product, "product")
        wrong_products = [
            p for p in data.other_products(product, random) if p.spu != product.spu and shots(p, "product")
        ]
        for view in views:
            own_shots = [shot for p in data.same_style(product) for shot in shots(p, "product") if shot != view]
            if own_shots and len(wrong_products) >= len(SPU_OPTIONS) - 1:
                choices.append(_choice_draft(data, view, random.choice(own_shots), wrong_products, random))
            pairs += _pair_drafts(data, view, views, wrong_products, random)
    return interleave(
        rotate_answers(shuffle(choices, random), random, _place_match),
        data.balance("SPU, pairs", shuffle(pairs, random)),
    )


def _choice_draft(
    data: TemplateData, shot: Shot, match: Shot, wrong: Sequence[Product], random: Random
) -> QuestionDraft:
    n = len(SPU_OPTIONS) - 1
    near_products = [p for p in wrong if p.category == shot.product.category][:n]
    far_products = [p for p in wrong if p not in near_products]
    others = [
        random.choice(shots(p, "product"))
        for p in (*near_products, *random.sample(far_products, n - len(near_products)))
    ]
    clues = data.listing_facts(shot.product, "spu") + data.listing_facts(match.product, "spu")
    context = f"Here is a given image: {IMAGE_PLACEHOLDER} " + " ".join(
        f"{option} {IMAGE_PLACEHOLDER}" for option in SPU_OPTIONS
    )
    pictures = (shot, match, *others)
    choices = option_placeholders(len(SPU_OPTIONS), heading="")
    return QuestionDraft(
        "SPU", context, SPU, SPU_FORM, "", pictures, clues, "choice", options=SPU_OPTIONS, choices=choices
    )


def _place_match(draft: QuestionDraft, place: int, random: Random) -> QuestionDraft:
    reference, match, *others = draft.shots
    random.shuffle(others)
    return replace(draft, shots=(reference, *others[:place], match, *others[place:]), answer=LETTERS[place])


def _pair_drafts(
    data: TemplateData, reference: Shot, views: Sequence[Shot], wrong: Sequence[Product], random: Random
) -> Iterator[QuestionDraft]:
    others = [shot for shot in views if shot != reference]
    # Always the first view would mark the pairs of one product: another's is drawn from all of its views.
    for other in others[:1] if data.source == PRODUCTS_FIGURE_8 else random_subset(others, 1, random):
        yield _pair_draft(data, reference, other, "Yes", "")
    if wrong:
        yield _pair_draft(
            data, reference, random.choice(shots(random.choice(wrong[:3]), "product")), "No", "another product"
        )


def _pair_draft(data: TemplateData, shot: Shot, other: Shot, answer: str, conflict: str) -> QuestionDraft:
    clues = data.listing_facts(shot.product, "spu") + data.listing_facts(other.product, "spu")
    return QuestionDraft(
        "SPU",
        image_placeholders(2),
        SPU_PAIR,
        "Answer Yes or No.",
        answer,
        (shot, other),
        clues,
        answer,
        conflict=conflict,
        wording=SPU_EXAMPLE,
    )


def same_sku(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of SKU: one product in two views, two products of one style, and pairs with an attribute withheld.

    The second title lacks the brand or the deciding attributes, and says more often than not what the answer is.
    """
    return balance_strata(shuffle(list(_sku_pairs(data, random, _shorter_titles)), random))


def same_sku_by_pictures(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of SKU in threes that share their titles: the pictures make the answer A, B and C in turn.

    The title of one product lacks the deciding attributes. It is the second in every other three, and the first in the
    rest: only C has no picture with these attributes beside it, and such pictures look alike.
    """
    by_titles: dict[tuple[str, ...], list[QuestionDraft]] = {}
    for draft in shuffle(list(_sku_pairs(data, random, _bare_titles)), random):
        by_titles.setdefault(draft.titles, []).append(draft)
    n = len(SKU_OPTIONS)
    threes: list[list[list[QuestionDraft]]] = []
    for drafts in by_titles.values():
        if {draft.stratum for draft in drafts} == set(LETTERS[:n]):
            balanced = balance_strata(drafts)
            threes.append([balanced[start : start + n] for start in range(0, len(balanced), n)])
    if not threes:
        data.leave_out("SKU", "no two titles have questions with each of the answers A, B and C")
    return [
        _swap_skus(draft) if number % 2 else draft
        for number, three in enumerate(interleave(*threes))
        for draft in three
    ]


def _swap_skus(draft: QuestionDraft) -> QuestionDraft:
    titles = draft.titles[::-1]
    return replace(draft, context=_sku_context(titles), shots=draft.shots[::-1], titles=titles)


def _sku_context(titles: tuple[str, ...]) -> str:
    first, second = (f'SKU: Title "{title}" with product image {IMAGE_PLACEHOLDER}' for title in titles)
    return f"First {first} Second {second}"


def _sku_pairs(data: TemplateData, random: Random, second_titles: Titles) -> Iterator[QuestionDraft]:
    for product in data.products:
        for other in random_subset(data.same_style(product), MAX_PAIRED, random):
            if not _comparable(data, product, other):
                continue
            for left in shots(product, "product"):
                for right_shot in shots(other, "product"):
                    if left.picture.pixels != right_shot.picture.pixels:
                        yield from _sku_drafts(data, left, right_shot, second_titles)


def _comparable(data: TemplateData, product: Product, other: Product) -> bool:
    return all(
        data.is_consistent(item, name)
        for item in (product, other)
        for name in ("brand", *_deciding_attributes(data, product))
    )


def _deciding_attributes(data: TemplateData, product: Product) -> list[str]:
    """Return the attributes that differ among the SKUs of a style, or all of them if the style has only one SKU."""
    family = data.same_style(product)
    names = dict.fromkeys(name for p in family for name in p.attributes)
    varying = [name for name in names if len({p.attributes.get(name, "") for p in family}) > 1]
    return varying or list(names)


def _shorter_titles(product: Product, deciding: Sequence[str]) -> Iterator[str | None]:
    """Yield the title without the brand, and without the deciding attributes."""
    short = remove_value(product.brand, product.title) if product.brand else None
    yield short or product.title
    yield _strip_attributes(product.title, product, deciding)


def _bare_titles(product: Product, deciding: Sequence[str]) -> Iterator[str | None]:
    """Yield the title without the deciding attributes, with and without the brand."""
    bare = _strip_attributes(product.title, product, deciding)
    yield bare
    yield remove_value(product.brand, bare) if product.brand and bare else None


def _sku_drafts(data: TemplateData, left: Shot, right: Shot, second_titles: Titles) -> Iterator[QuestionDraft]:
    deciding = _deciding_attributes(data, left.product)
    if not deciding:
        return
    # Drop identical wordings: two equal titles would give the answer away.
    for title in dict.fromkeys(wording for wording in second_titles(right.product, deciding) if wording):
        if left.product.id == right.product.id and title == left.product.title:
            continue
        clue_pairs = [
            (_attribute_clue(data, left, left.product.title, name), _attribute_clue(data, right, title, name))
            for name in deciding
        ]
        outcome = _conflict_and_answer(clue_pairs)
        if outcome is None:
            continue
        conflict, answer = outcome
        clues = tuple(fact for pair in clue_pairs for fact in pair if fact is not None)
        titles = (left.product.title, title)
        yield QuestionDraft(
            "SKU",
            _sku_context(titles),
            SKU,
            SKU_FORM,
            answer,
            (left, right),
            clues,
            answer,
            options=SKU_OPTIONS,
            conflict=conflict,
            titles=titles,
            order=("ask", "context", "choices", "form"),
            choices=option_placeholders(len(SKU_OPTIONS), "Options:", ")", "\n"),
        )


def _conflict_and_answer(clue_pairs: Sequence[tuple[Clue | None, Clue | None]]) -> tuple[str, str] | None:
    """Return the conflict and the answer: B if one attribute visibly differs, A if all visibly agree, otherwise C.

    None if it is unclear whether an attribute differs.
    """
    verdicts = [compare(clue.value, other.value).verdict for clue, other in clue_pairs if clue and other]
    if "different" in verdicts:
        return "another SKU of the style", "B"
    if "unclear" in verdicts:
        return None
    return ("", "A") if len(verdicts) == len(clue_pairs) else ("deciding attribute withheld", "C")


def _strip_attributes(title: str, product: Product, deciding: Sequence[str]) -> str | None:
    for name in deciding:
        shorter = remove_value(product.attributes.get(name, ""), title) if product.attributes.get(name) else None
        title = shorter or title
    return title


def _attribute_clue(data: TemplateData, shot: Shot, title: str, attribute: str) -> Clue | None:
    """Return the fact by which a picture or its title reveals an attribute, or None."""
    picture_facts = data.facts(shot.product, attribute, shot.picture.view)
    title_facts = [fact for fact in data.facts(shot.product, attribute, "title") if occurs_in(fact.value, title)]
    return (*picture_facts, *title_facts, None)[0]


def brand_category(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of BDC: whether a brand sells the pictured category, for brands whose categories are all known.

    A brand of many categories has more often the answer Yes.
    """
    drafts: list[QuestionDraft] = []
    brands = list(data.brands.values())
    for product in data.products:
        if not data.is_consistent(product, "category"):
            continue
        selling = [brand for brand in brands if product.category in brand.categories]
        for brand in dict.fromkeys(
            (*random_subset(selling, MAX_PAIRED, random), *random_subset(brands, MAX_PAIRED, random))
        ):
            for shot in shots(product, "product"):
                drafts.append(_category_draft(data, brand, shot))
    # The logo on the brand's own product gives the answer away, so other products come first.
    return balance_strata(sorted(shuffle(drafts, random), key=lambda draft: draft.conflict == ""))


def crossed_brands(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of BDC in fours: two brands and two pictures, each of them once with Yes and once with No."""
    sold = [
        (brand, shot)
        for product in data.products
        if data.is_consistent(product, "category")
        for brand in random_subset(
            [b for b in data.brands.values() if product.category in b.categories], MAX_PAIRED, random
        )
        for shot in shots(product, "product")
    ]
    # The logo on the brand's own product gives the answer away, so other products come first.
    sold = sorted(shuffle(sold, random), key=lambda pair: pair[0].name == pair[1].product.brand)
    crossed = cross_pairs(sold, _sell_apart, lambda brand, shot: (brand.name, shot.product.id, shot.picture.view))
    drafts = [_category_draft(data, brand, shot) for brand, shot, _ in crossed]
    if not drafts:
        data.leave_out("BDC", "no two brands sell different categories")
    return drafts


def _sell_apart(pair: tuple[Brand, Shot], other: tuple[Brand, Shot]) -> bool:
    """Return whether neither brand sells what the other's picture shows."""
    (brand, shot), (other_brand, other_shot) = pair, other
    return other_shot.product.category not in brand.categories and shot.product.category not in other_brand.categories


def _category_draft(data: TemplateData, brand: Brand, shot: Shot) -> QuestionDraft:
    product = shot.product
    answer = "Yes" if product.category in brand.categories else "No"
    conflict = "another brand's product" if answer == "No" else "another brand of the category"
    clues = (
        *data.facts(product, "product", shot.picture.view)[:1],
        *[f for f in data.brand_categories(brand.name) if answer == "No" or f.value == product.category],
    )
    categories = f"Categories that {brand.name} sells: {', '.join(brand.categories)}."
    return QuestionDraft(
        "BDC",
        f"Brand_name: {brand.name} Image: {IMAGE_PLACEHOLDER}",
        BDC,
        BDC_FORM,
        answer,
        (shot,),
        clues,
        answer,
        text=categories if brand.show_categories else "",
        conflict="" if product.brand == brand.name else conflict,
        order=("ask", "form", "context"),
    )
