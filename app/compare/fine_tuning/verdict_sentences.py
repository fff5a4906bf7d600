"""Sentences of a verdict on a fine-tuned model: what it loses and what it gains."""

from __future__ import annotations

from collections.abc import Sequence

from app.compare.fine_tuning.change_by_training import ABSTAINS, Change
from app.compare.fine_tuning.fine_tuning_effect import FineTuning
from app.report.tables.single_source_accuracy import join_names
from app.text.percentage_points import format_points
from app.text.plural import count_of
from benchmarks.answer_behaviour import ACTS
from benchmarks.stats.intervals import span

_WORDS = 3
"""The most kinds of answers that are named of a loss."""
_NAMED = 3
"""The most parts that are named where the table has the others."""


def losses_sentence(tuning: FineTuning, losses: Sequence[Change], decisive: Sequence[Change]) -> str:
    """Return every loss in a sentence: the first with what the answers became, the others with their points.

    A condition that loses about as much as the conditions together is named with these, without its points.
    """
    alike = {change.part: _alike(change, losses) for change in losses}
    covered = {part for parts in alike.values() for part in parts}
    named = [change for change in losses if change.part not in covered]
    if not named:
        return ""
    remarks = [_remark(tuning, change, alike[change.part], decisive) for change in named]
    first = f"{tuning.tuned.label} loses {_points_of(named[0], remarks[0])}{_shares(named[0])}{_became(named[0])}"
    sizes = [format_points(abs(change.difference.value or 0)) for change in named]
    others = [
        f"{size}{' points' * (place == 1)} {change.part}{f' ({remark})' if remark else ''}"
        for place, (size, change, remark) in enumerate(zip(sizes, named, remarks, strict=True))
        if place
    ]
    return f"{first}{f'; it also loses {join_names(others)}' if others else ''}."


def gains_sentence(tuning: FineTuning, gains: Sequence[Change], *, lost: bool) -> str:
    """Return the gains in a sentence; where none is shown, the change that training is for."""
    subject, gain = "It" if lost else tuning.tuned.label, tuning.gain
    if gain.difference.value is None:
        return f"{subject} cannot be compared {gain.part}: {gain.difference.reason}."
    if gains:
        gained = [_points_of(change, _by_abstaining(change)) for change in gains]
        is_named = gain in gains or gain.is_loss()
        rest = "" if is_named else f"; {gain.part} it changes by {gain.points()}"
        return f"{subject} gains {join_names(gained)}{_needless(tuning, gains)}{rest}."
    if lost and gain.is_loss():
        return "No gain is shown."
    of = "" if lost else f" of {tuning.tuned.label}"
    return f"No gain{of} can be shown {gain.part}: {gain.points()}."


def name_first(names: Sequence[str]) -> str:
    """Return names in words, the first few of many."""
    more = len(names) - _NAMED
    if more <= 1:
        return join_names([*names])
    return f"{join_names([*names[:_NAMED], f'{more} more'])} (see the table)"


def _alike(total: Change, losses: Sequence[Change]) -> list[str]:
    """Return the conditions of a ``total`` whose shown loss differs from its loss by no more than their intervals."""
    value = total.difference.value or 0
    own = [(change.part, change.interval()) for change in losses if change.total == total.part]
    return [part for part, ends in own if ends is not None and ends[0] <= value <= ends[1]]


def _remark(tuning: FineTuning, change: Change, alike: Sequence[str], decisive: Sequence[Change]) -> str:
    """Return the conditions that lose about as much, or how many lost answers were right where these few do not decide."""
    if alike:
        return f"{join_names([*alike])} {'too' if len(alike) == 1 else 'alike'}"
    if change.of_right is None or change in decisive:
        return ""
    count = change.of_right.lost
    were = "followed your rule" if tuning.rule else "was right" if count < 2 else "were right"
    return f"{f'{count:,}' if count else 'none'} {were} before"


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
    first = f"{most:,} of {change.difference.n:,} now {_verb(behaviour, most)}"
    return f": {join_names([first, *(f'{count:,} {_verb(name, count)}' for name, count in others)])}"


def _verb(behaviour: str, count: int) -> str:
    """Return a behaviour such as "invents a value" with the verb's number."""
    if behaviour == ACTS["none"]:
        return "has no answer" if count == 1 else "have no answer"
    verb, space, rest = behaviour.partition(" ")
    return behaviour if count == 1 else f"{verb.removesuffix('s')}{space}{rest}"


def _by_abstaining(change: Change) -> str:
    count = dict(change.rose_by).get(ABSTAINS, 0)
    return f"{count:,} of {count_of(change.gained, 'answer')} by abstaining" if 2 * count > change.gained else ""


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
