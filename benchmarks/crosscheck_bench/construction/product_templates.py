"""Templates of L1 questions on products: whether two are the same one (PD*), and what one costs (SP)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.crosscheck_bench.construction.clue_graph import Clue
from benchmarks.crosscheck_bench.construction.perception_templates import OPTIONS, YES_NO
from benchmarks.crosscheck_bench.construction.question_drafts import QuestionDraft, Shot, option_placeholders
from benchmarks.crosscheck_bench.construction.template_data import TemplateData, key_frames, shots, shuffle
from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS
from benchmarks.crosscheck_bench.crosscheck_sample import IMAGE_PLACEHOLDER
from benchmarks.crosscheck_bench.sources.product_folders import Price
from benchmarks.values import compare

MAX_KEY_FRAMES = 6
"""The number of key frames in Figure 8's PD*."""

PD = (
    "You need to carefully analyze the video slices and determine what product is being introduced, and whether it is the "
    "candidate product."
)
SP = (
    "Please select the most reasonable price from the following 4 options. Your output needs to be one of "
    '"A", "B", "C", "D".'
)
SP_FORM = "No other output is required!"


def product_diff(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of PD*: a live slice, and a picture of its product or of another one, the same category first."""
    drafts: list[QuestionDraft] = []
    for product in data.products:
        slice_ = key_frames(product, MAX_KEY_FRAMES)
        if not slice_:
            continue
        for other in (product, *data.other_products(product, random)):
            for candidate in shots(other, "product"):
                difference = _difference(data, slice_, candidate)
                if difference is not None:
                    drafts.append(_match_draft(slice_, candidate, *difference))
    drafts = sorted(shuffle(drafts, random), key=lambda draft: draft.conflict == "another product")
    return data.balance("PD*", drafts)


def _difference(data: TemplateData, slice_: Sequence[Shot], candidate: Shot) -> tuple[str, tuple[Clue, ...]] | None:
    """Return the visible difference between a slice and a candidate ("" for the same product) and its clues, or None."""
    product, other = slice_[0].product, candidate.product
    views = [shot.picture.view for shot in slice_]
    for attribute in ("product", *product.attributes):
        if not data.is_consistent(product, attribute) or not data.is_consistent(other, attribute):
            return None
    if product.id == other.id:
        slice_facts = data.facts(product, "product", *views)[:1]
        return ("", slice_facts + data.facts(other, "product", candidate.picture.view)) if slice_facts else None
    kind = "another product of the category" if product.category == other.category else "another product"
    for attribute in ("product", *product.attributes):
        left = data.facts(product, attribute, *views)
        other_facts = data.facts(other, attribute, candidate.picture.view)
        if left and other_facts and compare(left[0].value, other_facts[0].value).verdict == "different":
            return kind, (left[0], other_facts[0])
    return None


def _match_draft(slice_: tuple[Shot, ...], candidate: Shot, conflict: str, clues: tuple[Clue, ...]) -> QuestionDraft:
    n = len(slice_)
    video = " ".join(f"image{i} {IMAGE_PLACEHOLDER}" for i in range(1, n + 1))
    context = f"The first to {_ordinal(n)} images are multi-frame slices of a video."
    pictures = f"The [Video Product] are {video}. The [Candidate Product] is image{n + 1} {IMAGE_PLACEHOLDER}."
    answer = "No" if conflict else "Yes"
    return QuestionDraft(
        "PD*", context, f"{PD} {pictures}", YES_NO, answer, (*slice_, candidate), clues, answer, conflict=conflict
    )


def _ordinal(n: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(n, f"{n}th")


def style_price(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of SP: the price among its doubles and halves, its place on the ladder alternating.

    Figure 8's ladder is $7, $14, $28, $56.
    """
    priced = priced_shots(data)
    drafts: list[QuestionDraft] = []
    for number, (shot, price) in enumerate(random.sample(priced, len(priced))):
        for place in (number % OPTIONS, *range(OPTIONS)):
            ladder = _price_ladder(price, place, random)
            if ladder:
                drafts.append(price_draft(data, shot, ladder, place))
                break
    return drafts


def priced_shots(data: TemplateData) -> list[tuple[Shot, Price]]:
    """Return a picture and the price of each branded product with a price, preferably a picture that shows it."""
    priced: list[tuple[Shot, Price]] = []
    for product in data.products:
        if product.price is not None and product.brand and data.is_consistent(product, "price"):
            views = shots(product, "product", "price") or shots(product, "product")
            priced += [(shot, product.price) for shot in views[:1]]
    return priced


def _price_ladder(price: Price, place: int, random: Random) -> tuple[str, ...]:
    """Return four prices, each about twice the one before, the true one at ``place``; () if they cannot be distinct.

    All prices end as the true one does, so an ending such as .99 gives nothing away. If the true price cannot be halved
    to whole numbers, the others are shifted by up to 15%: rounded halves would reveal where the ladder began.
    """
    amount = int(price.amount)
    exact = amount % 2**place == 0
    steps = [amount * 2.0 ** (step - place) for step in range(OPTIONS)]
    moved = steps if exact else [n if n == amount else round(n * random.uniform(0.85, 1.15)) for n in steps]
    if any(b <= a for a, b in zip([0, *moved], moved, strict=False)):
        return ()
    return tuple(str(Price(round(n + price.amount - amount, 2), price.currency)) for n in moved)


def price_draft(
    data: TemplateData, shot: Shot, prices: tuple[str, ...], place: int, conflict: str = ""
) -> QuestionDraft:
    """Return a draft of SP with the options ``prices``, of which the one at ``place`` is right."""
    product = shot.product
    question = (
        f'What is the specific pricing information for this "{product.title}" product from {product.brand} brand?'
    )
    context = f"{IMAGE_PLACEHOLDER} {question}"
    clues = data.facts(product, "price", shot.picture.view, "listing")
    letter = LETTERS[place]
    return QuestionDraft(
        "SP",
        context,
        SP,
        SP_FORM,
        letter,
        (shot,),
        clues,
        letter,
        options=prices,
        conflict=conflict,
        titles=(product.title,),
        choices=option_placeholders(OPTIONS),
    )
