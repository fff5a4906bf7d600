"""Verdict on a fine-tuned model: its category, what is lost and gained, and how many examples would decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.compare.change import ABSTAINS, Change
from app.compare.fine_tuning import FineTuning
from app.compare.non_inferiority import ALPHA, format_points
from app.report.competence import join_names
from app.text.plural import count_of
from benchmarks.stats.intervals import span
from benchmarks.stats.paired_tests import holm

MARGIN = 0.03

Category = Literal["worth shipping", "harmful", "no worthwhile gain", "not established"]

_FEWEST = 10
"""The fewest examples from which a number that would decide is estimated."""
_PILOT = 30
"""The number of examples to run where fewer than that tell nothing."""
_WORDS = 3
"""The most kinds of answers that are named of a loss."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on a fine-tuned model.

    Attributes:
        margin: The loss that is acceptable, and the least gain that is worth it, as shares.
        losses: Every loss that is shown by its 95% interval, whatever the category, the decisive ones first.
        gains: The gains under conflict, or in the metric that was named, that are shown.
        open: The changes that are neither shown nor excluded, so that the category is "not established".
        examples: About how many examples would decide; None where that is not the question, or not known.
        sentences: The reasons, at most three sentences or so.
    """

    tuning: FineTuning
    margin: float
    category: Category
    losses: tuple[Change, ...]
    gains: tuple[Change, ...]
    open: tuple[Change, ...]
    examples: int | None
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The category, and the reasons."""
        return f"{self.category.capitalize()}: {' '.join(self.sentences)}"

    @property
    def short(self) -> str:
        """The category, and the first reason."""
        return f"{self.category.capitalize()}: {self.sentences[0]}"


def verdict(tuning: FineTuning, margin: float = MARGIN) -> Verdict:
    """Return the verdict on a fine-tuned model.

    It is harmful if a loss is shown that is not shown to be below ``margin``; under single conditions, after Holm's correction
    for their number. Otherwise, no gain is worthwhile if the 95% interval of the gain is below ``margin``. It is worth
    shipping if a gain is shown, and every loss without conflict and on other benchmarks to be below ``margin``; all of these
    must hold, so none is corrected for the number of tests. A gain on examples that it was trained on shows nothing.
    """
    shown = [change for change in tuning.changes if change.is_loss()]
    main, single = (tuning.gain, *tuning.losses), (*tuning.conflicts, *tuning.details)
    corrected = holm([change.p_of_bounds for change in single])
    significant = [change for change, p in zip(single, corrected, strict=True) if p is not None and p <= ALPHA]
    names_more = not tuning.gain.is_gain() and _is_worthwhile(tuning.detection, margin)
    decisive = [
        change
        for change in shown
        if not change.exceeds(-margin)
        and (change in main or change in significant)
        and not (names_more and change is tuning.gain)
    ]
    losses = (*_ordered(decisive, main), *_ordered((change for change in shown if change not in decisive), main))
    gains = tuple(change for change in (tuning.gain, tuning.detection) if change is not None and change.is_gain())
    lost, gained = _losses_sentence(tuning, losses), _gains_sentence(tuning, gains, lost=bool(losses))

    def conclude(
        category: Category, *reasons: str, open_: Sequence[Change] = (), examples: int | None = None
    ) -> Verdict:
        sentences = tuple(filter(None, (lost, gained, *reasons)))
        return Verdict(tuning, margin, category, losses, gains, tuple(open_), examples, sentences)

    limit = format_points(margin)
    if decisive:
        return conclude("harmful")
    if reason := _unknown(tuning, names_more=names_more):
        return conclude("not established", reason)
    if tuning.gain.stays_below(margin):
        return conclude("no worthwhile gain", f"A gain of {limit} points or more is excluded.")
    if reason := _unmeasured(tuning):
        return conclude("not established", reason)
    is_gain = tuning.gain.is_gain()
    unsure = [change for change in tuning.losses if not change.exceeds(-margin)]
    unsure += [change for change in single if change in shown and not change.exceeds(-margin)]
    if not is_gain or unsure:
        doubt = [f"A loss of {limit} points or more cannot be excluded: {_list(unsure)}."] if unsure else []
        examples, advice = _examples_to_decide(tuning, unsure, margin)
        open_ = [*([] if is_gain else [tuning.gain]), *unsure]
        return conclude("not established", *doubt, advice, open_=open_, examples=examples)
    return conclude(
        "worth shipping",
        f"It is shown to lose less than {limit} points: {_list(tuning.losses)}.{_single_conditions(tuning, margin)}",
    )


