"""Verdict on a training: whether its best adapter is to be used, by its validation loss and by the answers of its checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.engine.training.training_answer_checks import (
    change_line,
    doubts_labels,
    loss_phrase,
    missing_kind,
    shown_changes,
)
from app.engine.training.training_log import Curve
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED
from app.text.plural import count_of
from mlx_backends import training_settings
from mlx_backends.training_settings import AGREEMENT, LEAST_GAIN, LEAST_RISE, CheckReport

_LEAST_DIFFERENCE = 0.001
"""The least difference of a loss that counts, in nats a token: an answer of ten tokens is 1% more or less likely."""
_SIGNIFICANCE = 0.05
_FEWEST_EXAMPLES = 6
"""The fewest examples in which a difference can be shown: all of them differ alike with p = .031."""
_SHARE_IN_DOUBT = 0.25
"""The share of the rows without a conflict whose right answers may be lost, unshown, where an adapter is not recommended."""
_COMPARE = "a run with the adapter, compared with the base's, would decide"


@dataclass(frozen=True, slots=True)
class TrainingVerdict:
    """A verdict in a sentence, with the exit code of the command: 0 to use an adapter, 5 not to, 6 where nothing can be told."""

    code: int
    sentence: str


@dataclass(frozen=True, slots=True)
class LossChange:
    """The validation losses of the base and of the best update, of all rows and by example.

    Attributes:
        base: The base's loss.
        best: The best update's.
        lower: The number of examples in which the best update's is lower.
        higher: The number of those in which it is higher.
        examples: The number of examples; those that differ by less than :data:`_LEAST_DIFFERENCE` are neither.
    """

    base: float
    best: float
    lower: int
    higher: int
    examples: int

    @classmethod
    def of(cls, curve: Curve) -> LossChange | None:
        """Return the change that a curve shows; None where the base or an update has no validation loss."""
        if curve.base is None or curve.best is None:
            return None
        pairs = zip(curve.base_examples, curve.best_examples, strict=False)
        differences = [base - best for base, best in pairs]
        lower, higher = (sum(sign * difference >= _LEAST_DIFFERENCE for difference in differences) for sign in (1, -1))
        return cls(curve.base, curve.best[1], lower, higher, len(differences))

    @property
    def is_great(self) -> bool:
        """Return whether the losses differ enough to matter, as a share of the base's and by themselves."""
        return abs(self.base - self.best) >= max(LEAST_GAIN * self.base, _LEAST_DIFFERENCE)

    @property
    def shown(self) -> int:
        """Return the sign of the change that is shown: -1 for a lower loss, 1 for a higher one, 0 for none."""
        from benchmarks.stats.paired_tests import sign_flip_test

        direction = 1 if self.best > self.base else -1
        examples = self.higher - self.lower
        p = sign_flip_test([1] * self.higher + [-1] * self.lower)
        return direction if self.is_great and examples * direction > 0 and p <= _SIGNIFICANCE else 0

    def doubt(self) -> str:
        """Return why no change is shown, and what would decide."""
        if not self.examples:
            return f"no losses by example were recorded; {_COMPARE}"
        if self.examples < _FEWEST_EXAMPLES:
            few = count_of(self.examples, "validation example")
            return f"{few} can show no difference; give {_FEWEST_EXAMPLES} or more"
        if not self.is_great:
            return f"the losses differ by less than {LEAST_GAIN:.0%}, or by less than {_LEAST_DIFFERENCE:g}; {_COMPARE}"
        word, count, other = "higher", self.higher, self.lower
        if self.best < self.base:
            word, count, other = "lower", self.lower, self.higher
        if count <= other:
            return f"the mean loss is {word}, but only in {count} of {self.examples} examples; {_COMPARE}"
        return (
            f"the loss is {word} in {count} of {self.examples} examples, which may be chance; about {self._decisive()} would "
            "decide, if they differ alike"
        )

    def _decisive(self) -> int:
        """Return the number of validation examples that would decide if they differ as these do, as of a normal distribution."""
        varied, net = self.lower + self.higher, abs(self.lower - self.higher)
        factor = max(4 * varied / net**2, _FEWEST_EXAMPLES / varied)
        return max(self.examples + 1, math.ceil(self.examples * factor))


