"""Verdict on a fine-tuned model: its category, what is lost and gained, and how many examples would decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.compare.decision.sample_size import fewest_examples
from app.compare.decision.target_shares import ALPHA
from app.compare.fine_tuning.change_by_training import Change
from app.compare.fine_tuning.fine_tuning_effect import FineTuning
from app.compare.fine_tuning.verdict_sentences import gains_sentence, losses_sentence, name_first
from app.report.tables.single_source_accuracy import join_names
from app.text.percentage_points import format_points
from app.text.plural import count_of
from benchmarks.stats.paired_tests import holm

MARGIN = 0.03

Category = Literal["worth shipping", "harmful", "no worthwhile gain", "not established"]

_FEWEST = 10
"""The fewest examples from which a number that would decide is estimated."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on a fine-tuned model.

    Attributes:
        margin: The loss that is acceptable, and the least gain that is worth it, as shares.
        losses: Every loss that is shown by its 95% interval, whatever the category, the decisive ones first.
        gains: The gains under conflict, or in the metric that was named, that are shown.
        open: The changes that are neither shown nor excluded, so that the category is "not established".
        examples: About how many examples would decide; None where that is not the question, or not known.
        sentences: The reasons, at most three sentences: losses, gains, and what follows.
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
    for their number. Answers from the wrong source that are now from none are no such loss, though they are named. Otherwise,
    no gain is worthwhile if it is shown to be below ``margin``. It is worth shipping if a gain is shown, and every loss without
    conflict and on other benchmarks to be below ``margin``; all of these must hold, so none is corrected for the number of
    tests. A change is shown by its two-sided 95% interval, and to be below the margin by the one-sided 95% bound. A gain on
    examples that it was trained on shows nothing.
    """
    names_more = not tuning.gain.is_gain() and _is_worthwhile(tuning.detection, margin)
    losses, decisive = _losses(tuning, margin, names_more=names_more)
    gains = tuple(change for change in (tuning.gain, tuning.detection) if change is not None and change.is_gain())
    lost, gained = losses_sentence(tuning, losses, decisive), gains_sentence(tuning, gains, lost=bool(losses))

    def conclude(
        category: Category, *reasons: str, open_: Sequence[Change] = (), examples: int | None = None
    ) -> Verdict:
        return Verdict(
            tuning, margin, category, losses, gains, tuple(open_), examples, tuple(filter(None, (lost, *reasons)))
        )

    limit = format_points(margin)
    if decisive:
        return conclude("harmful", gained)
    if reason := _unknown(tuning, names_more=names_more):
        return conclude("not established", gained, reason)
    if tuning.gain.stays_below(margin):
        subject = "It" if lost or gains else tuning.tuned.label
        excluded = f"{subject} gains less than {limit} points {tuning.gain.part} ({tuning.gain.bounded_gain()})."
        return conclude("no worthwhile gain", gained if gains else "", excluded)
    if reason := _unmeasured(tuning):
        return conclude("not established", gained, reason)
    unsure = _unsure(tuning, losses, margin)
    if open_ := [*([] if tuning.gain.is_gain() else [tuning.gain]), *unsure]:
        examples, advice = _examples_to_decide(tuning, unsure, margin)
        doubt = f"A loss of {limit} points or more cannot be excluded {_list(unsure)}: " if unsure else ""
        reason = f"{doubt}{advice if doubt else advice[:1].upper() + advice[1:]}."
        return conclude("not established", gained, reason, open_=open_, examples=examples)
    single_conditions = _single_conditions(tuning, margin)
    return conclude(
        "worth shipping", gained, f"It loses less than {limit} points {_list(tuning.losses)}{single_conditions}."
    )


def _losses(tuning: FineTuning, margin: float, *, names_more: bool) -> tuple[tuple[Change, ...], list[Change]]:
    """Return every loss that is shown, the decisive ones first, and those."""
    shown = [change for change in tuning.changes if change.is_loss()]
    single = _single(tuning)
    corrected = holm([(change.of_right or change).p_of_bounds for change in single])
    significant = (change for change, p in zip(single, corrected, strict=True) if p is not None and p <= ALPHA)
    main = (tuning.gain, *tuning.losses)
    tested = [*main, *filter(_is_loss_of_right, significant)]
    if names_more:
        tested.remove(tuning.gain)
    decisive = [change for change in shown if change in tested and not change.exceeds(-margin)]
    others = [change for change in shown if change not in decisive]
    return (*_ordered(decisive, main), *_ordered(others, main)), decisive


def _unsure(tuning: FineTuning, losses: Sequence[Change], margin: float) -> list[Change]:
    """Return the changes without conflict, and those of single conditions that are a loss, which may be a loss of ``margin``."""
    single = (change for change in _single(tuning) if change in losses and _is_loss_of_right(change))
    return [change for change in (*tuning.losses, *single) if not change.exceeds(-margin)]


def _single(tuning: FineTuning) -> tuple[Change, ...]:
    """Return the changes under single conditions."""
    return *tuning.conflicts, *tuning.details


def _is_loss_of_right(change: Change) -> bool:
    """Return whether right answers are lost: wrong ones that are now from no source are no loss."""
    return (change.of_right or change).is_loss()


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
    if tuning.gain.difference.value is None:
        return "Run both under all conditions, or decide by another --metric."
    if names_more and tuning.detection is not None:
        return (
            "It names conflicts more often, and accuracy counts that as right only where no source is: "
            f"--metric {tuning.detection.part.removeprefix('in ')} decides by it."
        )
    return ""


def _unmeasured(tuning: FineTuning) -> str:
    """Return what must be run to know the losses; "" if they are measured."""
    if not tuning.losses:
        return (
            "No run shows what it loses elsewhere: add runs of both on rows without conflict, or on pope, okvqa or gqa."
        )
    if unknown := [change for change in (*tuning.losses, *tuning.details) if not change.difference.n]:
        parts = name_first([change.part for change in unknown])
        return f"Nothing is known {parts}, where no answer of both runs counts: see their errors."
    return ""


def _examples_to_decide(tuning: FineTuning, unsure: Sequence[Change], margin: float) -> tuple[int | None, str]:
    """Return about how many examples would decide, None where that is unknown, and a clause on it."""
    have = max(change.examples for change in (tuning.gain, *tuning.losses))
    gain = tuning.gain
    needed = [] if gain.is_gain() else [min(gain.examples_above(0), gain.examples_below(margin, two_sided=False))]
    needed += [min(x.examples_above(-margin, two_sided=False), x.examples_below(0)) for x in unsure]
    if have < _FEWEST:
        least = round_up(fewest_examples(margin))
        return None, f"{count_of(have, 'example')} cannot tell how many would decide, about {least:,} at the earliest"
    if math.isfinite(most := max(needed)):
        about = round_up(most)
        return about, f"about {about:,} examples would decide, if the differences are as in these {have:,}"
    if gain.undecided or any(change.undecided for change in unsure):
        return (
            None,
            "labels of the undecided answers would decide, not more examples (`rashomon judge`, `rashomon label`)",
        )
    return None, "no number of examples that can be run would decide, if the differences are as in these"


def round_up(number: float) -> int:
    """Return a number rounded up to two digits."""
    unit = int(10 ** max(0, len(str(int(number))) - 2))
    return math.ceil(number / unit) * unit


def _single_conditions(tuning: FineTuning, margin: float) -> str:
    """Return a clause on the conditions without conflict whose answers are too few to exclude a loss; "" without any."""
    unsure = sorted(
        (change for change in tuning.details if not change.exceeds(-margin)), key=lambda x: x.difference.value or 0
    )
    named = [f"{x.part} {format_points(x.difference.value or 0, sign=True)}" for x in unsure]
    return f"; by themselves, these may lose more: {name_first(named)}" if unsure else ""


def _is_worthwhile(change: Change | None, margin: float) -> bool:
    return change is not None and change.is_gain() and not change.stays_below(margin)


def _ordered(changes: Iterable[Change], main: Sequence[Change]) -> list[Change]:
    """Return changes with those of several conditions together first, the largest of each kind first."""
    return sorted(changes, key=lambda change: (change not in main, -abs(change.difference.value or 0)))


def _list(changes: Sequence[Change]) -> str:
    return name_first([f"{change.part} ({change.bounded_loss()})" for change in changes])
