"""L2 without a model: the four integration tasks by templates; the wordings are Figure 8's, completed where it breaks off.

They are also what a model that writes questions is given: pictures, clues and the answer that must follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from benchmarks.crosscheck_bench.constants import LETTERS
from benchmarks.crosscheck_bench.construction.clue_graph import Clue, same, stands_in, without
from benchmarks.crosscheck_bench.construction.drafts import QuestionDraft, Shot, by_turns, interleaved, places
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
from benchmarks.crosscheck_bench.sources.products import Product

MOST_FRAMES = 4
"""Key frames that Figure 8 shows for BR*."""

BR = "Please output the brand of the product introduced in this video."
BR_FORM = 'If there is no brand, output "Unknown." Please output the brand name only, and nothing else!'
SPU = (
    "Note that the image may contain irrelevant information such as backgrounds; please select the product of the same SPU as "
    "the given product image."
)
SPU_FORM = 'Your output should only select one answer from "A", "B", "C", "D".'
SPU_OPTIONS = ("No. 1", "No. 2", "No. 3", "No. 4")
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


def content_brand(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """BR*: the brand of what a live slice introduces; "Unknown" for an unbranded product, whatever hangs behind it."""
    drafts: list[QuestionDraft] = []
    for product in material.products:
        slice_ = frames(product, MOST_FRAMES)
        if not slice_ or not material.sound(product, "brand"):
            continue
        views = [shot.picture.view for shot in slice_]
        seen = material.facts(product, "brand", *views)
        if product.brand and not seen:
            continue
        behind = any(shot.picture.shows("other brand") for shot in slice_)
        clues = seen[:1] + material.facts(product, "product", *views)[: 1 if seen else 2]
        given = f"Here is a video slice of a live, with key frames {places(len(slice_))}"
        answer = product.brand or UNKNOWN
        conflict = "another brand in the background" if behind else ""
        drafts.append(QuestionDraft("BR*", given, BR, BR_FORM, answer, slice_, clues, answer, conflict=conflict))
    return shuffled(drafts, random)


def same_style(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """SPU: which of four pictures is of the given one's style; by Appendix C's second example, whether two are of one product."""
    choices: list[QuestionDraft] = []
    pairs: list[QuestionDraft] = []
    for product in material.products:
        views = shots(product, "product")
        wrong = [p for p in material.others(product, random) if p.spu != product.spu and shots(p, "product")]
        for one in views:
            own = [shot for p in material.family(product) for shot in shots(p, "product") if shot != one]
            if own and len(wrong) >= len(SPU_OPTIONS) - 1:
                choices.append(_choice(material, one, random.choice(own), wrong, random))
            pairs += _pairs(material, one, views, wrong, random)
    return interleaved(placed(shuffled(choices, random), random, _ordered), by_turns(shuffled(pairs, random)))


def _choice(material: TemplateData, one: Shot, own: Shot, wrong: Sequence[Product], random: Random) -> QuestionDraft:
    n = len(SPU_OPTIONS) - 1
    near = [p for p in wrong if p.category == one.product.category][:n]
    far = [p for p in wrong if p not in near]
    others = [random.choice(shots(p, "product")) for p in (*near, *random.sample(far, n - len(near)))]
    clues = material.listing(one.product, "spu") + material.listing(own.product, "spu")
    given = f"Here is a given image: {PLACE} " + " ".join(f"{option} {PLACE}" for option in SPU_OPTIONS)
    return QuestionDraft("SPU", given, SPU, SPU_FORM, "", (one, own, *others), clues, "choice", options=SPU_OPTIONS)


def _ordered(draft: QuestionDraft, place: int, random: Random) -> QuestionDraft:
    one, own, *others = draft.shots
    random.shuffle(others)
    return replace(draft, shots=(one, *others[:place], own, *others[place:]), answer=LETTERS[place])


def _pairs(
    material: TemplateData, one: Shot, views: Sequence[Shot], wrong: Sequence[Product], random: Random
) -> Iterator[QuestionDraft]:
    for other in [shot for shot in views if shot != one][:1]:
        yield _pair(material, one, other, "Yes", "")
    if wrong:
        yield _pair(material, one, random.choice(shots(random.choice(wrong[:3]), "product")), "No", "another product")


def _pair(material: TemplateData, one: Shot, other: Shot, answer: str, conflict: str) -> QuestionDraft:
    clues = material.listing(one.product, "spu") + material.listing(other.product, "spu")
    form = "Answer Yes or No."
    return QuestionDraft("SPU", places(2), SPU_PAIR, form, answer, (one, other), clues, answer, conflict=conflict)


def same_sku(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """SKU: one product in two views; two of one style that differ; and a pair of which one side does not tell."""
    drafts: list[QuestionDraft] = []
    for product in material.products:
        for other in some(material.family(product), MOST_OTHERS, random):
            if not _comparable(material, product, other):
                continue
            for left in shots(product, "product"):
                for right in shots(other, "product"):
                    if left.picture.pixels != right.picture.pixels:
                        drafts += _sku(material, left, right)
    return by_turns(shuffled(drafts, random))


def _comparable(material: TemplateData, product: Product, other: Product) -> bool:
    return all(
        material.sound(each, name) for each in (product, other) for name in ("brand", *_deciding(material, product))
    )


def _deciding(material: TemplateData, product: Product) -> list[str]:
    """What tells the SKUs of a style apart: the attributes that differ among them, or all of them where it has but one."""
    family = material.family(product)
    names = dict.fromkeys(name for p in family for name in p.attributes)
    varying = [name for name in names if len({p.attributes.get(name, "") for p in family}) > 1]
    return varying or list(names)


def _sku(material: TemplateData, left: Shot, right: Shot) -> Iterator[QuestionDraft]:
    deciding = _deciding(material, left.product)
    if not deciding:
        return
    bare = _bare(right.product.title, right.product, deciding)
    # One wording less: two titles that are the same word for word would answer by themselves.
    short = without(right.product.brand, right.product.title) if right.product.brand else None
    for title in dict.fromkeys(each for each in (short or right.product.title, bare) if each):
        if left.product.id == right.product.id and title == left.product.title:
            continue
        told = [
            (_told(material, left, left.product.title, name), _told(material, right, title, name)) for name in deciding
        ]
        conflict, answer = _verdict(deciding, told)
        clues = tuple(fact for pair in told for fact in pair if fact is not None)
        titles = (left.product.title, title)
        first, second = (f'SKU: Title "{each}" with product image {PLACE}' for each in titles)
        given = f"First {first} Second {second}"
        yield QuestionDraft(
            "SKU",
            given,
            SKU,
            SKU_FORM,
            answer,
            (left, right),
            clues,
            answer,
            options=SKU_OPTIONS,
            conflict=conflict,
            titles=titles,
            order=("ask", "given", "form"),
        )


def _verdict(deciding: Sequence[str], told: Sequence[tuple[Clue | None, Clue | None]]) -> tuple[str, str]:
    """The conflict and the answer: different as soon as one attribute is seen to differ, the same if all are seen to agree."""
    both = [(name, one, other) for name, (one, other) in zip(deciding, told, strict=True) if one and other]
    if any(not same(name, one.value, other.value) for name, one, other in both):
        return "another SKU of the style", "B"
    return ("", "A") if len(both) == len(deciding) else ("deciding attribute withheld", "C")


def _bare(title: str, product: Product, deciding: Sequence[str]) -> str | None:
    for name in deciding:
        shorter = without(product.attributes.get(name, ""), title) if product.attributes.get(name) else None
        title = shorter or title
    return title


def _told(material: TemplateData, shot: Shot, title: str, attribute: str) -> Clue | None:
    """The fact by which a picture or its title tells an attribute."""
    seen = material.facts(shot.product, attribute, shot.picture.view)
    read = [fact for fact in material.facts(shot.product, attribute, "title") if stands_in(fact.value, title)]
    return (*seen, *read, None)[0]


def brand_category(material: TemplateData, random: Random) -> list[QuestionDraft]:
    """BDC: whether a brand sells what a picture shows, for the brands of which all categories are known."""
    drafts: list[QuestionDraft] = []
    every = list(material.brands.values())
    for product in material.products:
        if not material.sound(product, "category"):
            continue
        selling = [brand for brand in every if product.category in brand.categories]
        for brand in dict.fromkeys((*some(selling, MOST_OTHERS, random), *some(every, MOST_OTHERS, random))):
            for shot in shots(product, "product"):
                answer = "Yes" if product.category in brand.categories else "No"
                own = product.brand == brand.name
                conflict = (
                    "" if own else "another brand's product" if answer == "No" else "another brand of the category"
                )
                sells = material.sells(brand.name)
                clues = (
                    *material.facts(product, "product", shot.picture.view)[:1],
                    *[f for f in sells if answer == "No" or f.value == product.category],
                )
                given = f"Brand_name: {brand.name} Image: {PLACE}"
                text = f"Categories that {brand.name} sells: {', '.join(brand.categories)}." if brand.told else ""
                drafts.append(
                    QuestionDraft(
                        "BDC",
                        given,
                        BDC,
                        BDC_FORM,
                        answer,
                        (shot,),
                        clues,
                        answer,
                        text=text,
                        conflict=conflict,
                        order=("ask", "form", "given"),
                    )
                )
    # A picture of the brand's own product answers by its logo, so the others come first.
    return by_turns(sorted(shuffled(drafts, random), key=lambda draft: draft.conflict == ""))


L2: Mapping[str, Template] = {"BR*": content_brand, "SPU": same_style, "SKU": same_sku, "BDC": brand_category}
"""The templates of L2, by task, in Table 1's order."""
