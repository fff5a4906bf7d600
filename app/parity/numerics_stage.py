"""Numerics stage: two engines' logprobs for the same inputs, under teacher forcing with the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp

from app.parity.parity_stages import StageFinding
from mlx_backends.core.engine_probe import Probe

TOP_LOGITS = 10
"""The number of A's likeliest tokens whose logits are compared."""

ROUNDING_NOISE = {"fp32": 0.002, "": 0.05}
"""The largest mean shift of a logit that counts as rounding, in fp32 and in anything else. Our choice.

Measured on the demo model, against fp32 in MLX: bf16 0.012, 8-bit 0.013, 4-bit 0.16, 3-bit 0.42. Logits of real models lie
between 16 and 32, where one step of bf16 is 0.125, so that rounding just the last of them moves it by 0.03.
"""


@dataclass(frozen=True, slots=True)
class Numerics:
    """Numerical differences between two engines over ``positions`` tokens of the same answers.

    Attributes:
        positions: The number of compared tokens.
        top_same: The number of positions with the same likeliest token.
        moved: The mean shift of a logit, over A's 10 likeliest tokens of each position, after both engines' logits are shifted to
            the same mean over these (logprobs determine logits up to that).
        most: The largest such shift.
        logprob: The largest difference in the logprob of the answer's own token.
        kl: The mean divergence of B from A over A's 20 likeliest tokens, in nats.
        margin: The largest lead in A of the likeliest token where B has another one.
    """

    positions: int
    top_same: int
    moved: float
    most: float
    logprob: float
    kl: float
    margin: float


def compare_numerics(pairs: Iterable[tuple[Probe, Probe]]) -> Numerics | None:
    """Return the difference over all pairs of probes with the same forced tokens; None where there are none."""
    positions = same_count = 0
    shifts: list[float] = []
    divergences: list[float] = []
    logprob = margin = 0.0
    for a, b in pairs:
        if a.forced != b.forced:
            continue
        logprob = max(
            [
                logprob,
                *(abs(value_a - value_b) for value_a, value_b in zip(a.logprobs, b.logprobs, strict=True)),
            ]
        )
        for top_a, top_b in zip(a.top, b.top, strict=True):
            logprobs_a, logprobs_b = dict(top_a), dict(top_b)
            # A token that is not among B's twenty is less likely than the last of them, so this is a lower bound.
            least_logprob = top_b[-1][1]
            differences = [logprobs_b.get(token, least_logprob) - p for token, p in top_a[:TOP_LOGITS]]
            mean = sum(differences) / len(differences)
            shifts += [abs(difference - mean) for difference in differences]
            divergences.append(max(0.0, sum(exp(p) * (p - logprobs_b.get(token, least_logprob)) for token, p in top_a)))
            positions += 1
            if top_a[0][0] == top_b[0][0]:
                same_count += 1
            else:
                margin = max(margin, top_a[0][1] - logprobs_a.get(top_b[0][0], top_a[-1][1]))
    if not positions:
        return None
    divergence = sum(divergences) / positions
    return Numerics(positions, same_count, sum(shifts) / len(shifts), max(shifts), logprob, divergence, margin)


def numerics_finding(numerics: Numerics | None, cause: str, noise: float) -> StageFinding:
    """Return the stage's finding: within ``noise`` the difference is rounding, beyond it is ``cause``."""
    if numerics is None:
        return StageFinding("numerics", "unknown", "no answer was forced through both models")
    summary = (
        f"the likeliest token is the same at {numerics.top_same} of {numerics.positions} positions; a logit moves by "
        f"{_short(numerics.moved)} on average, {_short(numerics.most)} at most, the logprob of an answer's token by "
        f"{_short(numerics.logprob)} at most; divergence {_short(numerics.kl)} nats"
    )
    if numerics.top_same < numerics.positions:
        summary += f"; where it differs, its lead was {_short(numerics.margin)} at most"
    if not numerics.most and not numerics.logprob:
        return StageFinding("numerics", "same", summary)
    if numerics.moved <= noise:
        return StageFinding("numerics", "noise", f"{summary}; within rounding ({noise:g} on average)")
    return StageFinding("numerics", "differs", summary, cause)


def rounding_noise(*quantisations: str | None) -> float:
    """Return the noise between models of these ``EngineInfo.quantisation``: the coarsest one's ("bf16 in fp32" is fp32)."""
    precisions = ((quantisation or "").rpartition(" in ")[2] for quantisation in quantisations)
    return max(ROUNDING_NOISE.get(precision, ROUNDING_NOISE[""]) for precision in precisions)


@dataclass(frozen=True, slots=True)
class Replay:
    """One engine's answers, replayed sequentially: ``other`` of ``answers`` differ from those in the run.

    ``first`` names the first of those; ``margin`` is the largest lead of another token over the one in the answer.
    """

    answers: int
    other: int = 0
    first: str = ""
    margin: float = 0.0


def replay(probes: Sequence[Probe], noise: float) -> Replay:
    """Compare the forced tokens of ``probes``, a run's own greedy answers, with those that the engine gives sequentially.

    A token differs where another one is ahead by more than ``noise``; smaller leads are ties that rounding decides.
    """
    n_differing, first, largest = 0, "", 0.0
    for probe in probes:
        leads = [
            (top[0][1] - logprob if top[0][0] != token else 0.0)
            for token, logprob, top in zip(probe.forced, probe.logprobs, probe.top, strict=True)
        ]
        place = next((i for i, lead in enumerate(leads) if lead > noise), None)
        if place is not None:  # later tokens depend on this one, so they add nothing
            n_differing += 1
            first = first or f"{probe.request_id}, token {place + 1}"
            largest = max(largest, leads[place])
    return Replay(len(probes), n_differing, first, largest)


def _short(value: float) -> str:
    return f"{value:.2g}"
