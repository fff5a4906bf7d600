"""L1 questions whose task or perturbation only the appendices give: titles (Appendix C) and swapped prices (Appendix E)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from benchmarks.crosscheck_bench.construction.clue_graph import Clue, occurs_in, remove_value
from benchmarks.crosscheck_bench.construction.drafts import QuestionDraft, Shot, image_placeholders
from benchmarks.crosscheck_bench.construction.perception_templates import (
    MAX_KEY_FRAMES,
    OPTIONS,
    YES_NO,
    price_draft,
    priced_shots,
)
from benchmarks.crosscheck_bench.construction.template_data import TemplateData, key_frames, shuffle
from benchmarks.crosscheck_bench.sources.products import Price, Product
from benchmarks.values import compare

TITLE_EXAMPLE = "Appendix C, example 1"
TITLE = "Does the image match the product title?"

OTHER_TITLE = "title of another product"
MISMATCHED_BRAND = "mismatched brand"
SWAPPED_PRICE = "swapped price"


def title_consistency(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of PD*: a slice with its product's title, another product's, or its own with another brand.

    The wording is Appendix C's first example. It tests A4, which of the tasks of L1 only PD* needs; PD* has several
    frames, so the slice stands in place of the example's one image.
    """
    drafts: list[QuestionDraft] = []
    for product in data.products:
        frames = key_frames(product, MAX_KEY_FRAMES)
        names = ("product", "category", "brand", *product.attributes)
        if not frames or not all(data.is_consistent(product, name) for name in names):
            continue
        views = [shot.picture.view for shot in frames]
        seen_product = data.facts(product, "product", *views)[:1]
        if not seen_product:
            continue
        drafts.append(_title_draft(frames, product.title, "", seen_product))
        others = [other for other in data.other_products(product, random) if _is_elsewhere(frames, other)]
        if others:
            other = random.choice(others)
            clues = (*seen_product, *data.listing_facts(other, "category"))
            drafts.append(_title_draft(frames, other.title, OTHER_TITLE, clues))
        drafts += _mismatched_brand(data, product, frames, random)
    return data.balance("PD*, titles", shuffle(drafts, random))


def _is_elsewhere(frames: Sequence[Shot], other: Product) -> bool:
    """Return whether the frames show nothing that the other product's title names."""
    visible = {item.value for shot in frames for item in shot.picture.visible}
    words = f"{other.title} {other.category}"
    return not any(occurs_in(value, words) or occurs_in(other.category, value) for value in visible)


def _mismatched_brand(
    data: TemplateData, product: Product, frames: tuple[Shot, ...], random: Random
) -> list[QuestionDraft]:
    """Return the draft whose title names a brand that the frames do not show, if they show the product's own."""
    views = [shot.picture.view for shot in frames]
    seen_brand = data.facts(product, "brand", *views)[:1]
    bare = remove_value(product.brand, product.title) if product.brand else None
    visible = [item.value for shot in frames for item in shot.picture.visible]
    others = [
        name
        for name in data.brand_names
        if all(compare(name, value).verdict == "different" and not occurs_in(name, value) for value in visible)
    ]
    if not seen_brand or bare is None or not others or any(occurs_in(name, bare) for name in data.brand_names):
        return []
    title = f"{random.choice(others)} {bare}"
    return [_title_draft(frames, title, MISMATCHED_BRAND, (*seen_brand, *data.listing_facts(product, "brand")))]


def _title_draft(frames: tuple[Shot, ...], title: str, conflict: str, clues: tuple[Clue, ...]) -> QuestionDraft:
    answer = "No" if conflict else "Yes"
    context = f'{image_placeholders(len(frames))} Title: "{title}"'
    return QuestionDraft(
        "PD*",
        context,
        TITLE,
        YES_NO,
        answer,
        frames,
        clues,
        answer,
        conflict=conflict,
        titles=(title,),
        wording=TITLE_EXAMPLE,
    )


def swapped_prices(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of SP whose wrong options are prices of other products ("swapped prices", Appendix E).

    The options ascend as in Figure 8. The true price is put at the place used least so far, products with the fewest
    possible places first: the cheapest product's price can only be A.
    """
    candidates: list[tuple[Shot, Price, list[Price], list[Price], list[int]]] = []
    priced = priced_shots(data)
    for shot, price in random.sample(priced, len(priced)):
        amounts = {p.amount: p for _, p in priced if p.currency == price.currency and p.amount != price.amount}
        below = [p for amount, p in sorted(amounts.items()) if amount < price.amount]
        above = [p for amount, p in sorted(amounts.items()) if amount > price.amount]
        places = [n for n in range(OPTIONS) if n <= len(below) and OPTIONS - 1 - n <= len(above)]
        candidates.append((shot, price, below, above, places))
    drafts: list[QuestionDraft] = []
    used: Counter[int] = Counter()
    for shot, price, below, above, places in sorted(candidates, key=lambda candidate: len(candidate[-1])):
        if not places:
            continue
        place = min(places, key=lambda n: used[n])
        used[place] += 1
        chosen = [*random.sample(below, place), price, *random.sample(above, OPTIONS - 1 - place)]
        options = tuple(str(p) for p in sorted(chosen, key=lambda p: p.amount))
        drafts.append(price_draft(data, shot, options, place, SWAPPED_PRICE))
    return shuffle(drafts, random)
