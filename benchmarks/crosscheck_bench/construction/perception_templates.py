"""L1 by templates with controlled perturbations (section "Question Generation"); the wordings are Figure 8's and Appendix C's.

Every template takes the set and a random generator and gives all drafts that the set allows, in the generator's order. An
attribute that a product's modalities disagree about is not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from random import Random

from benchmarks.crosscheck_bench.constants import LETTERS
from benchmarks.crosscheck_bench.construction.clue_graph import Clue, same, stands_in, without
from benchmarks.crosscheck_bench.construction.drafts import QuestionDraft, Shot, by_turns, interleaved
from benchmarks.crosscheck_bench.construction.template_data import (
    MOST_OTHERS,
    UNKNOWN,
    Template,
    TemplateData,
    frames,
    placed,
    shots,
    shuffled,
    some,
)
from benchmarks.crosscheck_bench.sample import PLACE
from benchmarks.crosscheck_bench.sources.products import Price, Product, ProductPicture
from benchmarks.text.answer_equality import normalise

YES_NO = "Answer Yes or No."

LOOKS_ALIKE = 0.8
"""How alike two brands' names are (difflib's ratio) for one to pass for the other."""

LOOK_ALIKE = "look-alike logo"

MOST_FRAMES = 6
"""Key frames that Figure 8 shows for PD*."""

OPTIONS = 4
"""Options of PMO and SP in Figure 8."""

LD = (
    f"Given an authentic brand {PLACE} and a brand to be reviewed {PLACE}, please determine whether the brand to be reviewed is "
    "the same brand."
)
BR = "Required output: Brand name in English using basic ASCII text format."
BR_FORM = 'Default response for unbranded items: "Unknown".'
PMP = "Determine whether the main product item is clearly identifiable in the provided image."
PMP_FORM = "Answer with option letter only."
PMP_OPTIONS = ("Main product item not identifiable in image", "Main product item clearly identifiable in image")
PMO = "and select the option that best matches the OCR text on the main subject from the following four options."
PMO_FORM = "You must select one of these options and output its option number. No other output is needed!"
PMO_REGION = "What brand name shown in the region?"
PD = (
    "You need to carefully analyze the video slices and determine what product is being introduced, and whether it is the "
    "candidate product."
)
SP = "Please select the most reasonable price from the following 4 options."
SP_FORM = 'Your output needs to be one of "A", "B", "C", "D". No other output is required!'


def logo_diff(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """LD: two marks of one brand, or of two; those of brands that look alike come first."""
    marks: dict[str, list[Shot]] = {}
    for product in material.products:
        if product.brand and material.sound(product, "brand"):
            marks.setdefault(product.brand, []).extend(shots(product, kind="logo"))
    alike = {brand: [other for other in marks if _alike(brand, other)] for brand in marks}
    drafts: list[QuestionDraft] = []
    for brand, own in marks.items():
        strange = [other for other in some(list(marks), MOST_OTHERS + 1, random) if other != brand]
        for one in own:
            for other in dict.fromkeys((brand, *alike[brand], *strange)):
                for reviewed in some(marks[other], MOST_OTHERS, random):
                    if one.picture.pixels != reviewed.picture.pixels:
                        drafts.append(_compared(material, one, reviewed))
    drafts = shuffled(drafts, random)
    return by_turns(sorted(drafts, key=lambda draft: draft.conflict != LOOK_ALIKE))


def _compared(material: TemplateData, one: Shot, other: Shot) -> QuestionDraft:
    brand, reviewed = one.product.brand, other.product.brand
    conflict = "" if brand == reviewed else LOOK_ALIKE if _alike(brand, reviewed) else "another brand's logo"
    answer = "No" if conflict else "Yes"
    clues = material.listing(one.product, "brand") + material.listing(other.product, "brand")
    return QuestionDraft("LD", "", LD, YES_NO, answer, (one, other), clues, answer, conflict=conflict)


@cache
def _alike(one: str, other: str) -> bool:
    matcher = SequenceMatcher(None, one.casefold(), other.casefold())
    # The first two are upper bounds of the third, and much faster.
    measures = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return one != other and all(measure() >= LOOKS_ALIKE for measure in measures)


def brand_recognition(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """BR: the title as it is, without the brand, or with another brand that the product is said to work with."""
    kinds: dict[str, list[QuestionDraft]] = {
        "": [],
        "brand taken out of the title": [],
        "another brand put into the title": [],
    }
    for product in material.products:
        if not material.sound(product, "brand") or not product.brand.isascii():
            continue
        views = shots(product, "brand") if product.brand else _unbranded(product)
        bare = without(product.brand, product.title) if product.brand else product.title
        # A second brand in the title would leave it open which one is asked for.
        if not views or bare is None or any(stands_in(name, bare) for name in material.names):
            continue
        others = [name for name in material.names if name != product.brand]
        titles = {"": product.title, "brand taken out of the title": bare if product.brand else ""}
        if others:
            titles["another brand put into the title"] = f"{bare}, works with {random.choice(others)}"
        for conflict, title in titles.items():
            if title:
                kinds[conflict].append(_brand_of(material, random.choice(views), title, conflict))
    return interleaved(*(shuffled(drafts, random) for drafts in kinds.values()))


def _unbranded(product: Product) -> list[Shot]:
    every = ("brand", "minor brand", "other brand", "covered brand")
    return [shot for shot in shots(product, "product") if not any(shot.picture.shows(name) for name in every)]


def _brand_of(material: TemplateData, shot: Shot, title: str, conflict: str) -> QuestionDraft:
    product = shot.product
    told = "brand" if product.brand else "product"
    clues = material.facts(product, told, shot.picture.view) + material.listing(product, "brand")
    answer = product.brand or UNKNOWN
    given = f'Title: "{title}" - Visual reference: {PLACE}'
    return QuestionDraft("BR", given, BR, BR_FORM, answer, (shot,), clues, answer, conflict=conflict, titles=(title,))


def main_part(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """PMP: the product's own title; the title of a product of another category; its brand's mark in place of its picture."""
    drafts: list[QuestionDraft] = []
    for product in material.products:
        views = shots(product, "product")
        if not views or not material.sound(product, "category"):
            continue
        shot = random.choice(views)
        drafts.append(_identifiable(material, shot, product, "B", ""))
        others = [other for other in material.others(product, random) if not _akin(shot.picture, product, other)]
        if others:
            drafts.append(_identifiable(material, shot, random.choice(others), "A", "title of another product"))
        for mark in shots(product, kind="logo"):
            drafts.append(_identifiable(material, mark, product, "A", "logo in place of the product"))
    return by_turns(shuffled(drafts, random))


def _akin(picture: ProductPicture, product: Product, other: Product) -> bool:
    """Whether what the other product's title describes might be seen in the picture."""
    things = ("product", "part", "prop", "brand", "minor brand", "other brand")
    seen = {product.category, *(value for name in things for value in picture.shows(name))}
    words = f"{other.title} {other.category}"
    return any(stands_in(each, words) or stands_in(other.category, each) for each in seen)