def verdict_of(curve: Curve, *, has_conflicts: bool = True) -> TrainingVerdict:
    """Return the verdict on the training of a curve; ``has_conflicts`` states that it teaches rows with a conflict.

    An adapter is for use if its loss is shown to be lower, no loss of right answers is shown, and a gain of them is, unless the
    checks were switched off.
    """
    if curve.base is None:
        return _untold("the base has no validation loss; compare a run of the adapter with the base's")
    change = LossChange.of(curve)
    if change is None or curve.best is None:
        return TrainingVerdict(REGRESSED, "do not use it: no update has a validation loss")
    step = curve.best[0]
    checks = {check.step: check for check in curve.checks}
    before, after = checks.get(0), checks.get(step)
    losses = f"loss {change.best:.4g} against {change.base:.4g} of the base"
    pair = None if before is None or after is None else (before, after)
    answers = "" if pair is None else f", {change_line(*pair)}"
    at_best = f"at best (update {step}) {losses}{answers}"
    if change.shown > 0:
        return TrainingVerdict(REGRESSED, f"do not use it: worse than the base, {at_best}")
    if pair is not None and (lost := shown_changes(*pair, -1)):
        reasons = " and ".join(loss_phrase(pair[1], kind) for kind in lost)
        return TrainingVerdict(REGRESSED, f"do not use it: worse than the base, {reasons}; {at_best}")
    highest = max(loss for _, loss in curve.validations) if curve.validations else change.best
    if not change.shown and highest >= change.base + LEAST_RISE:
        rise = f"its loss rose to {highest:.4g} on the way, and no update is shown to be better than the base"
        return TrainingVerdict(REGRESSED, f"do not use it: {rise}; {at_best}")
    if not change.shown:
        return _untold(f"{change.doubt()}; {at_best}")
    if before is not None and (doubt := _answer_doubt(before, after, has_conflicts=has_conflicts)):
        return _untold(f"{doubt}; {at_best}")
    return TrainingVerdict(DONE, f"use best, update {step}: {losses}{answers}")


def _answer_doubt(before: CheckReport, after: CheckReport | None, *, has_conflicts: bool) -> str:
    """Return why the checks of the base and of the best update give no advice to use it; nothing where they do."""
    if after is None:
        return f"the answers of the best update were not checked; {_COMPARE}"
    if missing := missing_kind(after, has_conflicts=has_conflicts):
        words = "without a conflict" if missing == AGREEMENT else "with a conflict"
        return f"nothing was checked {words}: add such rows to the data"
    if shown_changes(before, after, -1, at_worst=True):
        return "answers that the rules cannot tell may be losses"
    if (fewer := before.kept - after.kept) and fewer >= _SHARE_IN_DOUBT * after.agreeing:
        return f"{fewer} of {after.agreeing} right answers may be lost; {_COMPARE}"
    gains = shown_changes(before, after, 1)
    if doubts_labels(before) and AGREEMENT not in gains:
        return (
            f"the base gives only {before.kept} of {before.agreeing} answers to learn without a conflict, so they may be wrong; "
            f"if they are right, {_COMPARE}"
        )
    return "" if gains else f"no gain in right answers is shown; {_COMPARE}"


def _untold(reason: str) -> TrainingVerdict:
    return TrainingVerdict(INCONCLUSIVE, f"nothing can be told: {reason}")


def chosen_rate(curve: Curve, rates: Sequence[float]) -> float | None:
    """Return the learning rate that a search among ``rates`` chose; None where there is none, or none yet."""
    is_over = len(curve.trials) >= len(rates) and any(loss is not None for _, loss in curve.trials)
    return training_settings.chosen_rate(curve.trials, curve.base) if is_over else None


def rate_sentence(trials: Sequence[tuple[float, float | None]], chosen: float | None) -> str:
    """Return the learning rates that were tried and the ``chosen`` one, if there is one yet; nothing without a trial."""
    losses = ", ".join(f"{rate:g}: {'diverged' if loss is None else f'{loss:.4g}'}" for rate, loss in trials)
    if not losses:
        return ""
    if chosen is None:
        return f"validation losses by learning rate: {losses}"
    least = min((loss, rate) for rate, loss in trials if loss is not None)[1]
    if chosen == least:
        return f"learning rate {chosen:g}, which had the lowest validation loss of those tried ({losses})"
    return f"learning rate {chosen:g}, the lowest whose validation loss fell nearly as far as any ({losses})"
