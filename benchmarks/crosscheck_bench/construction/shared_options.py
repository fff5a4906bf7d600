"""L1 questions in fours that share their four options, each of which is right once: PMO's readings and SP's prices.

The options of one question then say nothing about which of them is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from benchmarks.crosscheck_bench.construction.appendix_templates import OTHER_TITLE, SWAPPED_PRICE
from benchmarks.crosscheck_bench.construction.perception_templates import OPTIONS, brand_regions, ocr_draft
from benchmarks.crosscheck_bench.construction.product_templates import price_draft, priced_shots
from benchmarks.crosscheck_bench.construction.question_drafts import QuestionDraft, Shot, interleave
from benchmarks.crosscheck_bench.construction.template_data import TemplateData, form_groups, shots, shuffle
from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS
from benchmarks.crosscheck_bench.sources.product_folders import Price
from benchmarks.values import compare

MIN_PRICE_RATIO = 1.25
"""The least ratio of two prices in a question; nearer ones are equally reasonable."""

PricedShot = tuple[Shot, Price]

T = TypeVar("T")


def shared_prices(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of SP: the price among those of three other products.

    Swapped prices are Appendix E's contradiction. The options do not ascend as in Figure 8: if they did, the letter would
    follow from how dear such products are.
    """
    # The SKUs of a style often have one price, and would give the same question.
    priced = {(shot.product.spu, str(price)): (shot, price) for shot, price in shuffle(priced_shots(data), random)}
    drafts: list[QuestionDraft] = []
    for four in _fours(list(priced.values()), _distinct_prices, lambda item: item[0].product.category, random):
        prices = tuple(str(price) for _, price in four)
        drafts += [price_draft(data, shot, prices, n, SWAPPED_PRICE) for n, (shot, _) in enumerate(four)]
    if not drafts:
        data.leave_out("SP", "no four branded products have prices in one currency that differ enough")
    return drafts


def _distinct_prices(item: PricedShot, other: PricedShot) -> bool:
    (_, price), (_, other_price) = item, other
    low, high = sorted((price.amount, other_price.amount))
    return price.currency == other_price.currency and high >= MIN_PRICE_RATIO * low


def printed_words(data: TemplateData, random: Random) -> list[QuestionDraft]:
    """Return drafts of PMO: the printed words among those of three other products; also the brand in a region.

    Of the four questions one has its product's title, and the others one another's, so that no title points to the answer.
    """
    printed = [shot for product in data.products for shot in shots(product, "text")]
    drafts: list[QuestionDraft] = []
    for four in _fours(printed, _distinct_words, lambda shot: shot.picture.shows("text")[0].casefold(), random):
        options = tuple(shot.picture.shows("text")[0] for shot in four)
        own, *others = random.sample(range(OPTIONS), OPTIONS)
        titles = {own: own} | dict(zip(others, [*others[1:], others[0]], strict=True))
        drafts += [
            ocr_draft(
                data,
                shot,
                options,
                LETTERS[n],
                four[titles[n]].product.title,
                OTHER_TITLE if titles[n] != n else "",
            )
            for n, shot in enumerate(four)
        ]
    if not drafts:
        data.leave_out("PMO, options", "no four pictures show different words")
    return interleave(drafts, *brand_regions(data, random))


def _distinct_words(shot: Shot, other: Shot) -> bool:
    words, other_words = shot.picture.shows("text"), other.picture.shows("text")
    return all(compare(word, other_word).verdict != "same" for word in words for other_word in other_words)


def _fours(items: Sequence[T], fit: Callable[[T, T], bool], near: Callable[[T], str], random: Random) -> list[list[T]]:
    """Return disjoint groups of four near items, then of the rest.

    An item offered among other options a second time would show its answer: the only option offered twice with it.
    """
    nearest = form_groups(sorted(shuffle(items, random), key=near), OPTIONS, fit)
    grouped = {id(item) for four in nearest for item in four}
    others = form_groups(shuffle([item for item in items if id(item) not in grouped], random), OPTIONS, fit)
    return [shuffle(four, random) for four in (*shuffle(nearest, random), *others)]
