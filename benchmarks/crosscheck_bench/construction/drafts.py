"""Draft: a question on its way to being a sample, with the clues that its answer rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeVar

from benchmarks.base import Mark
from benchmarks.crosscheck_bench.construction.clue_graph import Clue
from benchmarks.crosscheck_bench.sample import PLACE
from benchmarks.crosscheck_bench.sources.products import Product, ProductPicture

Made = Literal["template", "model", "authored"]

Piece = Literal["given", "ask", "form"]

T = TypeVar("T")

LABELS = {
    "brand": "logo",
    "minor brand": "logo",
    "other brand": "logo",
    "covered brand": "logo",
    "product": "item",
    "part": "item",
    "prop": "item",
    "price": "price tag",
}
"""What a box is called when it is drawn: the kind of region, never what the answer could be read off. Else its attribute."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture that a question shows, and whose it is; ``marks`` are drawn on it under every strategy."""

    product: Product
    picture: ProductPicture
    marks: tuple[Mark, ...] = ()

    def boxes(self) -> tuple[Mark, ...]:
        """What set-of-mark draws: every box of the picture once."""
        found: dict[tuple[float, ...], Mark] = {}
        for shown in self.picture.shown:
            if shown.box is not None:
                found.setdefault(shown.box, Mark(LABELS.get(shown.attribute, shown.attribute), shown.box))
        return tuple(found.values())


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """A question with its answer.

    The question is ``given``, ``ask`` and ``form`` in the ``order`` that Figure 8 has: what is given, with ``<image>`` for each
    shot, what is asked of it, and what the reply must look like; a model that writes questions writes ``ask``. ``clues`` are
    the facts that decide the answer, ``stratum`` the class that is balanced within the task, ``conflict`` the contradiction
    that was put in, ``titles`` the titles that are shown.
    """

    task: str
    given: str
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
    made: Made = "template"
    order: tuple[Piece, ...] = ("given", "ask", "form")

    @property
    def question(self) -> str:
        """All that is asked."""
        pieces = {"given": self.given, "ask": self.ask, "form": self.form}
        return " ".join(pieces[name] for name in self.order if pieces[name])

    @property
    def about(self) -> str:
        """The product that it is about: the first one that is shown."""
        return self.shots[0].product.id


def places(count: int) -> str:
    """``<image>`` as often as there are pictures."""
    return " ".join([PLACE] * count)


def by_turns(drafts: Iterable[QuestionDraft]) -> list[QuestionDraft]:
    """The drafts in their order, the strata by turns and equally many of each; what is left over is not among them."""
    strata = _strata(drafts)
    fewest = min(map(len, strata.values()), default=0)
    return [draft for turn in zip_longest(*(s[:fewest] for s in strata.values())) for draft in turn if draft]


def interleaved(*kinds: Sequence[T]) -> list[T]:
    """The first of each, the second of each, ..., until all are used up."""
    return [each for turn in zip_longest(*kinds) for each in turn if each is not None]


def _strata(drafts: Iterable[QuestionDraft]) -> dict[str, list[QuestionDraft]]:
    found: defaultdict[str, list[QuestionDraft]] = defaultdict(list)
    for draft in drafts:
        found[draft.stratum].append(draft)
    return {name: found[name] for name in sorted(found)}