def _unknown(tuning: FineTuning, *, names_more: bool) -> str:
    """Return why nothing is known of the gain; "" if something is."""
    if tuning.trained:
        return (
            f"It was trained on {join_names(tuning.trained)}, and its answers to those show what it remembers: compare runs on "
            "data that its training did not have."
        )
    if not tuning.gain.difference.n:
        if tuning.other_prompts:
            return (
                f"{count_of(tuning.other_prompts, 'instance')} of both runs have different prompts or pictures, as after a "
                "rebuild of the test data: run the base and the adapter on the same build."
            )
        return "The runs share no counted answer under conflict: run both on the same instances, and see their errors."
    if names_more:
        return (
            "It names conflicts more often, and accuracy counts that as right only where no source is: "
            f"--metric {tuning.detection.part.removeprefix('in ')} decides by it."  # type: ignore[union-attr]
        )
    return ""


def _unmeasured(tuning: FineTuning) -> str:
    """Return what must be run to know the losses; "" if they are measured."""
    if not tuning.losses:
        return (
            "No run shows what it loses elsewhere: add runs of both on rows without conflict, or on pope, okvqa or gqa."
        )
    if unknown := [change for change in (*tuning.losses, *tuning.details) if not change.difference.n]:
        parts = join_names([change.part for change in unknown])
        return f"Nothing is known {parts}, where no answer of both runs counts: see their errors."
    return ""


def _examples_to_decide(tuning: FineTuning, unsure: Sequence[Change], margin: float) -> tuple[int | None, str]:
    """Return about how many examples would decide, None where that is unknown, and a sentence on it."""
    have = max(change.examples for change in (tuning.gain, *tuning.losses))
    gain = tuning.gain
    needed = [] if gain.is_gain() else [min(gain.examples_above(0), gain.examples_below(margin))]
    needed += [min(x.examples_above(-margin, two_sided=False), x.examples_below(0)) for x in unsure]
    if have < _FEWEST:
        return None, f"{count_of(have, 'example')} cannot tell how many would decide: run {_PILOT} or more."
    if math.isfinite(most := max(needed)):
        digits = max(0, len(str(int(most))) - 2)
        about = math.ceil(most / 10**digits) * 10**digits
        return about, f"About {about:,} examples would decide, if the differences are as in these {have:,}."
    if gain.undecided or any(change.undecided for change in unsure):
        return (
            None,
            "Labels of the undecided answers would decide, not more examples (`rashomon judge`, `rashomon label`).",
        )
    return None, "No number of examples that can be run would decide, if the differences are as in these."


def _losses_sentence(tuning: FineTuning, losses: Sequence[Change]) -> str:
    """Return every loss in a sentence: the first with what the answers became, the others with their points."""
    if not losses:
        return ""
    first, *others = losses
    sentence = f"{tuning.tuned.label} loses {_points_of(first)}{_shares(first)}{_became(first)}"
    sizes = [format_points(abs(change.difference.value or 0)) for change in others]
    more = [f"{size}{' points' * (not place)} {others[place].part}" for place, size in enumerate(sizes)]
    return f"{sentence}.{f' It also loses {join_names(more)}.' if more else ''}"


