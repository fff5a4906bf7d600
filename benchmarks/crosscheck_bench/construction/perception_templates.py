"""L1 questions on logos, brands, main parts and printed words, with controlled perturbations (section "Question Generation").

The wording is that of Figure 8 and Appendix C. Every template takes the set and a random generator and returns all
drafts that the set allows, in the generator's order. An attribute on which a product's modalities disagree is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import combinations, permutations
from random import Random

from benchmarks.crosscheck_bench.construction.clue_graph import occurs_in, remove_value
from benchmarks.crosscheck_bench.construction.question_drafts import (
    REGION_LABELS,
    QuestionDraft,
    Shot,
    interleave,
    option_placeholders,
)
from benchmarks.crosscheck_bench.construction.template_data import (
    MAX_PAIRED,
    UNKNOWN,
    TemplateData,
    cross_pairs,
    random_subset,
    rotate_answers,
    shots,
    shuffle,
)
from benchmarks.crosscheck_bench.crosscheck_sample import IMAGE_PLACEHOLDER
from benchmarks.crosscheck_bench.sources.product_folders import Product, ProductPicture
from benchmarks.values import compare
from benchmarks.vocabulary import Mark

YES_NO = "Answer Yes or No."

MIN_NAME_SIMILARITY = 0.8
"""The least similarity of two brand names (difflib's ratio) at which one passes for the other."""

LOOK_ALIKE = "look-alike logo"


OPTIONS = 4
"""The number of options of PMO and SP in Figure 8."""

LD = (
    f"Given an authentic brand {IMAGE_PLACEHOLDER} and a brand to be reviewed {IMAGE_PLACEHOLDER}, please determine whether "
    "the brand to be reviewed is the same brand."
)
BR = "Required output: Brand name in English using basic ASCII text format."
BR_FORM = 'Default response for unbranded items: "Unknown".'
PMP = "Determine whether the main product item is clearly identifiable in the provided image."
PMP_FORM = "Answer with option letter only."
PMP_OPTIONS = ("Main product item not identifiable in image", "Main product item clearly identifiable in image")
PMO = "and select the option that best matches the OCR text on the main subject from the following four options."
PMO_FORM = "You must select one of these options and output its option number. No other output is needed!"
PMO_REGION = "What brand name shown in the region?"
BRAND_TEXT_EXAMPLE = "Appendix C, example 3"
BOXED_EXAMPLE = "Appendix C, example 3, with the box of Appendix D"


def logo_diff(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of LD: two logos of one brand, or of two brands; brands with similar names come first."""
    marks: dict[str, list[Shot]] = {}
    for product in data.products:
        if product.brand and data.is_consistent(product, "brand"):
            marks.setdefault(product.brand, []).extend(shots(product, kind="logo"))
    similar_brands = {brand: [other for other in marks if _look_alike(brand, other)] for brand in marks}
    drafts: list[QuestionDraft] = []
    for brand, own_marks in marks.items():
        others = [other for other in random_subset(list(marks), MAX_PAIRED + 1, random) if other != brand]
        for authentic in own_marks:
            for other in dict.fromkeys((brand, *similar_brands[brand], *others)):
                for reviewed in random_subset(marks[other], MAX_PAIRED, random):
                    if authentic.picture.pixels != reviewed.picture.pixels:
                        drafts.append(_logo_draft(data, authentic, reviewed))
    drafts = shuffle(drafts, random)
    return data.balance("LD", sorted(drafts, key=lambda draft: draft.conflict != LOOK_ALIKE))


def crossed_logos(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of LD in fours: two logos of one brand and two of another, brands with similar names first.

    Each logo is once with its own brand's and once with the other's, so that no logo alone says anything about the answer.
    """
    logos: dict[str, dict[str, Shot]] = {}
    for product in data.products:
        if product.brand and data.is_consistent(product, "brand"):
            logos.setdefault(product.brand, {}).update(
                (shot.picture.pixels, shot) for shot in shots(product, kind="logo")
            )
    pairs = shuffle([pair for brand in logos.values() for pair in permutations(brand.values(), 2)], random)
    similar = cross_pairs(pairs, _similar_logos, _pixels)
    paired = {_pixels(*pair) for *pair, same in similar if same}
    others = cross_pairs([pair for pair in pairs if _pixels(*pair) not in paired], _logos_apart, _pixels)
    if not similar and not others:
        data.leave_out("LD", "no two brands have two logos each")
    return [_logo_draft(data, *pair) for *pair, _ in (*similar, *others)]


def _logos_apart(pair: tuple[Shot, Shot], other: tuple[Shot, Shot]) -> bool:
    """Return whether two pairs of logos are of two brands and share no picture."""
    pictures = {shot.picture.pixels for shot in (*pair, *other)}
    return pair[0].product.brand != other[0].product.brand and len(pictures) == len((*pair, *other))


def _similar_logos(pair: tuple[Shot, Shot], other: tuple[Shot, Shot]) -> bool:
    return _look_alike(pair[0].product.brand, other[0].product.brand) and _logos_apart(pair, other)


def _pixels(authentic: Shot, reviewed: Shot) -> tuple[str, str]:
    return authentic.picture.pixels, reviewed.picture.pixels


def _logo_draft(data: TemplateData, authentic: Shot, candidate: Shot) -> QuestionDraft:
    brand, reviewed = authentic.product.brand, candidate.product.brand
    conflict = "" if brand == reviewed else LOOK_ALIKE if _look_alike(brand, reviewed) else "another brand's logo"
    answer = "No" if conflict else "Yes"
    clues = data.listing_facts(authentic.product, "brand") + data.listing_facts(candidate.product, "brand")
    return QuestionDraft("LD", "", LD, YES_NO, answer, (authentic, candidate), clues, answer, conflict=conflict)


@cache
def _look_alike(name: str, other: str) -> bool:
    matcher = SequenceMatcher(None, name.casefold(), other.casefold())
    # The first two are upper bounds of the third, and much faster.
    measures = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return name != other and all(measure() >= MIN_NAME_SIMILARITY for measure in measures)


def brand_recognition(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of BR: the original title, the title without the brand, or with a second brand as "works with"."""
    kinds: dict[str, list[QuestionDraft]] = {
        "": [],
        "brand taken out of the title": [],
        "another brand put into the title": [],
    }
    for product in data.products:
        if not data.is_consistent(product, "brand") or not product.brand.isascii():
            continue
        views = shots(product, "brand") if product.brand else _unbranded(product)
        bare = remove_value(product.brand, product.title) if product.brand else product.title
        # A second brand in the title would make the question ambiguous.
        if not views or bare is None or any(occurs_in(name, bare) for name in data.brand_names):
            continue
        others = [name for name in data.brand_names if name != product.brand]
        titles = {"": product.title, "brand taken out of the title": bare if product.brand else ""}
        if others:
            titles["another brand put into the title"] = f"{bare}, works with {random.choice(others)}"
        for conflict, title in titles.items():
            if title:
                kinds[conflict].append(_brand_draft(data, random.choice(views), title, conflict))
    return interleave(*(shuffle(drafts, random) for drafts in kinds.values()))


def _unbranded(product: Product) -> list[Shot]:
    attributes = ("brand", "minor brand", "other brand", "covered brand")
    return [shot for shot in shots(product, "product") if not any(shot.picture.shows(name) for name in attributes)]


def _brand_draft(data: TemplateData, shot: Shot, title: str, conflict: str) -> QuestionDraft:
    product = shot.product
    attribute = "brand" if product.brand else "product"
    clues = data.facts(product, attribute, shot.picture.view) + data.listing_facts(product, "brand")
    answer = product.brand or UNKNOWN
    context = f'Title: "{title}" - Visual reference: {IMAGE_PLACEHOLDER}'
    return QuestionDraft("BR", context, BR, BR_FORM, answer, (shot,), clues, answer, conflict=conflict, titles=(title,))


def main_part(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of PMP: the product's own title, a title of another category, or the brand's logo as the picture."""
    drafts: list[QuestionDraft] = []
    for product in data.products:
        views = shots(product, "product")
        if not views or not data.is_consistent(product, "category"):
            continue
        shot = random.choice(views)
        drafts.append(_main_part_draft(data, shot, product, "B", ""))
        others = [
            other for other in data.other_products(product, random) if not _may_match(shot.picture, product, other)
        ]
        if others:
            drafts.append(_main_part_draft(data, shot, random.choice(others), "A", "title of another product"))
        for mark in shots(product, kind="logo"):
            drafts.append(_main_part_draft(data, mark, product, "A", "logo in place of the product"))
    return data.balance("PMP", shuffle(drafts, random), "AB")


def _may_match(picture: ProductPicture, product: Product, other: Product) -> bool:
    """Return whether the picture might show what the other product's title describes."""
    things = ("product", "part", "prop", "brand", "minor brand", "other brand")
    values = {product.category, *(value for name in things for value in picture.shows(name))}
    words = f"{other.title} {other.category}"
    return any(occurs_in(seen_value, words) or occurs_in(other.category, seen_value) for seen_value in values)


def _main_part_draft(data: TemplateData, shot: Shot, described: Product, answer: str, conflict: str) -> QuestionDraft:
    clues = data.facts(shot.product, "product", shot.picture.view) + data.listing_facts(described, "category")
    context = f'Image data: {IMAGE_PLACEHOLDER} Item description: "{described.title}"'
    return QuestionDraft(
        "PMP",
        context,
        PMP,
        PMP_FORM,
        answer,
        (shot,),
        clues,
        answer,
        options=PMP_OPTIONS,
        choices=option_placeholders(len(PMP_OPTIONS), mark="."),
        conflict=conflict,
        titles=(described.title,),
    )


def main_part_ocr(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of PMO: the printed words among three perturbed readings; also the brand in a region.

    A reading is perturbed by doubling a letter, dropping a word, or taking another product's words, as in Figure 8. The
    printed words are then those most like the others.
    """
    printed: list[QuestionDraft] = []
    others = {
        words: shot.product.id
        for p in data.products
        for shot in shots(p, "text")
        for words in shot.picture.shows("text")
    }
    for product in data.products:
        for shot in shots(product, "text"):
            wrong_readings = _misreadings(shot.picture.shows("text"), list(others), random)
            if wrong_readings:
                options = (shot.picture.shows("text")[0], *wrong_readings)
                printed.append(ocr_draft(data, shot, options, options[0], product.title))
    return interleave(rotate_answers(shuffle(printed, random), random), *brand_regions(data, random))


def brand_regions(data: TemplateData, random: Random) -> tuple[list[QuestionDraft], list[QuestionDraft]]:
    """Return drafts of PMO about the brand in a region: a logo, and a box on the product.

    The question is Appendix C's third example; Appendix D has "bounding box markup when needed (e.g., for A6 tasks)".
    """
    region: list[QuestionDraft] = []
    marked: list[QuestionDraft] = []
    for product in data.products:
        if product.brand and data.is_consistent(product, "brand"):
            region += [_region_draft(data, shot) for shot in shots(product, "brand", kind="logo")]
            marked += [_region_draft(data, shot) for shot in _with_brand_boxed(shots(product, "brand", "product"))[:1]]
    return shuffle(region, random), shuffle(marked, random)


def _misreadings(texts: Sequence[str], candidates: Sequence[str], random: Random) -> list[str]:
    """Return three readings of the first text that match none of the visible texts; () if there are not enough."""
    words = texts[0].split()
    doubled = [i for i, letter in enumerate(texts[0]) if letter.isalpha()]
    if len(words) < 2 or not doubled:
        return []
    at, drop = random.choice(doubled), random.randrange(1, len(words))
    letter = texts[0][: at + 1] + texts[0][at] + texts[0][at + 1 :]
    shorter = " ".join(words[:drop] + words[drop + 1 :])
    others = [other for other in random_subset(candidates, MAX_PAIRED, random) if other not in texts]
    wrong_readings = [letter, shorter, *random.sample(others, min(1, len(others)))]
    pairs = combinations([*wrong_readings, *dict.fromkeys(texts)], 2)
    are_distinct = all(compare(reading, other).verdict != "same" for reading, other in pairs)
    return wrong_readings if len(wrong_readings) == OPTIONS - 1 and are_distinct else []


def ocr_draft(
    data: TemplateData, shot: Shot, options: tuple[str, ...], answer: str, title: str, conflict: str = ""
) -> QuestionDraft:
    """Return a draft of PMO about the words in a picture; ``title`` is the displayed one."""
    context = f"This is a product image: {IMAGE_PLACEHOLDER} The title of the product is: {title}"
    clues = data.facts(shot.product, "text", shot.picture.view)
    return QuestionDraft(
        "PMO",
        context,
        PMO,
        PMO_FORM,
        answer,
        (shot,),
        clues,
        "option",
        options=options,
        conflict=conflict,
        titles=(title,),
        choices=option_placeholders(OPTIONS),
    )


def _with_brand_boxed(views: Sequence[Shot]) -> list[Shot]:
    return [
        Shot(shot.product, shot.picture, (Mark(REGION_LABELS["brand"], item.box),))
        for shot in views
        for item in shot.picture.visible
        if item.attribute == "brand" and item.box is not None
    ]


def _region_draft(data: TemplateData, shot: Shot) -> QuestionDraft:
    clues = data.facts(shot.product, "brand", shot.picture.view)
    wording = BOXED_EXAMPLE if shot.marks else BRAND_TEXT_EXAMPLE
    answer = shot.product.brand
    return QuestionDraft("PMO", IMAGE_PLACEHOLDER, PMO_REGION, "", answer, (shot,), clues, "open", wording=wording)
