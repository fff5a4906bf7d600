"""L1 questions whose task or perturbation only the appendices give: titles (Appendix C) and swapped prices (Appendix E)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from benchmarks.crosscheck_bench.construction.clue_graph import Clue, occurs_in, remove_value
from benchmarks.crosscheck_bench.construction.perception_templates import OPTIONS, YES_NO
from benchmarks.crosscheck_bench.construction.product_templates import MAX_KEY_FRAMES, price_draft, priced_shots
from benchmarks.crosscheck_bench.construction.question_drafts import QuestionDraft, Shot, image_placeholders, interleave
from benchmarks.crosscheck_bench.construction.template_data import TemplateData, cross_pairs, key_frames, shuffle
from benchmarks.crosscheck_bench.sources.product_folders import Price, Product
from benchmarks.values import compare

TITLE_EXAMPLE = "Appendix C, example 1"
TITLE = "Does the image match the product title?"

OTHER_TITLE = "title of another product"
MISMATCHED_BRAND = "mismatched brand"
SWAPPED_PRICE = "swapped price"

Frames = tuple[Shot, ...]
TitledSlice = tuple[Frames, Product]
"""Key frames, and the product whose title goes with them."""


def title_consistency(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of PD*: a slice with its product's title, another product's, or its own with another brand.

    The wording is Appendix C's first example. It tests A4, which of the tasks of L1 only PD* needs; PD* has several
    frames, so the slice stands in place of the example's one image.
    """
    drafts: list[QuestionDraft] = []
    for frames, product in _slices(data):
        drafts.append(_title_draft(data, frames, product, ""))
        others = [other for other in data.other_products(product, random) if _is_elsewhere(frames, other)]
        if others:
            drafts.append(_title_draft(data, frames, random.choice(others), OTHER_TITLE))
        drafts += _mismatched_brand(data, product, frames, random)
    return data.balance("PD*, titles", shuffle(drafts, random))


def crossed_titles(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of PD* in fours: two slices and the titles of their products, each once with Yes and once with No.

    Up to half of the slices are paired with one of their category whose title names another brand. A title
    with a brand put into it would be the title of no product, and so be known to be wrong.
    """
    own = shuffle(list(_slices(data)), random)

    def brands_differ(pair: TitledSlice, other: TitledSlice) -> bool:
        return _names_other_brand(data, pair[0], other[1]) and _names_other_brand(data, other[0], pair[1])

    mismatched = cross_pairs(own, brands_differ, _ids)[: len(own) // 4 * 4 or 4]
    used = {product.id for _, product, _ in mismatched}
    apart = cross_pairs([pair for pair in own if pair[1].id not in used], _are_elsewhere, _ids)
    if not mismatched and not apart:
        data.leave_out("PD*, titles", "no two slices have titles that fit only one of them")
    return interleave(
        *(
            [_title_draft(data, frames, product, "" if same else conflict) for frames, product, same in crossed]
            for crossed, conflict in ((mismatched, MISMATCHED_BRAND), (apart, OTHER_TITLE))
        )
    )


def _slices(data: TemplateData) -> Iterator[TitledSlice]:
    """Yield the key frames of each product on which its modalities agree, with the product."""
    for product in data.products:
        frames = key_frames(product, MAX_KEY_FRAMES)
        names = ("product", "category", "brand", *product.attributes)
        if frames and all(data.is_consistent(product, name) for name in names) and _seen(data, frames, "product"):
            yield frames, product


def _seen(data: TemplateData, frames: Sequence[Shot], attribute: str) -> tuple[Clue, ...]:
    """Return the first fact of an attribute that the frames of a product show; () if they show none."""
    return data.facts(frames[0].product, attribute, *(shot.picture.view for shot in frames))[:1]


def _ids(frames: Sequence[Shot], product: Product) -> tuple[str, str]:
    return frames[0].product.id, product.id


def _are_elsewhere(pair: TitledSlice, other: TitledSlice) -> bool:
    return _is_elsewhere(pair[0], other[1]) and _is_elsewhere(other[0], pair[1])


def _names_other_brand(data: TemplateData, frames: Sequence[Shot], other: Product) -> bool:
    """Return whether a title of the same category names a brand that the frames, which show their own, do not show."""
    return (
        other.category == frames[0].product.category
        and occurs_in(other.brand, other.title)
        and bool(_seen(data, frames, "brand"))
        and _shows_no_brand(frames, other.brand)
    )


def _shows_no_brand(frames: Sequence[Shot], brand: str) -> bool:
    visible = (item.value for shot in frames for item in shot.picture.visible)
    return all(compare(brand, value).verdict == "different" and not occurs_in(brand, value) for value in visible)


def _is_elsewhere(frames: Sequence[Shot], other: Product) -> bool:
    """Return whether the frames show nothing that the other product's title names."""
    visible = {item.value for shot in frames for item in shot.picture.visible}
    words = f"{other.title} {other.category}"
    return not any(occurs_in(value, words) or occurs_in(other.category, value) for value in visible)


def _mismatched_brand(data: TemplateData, product: Product, frames: Frames, random: Random) -> list[QuestionDraft]:
    """Return the draft whose title names a brand that the frames do not show, if they show the product's own."""
    bare = remove_value(product.brand, product.title) if product.brand else None
    others = [name for name in data.brand_names if _shows_no_brand(frames, name)]
    if (
        not _seen(data, frames, "brand")
        or bare is None
        or not others
        or any(occurs_in(name, bare) for name in data.brand_names)
    ):
        return []
    altered = replace(product, title=f"{random.choice(others)} {bare}")
    return [_title_draft(data, frames, altered, MISMATCHED_BRAND)]


def _title_draft(data: TemplateData, frames: Frames, titled: Product, conflict: str) -> QuestionDraft:
    answer = "No" if conflict else "Yes"
    context = f'{image_placeholders(len(frames))} Title: "{titled.title}"'
    attribute = {OTHER_TITLE: "category", MISMATCHED_BRAND: "brand"}.get(conflict)
    clues = _seen(data, frames, "brand" if attribute == "brand" else "product")
    clues += data.listing_facts(titled, attribute) if attribute else ()
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
        titles=(titled.title,),
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
