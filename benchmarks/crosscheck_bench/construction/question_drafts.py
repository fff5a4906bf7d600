"""Draft: a question that may become a sample, with the clues that its answer rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeVar

from benchmarks.crosscheck_bench.construction.clue_graph import Clue
from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS
from benchmarks.crosscheck_bench.crosscheck_sample import IMAGE_PLACEHOLDER, OPTION_PLACEHOLDER
from benchmarks.crosscheck_bench.sources.product_folders import Product, ProductPicture
from benchmarks.vocabulary import Mark

Origin = Literal["template", "model", "authored"]

Piece = Literal["context", "ask", "choices", "form"]

FIGURE_8 = "Figure 8"

T = TypeVar("T")

REGION_LABELS = {
    "brand": "logo",
    "minor brand": "logo",
    "other brand": "logo",
    "covered brand": "logo",
    "product": "item",
    "part": "item",
    "prop": "item",
    "price": "price tag",
}
"""The label of a drawn box: the kind of region, never the answer. Other attributes are labelled by their name."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture in a question, with its product; every strategy draws ``marks`` on it."""

    product: Product
    picture: ProductPicture
    marks: tuple[Mark, ...] = ()

    def boxes(self) -> tuple[Mark, ...]:
        """Return the marks that set-of-mark draws: every box of the picture once."""
        marks: dict[tuple[float, ...], Mark] = {}
        for visible in self.picture.visible:
            if visible.box is not None:
                marks.setdefault(
                    visible.box, Mark(REGION_LABELS.get(visible.attribute, visible.attribute), visible.box)
                )
        return tuple(marks.values())


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """A question with its answer.

    The question consists of ``context``, ``ask``, ``choices`` and ``form`` in the ``order`` of Figure 8: the given
    material with an ``<image>`` for each shot, the task, an ``<option>`` for each option, and the format of the reply. A
    model that writes questions writes ``ask``. ``wording`` is the place in the paper that prints the wording.
    ``clues`` are the facts that decide the answer, ``stratum`` the class balanced within the task, ``conflict`` the
    contradiction that was introduced, and ``titles`` the displayed titles. The number of fields is that of a sample's
    ingredients.
    """

    task: str
    context: str
    ask: str
    form: str
    answer: str
    shots: tuple[Shot, ...]
    clues: tuple[Clue, ...]
    stratum: str
    text: str = ""
    options: tuple[str, ...] = ()
    conflict: str = ""
    reasoning: str = ""
    titles: tuple[str, ...] = ()
    row_id: str = ""
    origin: Origin = "template"
    order: tuple[Piece, ...] = ("context", "ask", "choices", "form")
    choices: str = ""
    wording: str = FIGURE_8

    @property
    def question(self) -> str:
        """The complete question."""
        pieces = {"context": self.context, "ask": self.ask, "choices": self.choices, "form": self.form}
        return " ".join(pieces[name] for name in self.order if pieces[name])

    @property
    def about(self) -> str:
        """The id of the product in question: that of the first picture."""
        return self.shots[0].product.id


def image_placeholders(count: int) -> str:
    """Return ``count`` placeholders, separated by spaces."""
    return " ".join([IMAGE_PLACEHOLDER] * count)


def option_placeholders(count: int, heading: str = "Option:", mark: str = ":", separator: str = " ") -> str:
    """Return a heading and a placeholder for each option after its letter and ``mark``, such as ``Option: A: <option>``."""
    items = (f"{letter}{mark} {OPTION_PLACEHOLDER}" for letter in LETTERS[:count])
    return separator.join((*([heading] if heading else []), *items))


def balance_strata(drafts: Iterable[QuestionDraft]) -> list[QuestionDraft]:
    """Return the drafts with the strata alternating and equally frequent; surplus drafts are dropped."""
    strata = _by_stratum(drafts)
    smallest_size = min(map(len, strata.values()), default=0)
    return [draft for turn in zip_longest(*(s[:smallest_size] for s in strata.values())) for draft in turn if draft]


def interleave(*kinds: Sequence[T]) -> list[T]:
    """Return the first item of each sequence, then the second of each, and so on until all are used up."""
    return [item for turn in zip_longest(*kinds) for item in turn if item is not None]


def _by_stratum(drafts: Iterable[QuestionDraft]) -> dict[str, list[QuestionDraft]]:
    strata: defaultdict[str, list[QuestionDraft]] = defaultdict(list)
    for draft in drafts:
        strata[draft.stratum].append(draft)
    return {name: strata[name] for name in sorted(strata)}