def _identifiable(material: TemplateData, shot: Shot, described: Product, answer: str, conflict: str) -> QuestionDraft:
    clues = material.facts(shot.product, "product", shot.picture.view) + material.listing(described, "category")
    given = f'Image data: {PLACE} Item description: "{described.title}"'
    return QuestionDraft(
        "PMP",
        given,
        PMP,
        PMP_FORM,
        answer,
        (shot,),
        clues,
        answer,
        options=PMP_OPTIONS,
        conflict=conflict,
        titles=(described.title,),
    )


def main_part_ocr(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """PMO: the printed words among three that are perturbed (a letter doubled, a word dropped, another product's words);
    and, by Appendix C's third example, the brand in the region of a logo."""
    printed: list[QuestionDraft] = []
    region: list[QuestionDraft] = []
    others = {
        words: shot.product.id
        for p in material.products
        for shot in shots(p, "text")
        for words in shot.picture.shows("text")
    }
    for product in material.products:
        for shot in shots(product, "text"):
            wrong = _misread(shot.picture.shows("text"), list(others), random)
            if wrong:
                printed.append(_reading(material, shot, wrong))
        if product.brand and material.sound(product, "brand"):
            region += [_region(material, shot) for shot in shots(product, "brand", kind="logo")]
    return interleaved(placed(shuffled(printed, random), random), shuffled(region, random))


def _misread(shown: Sequence[str], every: Sequence[str], random: Random) -> list[str]:
    """Three readings of the first text that none of what is shown is; () where there are not so many."""
    words = shown[0].split()
    doubled = [i for i, letter in enumerate(shown[0]) if letter.isalpha()]
    if len(words) < 2 or not doubled:
        return []
    at, drop = random.choice(doubled), random.randrange(1, len(words))
    letter = shown[0][: at + 1] + shown[0][at] + shown[0][at + 1 :]
    shorter = " ".join(words[:drop] + words[drop + 1 :])
    strange = [other for other in some(every, MOST_OTHERS, random) if other not in shown]
    wrong = [letter, shorter, *random.sample(strange, min(1, len(strange)))]
    distinct = {normalise(each) for each in (*wrong, *shown)}
    return wrong if len(wrong) == OPTIONS - 1 and len(distinct) == len(wrong) + len(set(shown)) else []


def _reading(material: TemplateData, shot: Shot, wrong: Sequence[str]) -> QuestionDraft:
    product, truth = shot.product, shot.picture.shows("text")[0]
    given = f"This is a product image: {PLACE} The title of the product is: {product.title}"
    clues = material.facts(product, "text", shot.picture.view)
    return QuestionDraft(
        "PMO", given, PMO, PMO_FORM, truth, (shot,), clues, "option", options=(truth, *wrong), titles=(product.title,)
    )


def _region(material: TemplateData, shot: Shot) -> QuestionDraft:
    clues = material.facts(shot.product, "brand", shot.picture.view)
    return QuestionDraft("PMO", PLACE, PMO_REGION, "", shot.product.brand, (shot,), clues, "open")


def product_diff(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """PD*: a live slice and a picture of its product, or of another one; those of its own category come first."""
    drafts: list[QuestionDraft] = []
    for product in material.products:
        slice_ = frames(product, MOST_FRAMES)
        if not slice_:
            continue
        for other in (product, *material.others(product, random)):
            for candidate in shots(other, "product"):
                found = _difference(material, slice_, candidate)
                if found is not None:
                    drafts.append(_match(slice_, candidate, *found))
    return by_turns(sorted(shuffled(drafts, random), key=lambda draft: draft.conflict == "another product"))


def _difference(material: TemplateData, slice_: Sequence[Shot], candidate: Shot) -> tuple[str, tuple[Clue, ...]] | None:
    """Which difference is to be seen between a slice and a candidate ("" for one product), and the clues; None for none."""
    product, other = slice_[0].product, candidate.product
    views = [shot.picture.view for shot in slice_]
    for attribute in ("product", *product.attributes):
        if not material.sound(product, attribute) or not material.sound(other, attribute):
            return None
    if product.id == other.id:
        seen = material.facts(product, "product", *views)[:1]
        return ("", seen + material.facts(other, "product", candidate.picture.view)) if seen else None
    kind = "another product of the category" if product.category == other.category else "another product"
    for attribute in ("product", *product.attributes):
        left = material.facts(product, attribute, *views)
        right = material.facts(other, attribute, candidate.picture.view)
        if left and right and not same(attribute, left[0].value, right[0].value):
            return kind, (left[0], right[0])
    return None


def _match(slice_: tuple[Shot, ...], candidate: Shot, conflict: str, clues: tuple[Clue, ...]) -> QuestionDraft:
    n = len(slice_)
    video = " ".join(f"image{i} {PLACE}" for i in range(1, n + 1))
    given = f"The first to {_ordinal(n)} images are multi-frame slices of a video."
    shown = f"The [Video Product] are {video}. The [Candidate Product] is image{n + 1} {PLACE}."
    answer = "No" if conflict else "Yes"
    return QuestionDraft(
        "PD*", given, f"{PD} {shown}", YES_NO, answer, (*slice_, candidate), clues, answer, conflict=conflict
    )


def _ordinal(n: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(n, f"{n}th")


def style_price(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """SP: the price among its doubles and halves, as in Figure 8 ($7, $14, $28, $56), at each place of the ladder in turn."""
    found: list[tuple[Shot, Price]] = []
    for product in material.products:
        if product.price is not None and product.brand and material.sound(product, "price"):
            views = shots(product, "product", "price") or shots(product, "product")
            found += [(shot, product.price) for shot in views[:1]]
    drafts: list[QuestionDraft] = []
    for number, (shot, price) in enumerate(random.sample(found, len(found))):
        for place in (number % OPTIONS, *range(OPTIONS)):
            ladder = _ladder(price, place, random)
            if ladder:
                drafts.append(_pricing(material, shot, ladder, place))
                break
    return drafts


def _ladder(price: Price, place: int, random: Random) -> tuple[str, ...]:
    """Four prices, each about the double of the one before, the true one at ``place``; () where they cannot be told apart.

    All end as the true one does, so that an ending such as .99 tells nothing. Where the true one has no whole halves, the
    others are moved by up to 15%: rounded halves would show where the ladder was begun.
    """
    whole = int(price.amount)
    exact = whole % 2**place == 0
    steps = [whole * 2.0 ** (step - place) for step in range(OPTIONS)]
    moved = steps if exact else [n if n == whole else round(n * random.uniform(0.85, 1.15)) for n in steps]
    if any(b <= a for a, b in zip([0, *moved], moved, strict=False)):
        return ()
    return tuple(str(Price(round(n + price.amount - whole, 2), price.currency)) for n in moved)


def _pricing(material: TemplateData, shot: Shot, ladder: tuple[str, ...], place: int) -> QuestionDraft:
    product = shot.product
    given = f'{PLACE} What is the specific pricing information for this "{product.title}" product from {product.brand} brand?'
    clues = material.facts(product, "price", shot.picture.view, "listing")
    letter = LETTERS[place]
    return QuestionDraft(
        "SP", given, SP, SP_FORM, letter, (shot,), clues, letter, options=ladder, titles=(product.title,)
    )


L1: Mapping[str, Template] = {
    "LD": logo_diff,
    "BR": brand_recognition,
    "PMP": main_part,
    "PMO": main_part_ocr,
    "PD*": product_diff,
    "SP": style_price,
}
"""The templates of L1, by task, in Table 1's order."""