def _gains_sentence(tuning: FineTuning, gains: Sequence[Change], *, lost: bool) -> str:
    """Return the gains in a sentence; where none is shown, the change that training is for."""
    subject = "It" if lost else tuning.tuned.label
    if not tuning.gain.difference.n:
        return f"{subject} cannot be compared {tuning.gain.part}."
    if gains:
        gained = [_points_of(change, _by_abstaining(change)) for change in gains]
        is_named = tuning.gain in gains or tuning.gain.is_loss()
        rest = "" if is_named else f"; {tuning.gain.part} it changes by {tuning.gain.points()}"
        return f"{subject} gains {join_names(gained)}{_needless(tuning, gains)}{rest}."
    if lost and tuning.gain.is_loss():
        return "No gain is shown."
    return f"{subject} shows no gain {tuning.gain.part}: {tuning.gain.points()}."


def _points_of(change: Change, remark: str = "") -> str:
    """Return the size of a change, its part, and in brackets its interval with a ``remark``."""
    value = abs(change.difference.value or 0)
    brackets = ["lower is better"] if change.is_lower_better else []
    if (ends := change.interval()) is not None:
        low, high = (format_points(end, sign=True) for end in ends)
        brackets.append(f"{span(low, high)} at 95%")
    brackets += [remark] if remark else []
    remarks = f" ({'; '.join(brackets)})" if brackets else ""
    return f"{format_points(value)} points {change.part}{remarks}"


def _shares(change: Change) -> str:
    before, after = change.before.value, change.after.value
    return "" if before is None or after is None else f", from {before:.1%} to {after:.1%}"


def _became(change: Change) -> str:
    """Return what the answers that were lost became, by the scorecard's outcomes."""
    if not change.became:
        return ""
    (behaviour, most), *others = change.became[:_WORDS]
    first = f"{most:,} of {count_of(change.difference.n, 'answer')} now {_verb(behaviour, most)}"
    return f": {join_names([first, *(f'{count:,} {_verb(name, count)}' for name, count in others)])}"


def _verb(behaviour: str, count: int) -> str:
    """Return a behaviour such as "invents a value" with the verb's number."""
    verb, space, rest = behaviour.partition(" ")
    return behaviour if count == 1 else f"{verb.removesuffix('s')}{space}{rest}"


def _by_abstaining(change: Change) -> str:
    count = dict(change.rose_by).get(ABSTAINS, 0)
    return f"{count:,} of {change.gained:,} answers by abstaining" if 2 * count > change.gained else ""


def _needless(tuning: FineTuning, gains: Sequence[Change]) -> str:
    """Return that a model that gains by abstaining abstains without a conflict too; "" where it does not."""
    if tuning.detection not in gains and not any(map(_by_abstaining, gains)):
        return ""
    needless = [(dict(change.became).get(ABSTAINS, 0), change) for change in tuning.losses[:1]]
    return "".join(
        f", but also abstains on {count:,} of {change.difference.n:,} {change.part}"
        for count, change in needless
        if count
    )


def _signed(change: Change) -> str:
    return format_points(change.difference.value or 0, sign=True)


def _single_conditions(tuning: FineTuning, margin: float) -> str:
    """Return, after a space, the conditions without conflict whose answers are too few to exclude a loss; "" without any."""
    unsure = [change for change in tuning.details if not change.exceeds(-margin)]
    if not unsure:
        return ""
    return f" By themselves, these may lose more: {join_names([f'{x.part} {_signed(x)}' for x in unsure])}."


def _is_worthwhile(change: Change | None, margin: float) -> bool:
    return change is not None and change.is_gain() and not change.stays_below(margin)


def _ordered(changes: Iterable[Change], main: Sequence[Change]) -> list[Change]:
    """Return changes with those of several conditions together first, the largest of each kind first."""
    return sorted(changes, key=lambda change: (change not in main, -abs(change.difference.value or 0)))


def _list(changes: Sequence[Change]) -> str:
    return join_names([f"{change.part} {change.points()}" for change in changes])
