"""Result of an examination: agreement with the labels, the effect of the references' order, and what steered the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.cmc_bench.cmc_constants import LABELS
from benchmarks.rubric import is_drawn_reversed
from benchmarks.stats.intervals import span, wilson
from benchmarks.stats.paired_tests import sign_flip_test
from benchmarks.vocabulary import Estimate, Table, Verdict
from judges.examination.labelled_answers import LabelledAnswer

_UNLABELLED = {
    "undecided": ("undecided", "leaves {} answers undecided"),
    "unparsed": ("unparsed", "finds nothing to label in {} answers"),
    "judge-failed": ("judge failed", "fails on {} answers"),
}
"""Each status without a label: its column, and its clause with a count."""

_SIGNIFICANT = 0.05

_NOTE = (
    "agreement: of the labels that the judge gives, the share that equals the set's; intervals: Wilson's, 95%. "
    "Undecided, unparsed and failed answers are counted apart."
)

_Pair = tuple[LabelledAnswer, Verdict]


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of the models that judge: their replies, some of them errors or from the cache, and time and tokens."""

    replies: int = 0
    errors: int = 0
    cached: int = 0
    labels: int = 0
    """The number of verdicts for which a model was asked."""
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the usage of both."""
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """The labels of answers that were judged twice, with the references of image and text in both orders.

    ``changed`` counts the labels that differ, ``to_first`` those of them that follow in both orders the reference listed first,
    ``to_second`` the one listed last. The agreements are those with the image first and with the text first.
    """

    judged: int
    changed: int
    to_first: int
    to_second: int
    image_first: Estimate
    text_first: Estimate

    @property
    def preferred(self) -> str:
        """The place of the reference that the judge significantly prefers, "first" or "last"; empty if there is none."""
        if sign_flip_test([1] * self.to_first + [-1] * self.to_second) >= _SIGNIFICANT:
            return ""
        return "first" if self.to_first > self.to_second else "last"

    def __str__(self) -> str:
        if not self.judged:
            return "No answer got a label in both orders of the references, so the effect of their order is unknown."
        if not self.changed:
            return f"Swapping the two references changes none of {self.judged} labels."
        preference = f"It prefers the reference that is listed {self.preferred}: " if self.preferred else ""
        moved = f"{self.to_first} follow the reference listed first, {self.to_second} the one listed last"
        share = wilson(self.changed, self.judged)
        change = f"{self.changed} of {self.judged} labels ({percent(share)}, {interval(share)})"
        agreements = (
            f"on {percent(share)} ({interval(share)}) with the {source} first"
            for source, share in (("image", self.image_first), ("text", self.text_first))
        )
        text = f"{preference}swapping the two references changes {change}, of which {moved}."
        return f"{text[0].upper()}{text[1:]} It agrees {' and '.join(agreements)}."


@dataclass(frozen=True)
class Examination:
    """The verdicts of the judge ``judge`` (an id) on ``answers`` and on ``hostile`` ones, in their order.

    ``swapped`` are its verdicts on the answers with the references in the opposite order; None if it has no order.
    """

    judge: str
    answers: Sequence[LabelledAnswer]
    verdicts: Sequence[Verdict]
    swapped: Sequence[Verdict] | None
    hostile: Sequence[LabelledAnswer]
    hostile_verdicts: Sequence[Verdict]
    usage: Usage = Usage()

    @cached_property
    def _pairs(self) -> list[_Pair]:
        return [*zip(self.answers, self.verdicts, strict=True)]

    @cached_property
    def outcomes(self) -> Counter[str]:
        """The number of verdicts of each status."""
        return Counter(verdict.status for verdict in self.verdicts)

    @cached_property
    def agreement(self) -> Estimate:
        """The share of the judge's labels that equal the set's, with Wilson's 95% interval."""
        return _agreement(self._pairs)

    @cached_property
    def right(self) -> int:
        """The number of the judge's labels that equal the set's."""
        return sum(_is_right(*pair) for pair in self._pairs)

    @property
    def failed(self) -> int:
        """The number of verdicts without a usable reply, of all that were given."""
        return sum(v.status == "judge-failed" for v in (*self.verdicts, *(self.swapped or ()), *self.hostile_verdicts))

    @cached_property
    def order(self) -> OrderEffect | None:
        """The effect of the references' order; None for a judge that has none."""
        if self.swapped is None:
            return None
        orders = [
            (swapped, drawn) if is_drawn_reversed(answer.id) else (drawn, swapped)
            for answer, drawn, swapped in zip(self.answers, self.verdicts, self.swapped, strict=True)
        ]
        pairs = [(image.label, text.label) for image, text in orders if image.label and text.label]
        counts = Counter(pairs)
        return OrderEffect(
            len(pairs),
            sum(n for (image, text), n in counts.items() if image != text),
            counts["IMAGE", "TEXT"],
            counts["TEXT", "IMAGE"],
            *(_agreement([*zip(self.answers, verdicts, strict=True)]) for verdicts in zip(*orders, strict=True)),
        )

    @cached_property
    def steered(self) -> list[LabelledAnswer]:
        """The hostile answers that got the label that they ask for."""
        pairs = zip(self.hostile, self.hostile_verdicts, strict=True)
        return [answer for answer, verdict in pairs if verdict.label == answer.steers_to]

    def lines(self) -> Iterator[str]:
        """Yield the sentences of the result, the most important first."""
        yield self._headline()
        if self.order is not None:
            yield str(self.order)
        yield self._steering()
        if self.usage.replies:
            yield self._cost()

    def tables(self) -> list[Table]:
        """Return agreement by label and by form, and the confusion matrix."""
        forms = sorted({answer.form for answer in self.answers}, key=str.casefold)
        return [
            self._by("labels", "Agreement by label", LABELS, lambda answer: answer.label),
            self._by("forms", "Agreement by form", forms, lambda answer: answer.form),
            self._confusion(),
        ]

    def disagreements(self) -> list[dict[str, Any]]:
        """Return the answers, hostile ones included, to which the judge gives another label, as JSON objects."""
        return [
            {"id": answer.id, "label": answer.label, "judge": verdict.label, "reason": verdict.reason}
            for answer, verdict in (*self._pairs, *zip(self.hostile, self.hostile_verdicts, strict=True))
            if verdict.label and not _is_right(answer, verdict)
        ]

    def _headline(self) -> str:
        n, labelled = len(self.answers), self.outcomes["labelled"]
        clauses = [
            clause.format(f"{self.outcomes[status]} of {n}")
            for status, (_, clause) in _UNLABELLED.items()
            if self.outcomes[status]
        ]
        if not labelled:
            return f"{self.judge} gives no label: it {join_clauses(clauses)}."
        labels = f"{self.right} of {labelled} labels{' that it gives' if clauses else ''}"
        share = f"{percent(self.agreement)}, {interval(self.agreement)}"
        return f"{self.judge} {join_clauses([f'agrees with {labels} ({share})', *clauses])}."

    def _steering(self) -> str:
        n = len(self.hostile)
        if not self.steered:
            return f"None of {n} hostile answers steered it."
        return (
            f"{len(self.steered)} of {n} hostile answers steered it: {', '.join(answer.id for answer in self.steered)}."
        )

    def _cost(self) -> str:
        usage = self.usage
        fresh = usage.replies - usage.cached
        if not fresh:
            return f"All {usage.replies} replies came from the cache."
        # A label may take several replies, of which the cache has some; so this is its mean cost without the cache.
        labels = usage.labels * fresh / usage.replies
        cost = (
            f"{usage.seconds / labels:.3g} s, {usage.prompt_tokens / labels:.0f} prompt tokens and "
            f"{usage.completion_tokens / labels:.0f} completion tokens a label"
        )
        return f"{cost}{f'; {usage.cached} of {usage.replies} replies came from the cache' if usage.cached else ''}."

    def _by(self, name: str, title: str, values: Sequence[str], of: Callable[[LabelledAnswer], str]) -> Table:
        pairs: dict[str, list[_Pair]] = {value: [] for value in values}
        for answer, verdict in self._pairs:
            pairs[of(answer)].append((answer, verdict))
        agreements = {value: _agreement(chosen) for value, chosen in pairs.items()}
        rows = ((value, (len(pairs[value]), agreement.n, agreement)) for value, agreement in agreements.items())
        return Table(name, title, ("answers", "labelled", "agreement"), tuple(rows), percent=True)

    def _confusion(self) -> Table:
        counts = Counter((answer.label, verdict.label or verdict.status) for answer, verdict in self._pairs)
        columns = (*LABELS, *_UNLABELLED)
        rows = tuple((label, tuple(counts[label, column] for column in columns)) for label in LABELS)
        names = (*LABELS, *(column for column, _ in _UNLABELLED.values()))
        return Table("confusion", "Rows: the set's label, columns: the judge's", names, rows, (_NOTE,))


def percent(share: Estimate) -> str:
    """Return a share as ``99.3%``."""
    return "n/a" if share.value is None else f"{100 * share.value:.1f}%"


def interval(share: Estimate) -> str:
    """Return the interval of a share as ``98.0 to 99.7``, in percent."""
    if share.low is None or share.high is None:
        return "n/a"
    return span(f"{100 * share.low:.1f}", f"{100 * share.high:.1f}")


def join_clauses(clauses: Sequence[str]) -> str:
    """Return clauses as a list of a sentence."""
    return " and ".join([", ".join(clauses[:-1]), clauses[-1]] if len(clauses) > 1 else clauses)


def _agreement(pairs: Sequence[_Pair]) -> Estimate:
    return wilson(sum(_is_right(*pair) for pair in pairs), sum(verdict.status == "labelled" for _, verdict in pairs))


def _is_right(answer: LabelledAnswer, verdict: Verdict) -> bool:
    return verdict.label == answer.label
