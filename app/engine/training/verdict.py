"""Verdict on a training: whether its best adapter is to be used, by its validation loss and by the answers of its checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.engine.training.log import Curve
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED
from mlx_backends.training import LEAST_GAIN, CheckReport

_SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True)
class TrainingVerdict:
    """A verdict in a sentence, with the exit code of the command: 0 to use an adapter, 5 not to, 6 where nothing can be told."""

    code: int
    sentence: str


def verdict_of(curve: Curve) -> TrainingVerdict:
    """Return the verdict on the training of a curve."""
    return training_verdict(curve.base, curve.best)


def chosen_rate(curve: Curve, rates: Sequence[float]) -> float | None:
    """Return the learning rate that a search among ``rates`` chose; None where there is none, or none yet."""
    losses = {rate: loss for rate, loss in curve.trials if loss is not None}
    return min(losses, key=lambda rate: losses[rate]) if losses and len(curve.trials) >= len(rates) else None


def rate_sentence(trials: Sequence[tuple[float, float | None]], chosen: float | None) -> str:
    """Return the learning rates that were tried and the ``chosen`` one, if there is one yet; nothing without a trial."""
    losses = ", ".join(f"{rate:g}: {'diverged' if loss is None else f'{loss:.4g}'}" for rate, loss in trials)
    if not losses:
        return ""
    if chosen is None:
        return f"validation losses by learning rate: {losses}"
    return f"learning rate {chosen:g}, which had the lowest validation loss of those tried ({losses})"


def training_verdict(
    base: float | None,
    best: tuple[int, float] | None,
    before: CheckReport | None = None,
    after: CheckReport | None = None,
) -> TrainingVerdict:
    """Return the verdict on a training.

    ``base`` is the base's validation loss, ``best`` the update of the lowest one and that loss; ``before`` and ``after`` are the
    checks of the base and of that update.
    """
    if base is None:
        return TrainingVerdict(
            INCONCLUSIVE,
            "nothing can be told: the base has no validation loss; compare a run of the adapter with the base's",
        )
    if best is None:
        return TrainingVerdict(REGRESSED, "do not use it: no update has a validation loss")
    step, loss = best
    losses = f"loss {loss:.4g} against {base:.4g} of the base"
    answers = "" if before is None or after is None else f", {_answers(before, after)}"
    if loss > base:
        return TrainingVerdict(
            REGRESSED, f"do not use it: worse than the base, at best (update {step}) {losses}{answers}"
        )
    if before is not None and after is not None and _keeps_less(before, after):
        return TrainingVerdict(
            REGRESSED,
            f"do not use it: worse than the base where nothing conflicts, at best (update {step}) {losses}{answers}",
        )
    if loss > base * (1 - LEAST_GAIN):
        return TrainingVerdict(
            INCONCLUSIVE,
            f"nothing can be told: at best (update {step}) {losses}{answers}, a difference of less than {LEAST_GAIN:.0%}",
        )
    return TrainingVerdict(DONE, f"use best, update {step}: {losses}{answers}")


def _answers(before: CheckReport, after: CheckReport) -> str:
    """Return what the checks count, as the end of a sentence."""
    parts = []
    if after.conflicts:
        parts.append(f"names conflicts {before.named} to {after.named} of {after.conflicts}")
    if after.agreeing:
        parts.append(f"keeps {before.kept} to {after.kept} of {after.agreeing}")
    return ", ".join(parts)


def _keeps_less(before: CheckReport, after: CheckReport) -> bool:
    """Return whether fewer answers without a conflict are shown to be right than before, by Fisher's exact test."""
    right, rows = before.kept + after.kept, before.agreeing + after.agreeing
    if not before.agreeing or not after.agreeing or after.kept >= before.kept:
        return False
    ways = [
        math.comb(after.agreeing, kept) * math.comb(before.agreeing, right - kept)
        for kept in range(max(0, right - before.agreeing), after.kept + 1)
    ]
    return sum(ways) / math.comb(rows, right) <= _SIGNIFICANCE
