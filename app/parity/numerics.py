"""What two engines make of the same inputs: the logprobs before each token of an answer that both are led through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING

from app.parity.stages import StageFinding

if TYPE_CHECKING:
    from mlx_backends.core.probe import Probe

HIGHEST = 10
"""Logits are compared of so many of A's likeliest tokens."""

NOISE = {"fp32": 0.002, "": 0.05}
"""By how much rounding moves a logit on average, at most: in fp32, and in anything else. Ours to choose.

Measured on the demo model, against fp32 in MLX: bf16 0.012, 8-bit 0.013, 4-bit 0.16, 3-bit 0.42. Logits of real models lie
between 16 and 32, where one step of bf16 is 0.125, so that rounding the last of them alone moves it by 0.03.
"""


@dataclass(frozen=True, slots=True)
class Numerics:
    """Two engines over ``positions`` tokens of the same answers: at ``top_same`` of them the likeliest token is the same.

    ``moved`` is by how much a logit differs on average and ``most`` at most, of A's 10 likeliest tokens of each position, after
    both engines' are shifted to the same mean over these (logprobs tell logits up to that); ``logprob`` by how much the logprob
    of the answer's own token does at most. ``kl`` is the mean divergence of B from A over A's 20 likeliest tokens, in nats;
    ``margin`` by how much the likeliest token was ahead in A where it is another one in B, at most.
    """

    positions: int
    top_same: int
    moved: float
    most: float
    logprob: float
    kl: float
    margin: float


def compare_numerics(pairs: Iterable[tuple[Probe, Probe]]) -> Numerics | None:
    """The difference over all probes that were led through the same tokens; None where there are none."""
    positions = same = 0
    moves: list[float] = []
    divergences: list[float] = []
    logprob = margin = 0.0
    for a, b in pairs:
        if a.forced != b.forced:
            continue
        logprob = max([logprob, *(abs(one - other) for one, other in zip(a.logprobs, b.logprobs, strict=True))])
        for ours, theirs in zip(a.top, b.top, strict=True):
            one, other = dict(ours), dict(theirs)
            # A token that is not among B's twenty is less likely than the last of them: it differs by at least that.
            least = theirs[-1][1]
            apart = [other.get(token, least) - p for token, p in ours[:HIGHEST]]
            mean = sum(apart) / len(apart)
            moves += [abs(each - mean) for each in apart]
            divergences.append(max(0.0, sum(exp(p) * (p - other.get(token, least)) for token, p in ours)))
            positions += 1
            if ours[0][0] == theirs[0][0]:
                same += 1
            else:
                margin = max(margin, ours[0][1] - one.get(theirs[0][0], ours[-1][1]))
    if not positions:
        return None
    divergence = sum(divergences) / positions
    return Numerics(positions, same, sum(moves) / len(moves), max(moves), logprob, divergence, margin)


def numerics_finding(found: Numerics | None, cause: str, noise: float) -> StageFinding:
    """The stage's finding: within ``noise`` the difference is rounding, beyond it is ``cause``."""
    if found is None:
        return StageFinding("numerics", "unknown", "no answer was led through both")
    said = (
        f"the likeliest token is the same in {found.top_same} of {found.positions} places; a logit moves by "
        f"{_small(found.moved)} on average, {_small(found.most)} at most, the logprob of an answer's token by "
        f"{_small(found.logprob)} at most; divergence {_small(found.kl)} nats"
    )
    if found.top_same < found.positions:
        said += f"; where it is another, it was ahead by {_small(found.margin)} at most"
    if not found.most and not found.logprob:
        return StageFinding("numerics", "same", said)
    if found.moved <= noise:
        return StageFinding("numerics", "noise", f"{said}; within rounding ({noise:g} on average)")
    return StageFinding("numerics", "differs", said, cause)


def noise_of(*quantisations: str | None) -> float:
    """What counts as rounding between models of these ``EngineInfo.quantisation``: the coarser's ("bf16 in fp32" is fp32)."""
    return max(NOISE.get((each or "").rpartition(" in ")[2], NOISE[""]) for each in quantisations)


@dataclass(frozen=True, slots=True)
class Replay:
    """One engine led alone through what it answered in its run: of ``answers``, ``other`` are not what it says alone.

    ``first`` names the first of those; ``margin`` is by how much, at most, another token was ahead of the one that was given.
    """

    answers: int
    other: int = 0
    first: str = ""
    margin: float = 0.0


def replay(probes: Sequence[Probe], noise: float) -> Replay:
    """Whether the forced tokens of ``probes``, a run's own greedy answers, are those that the engine gives alone.

    A token counts as another one where a likelier was ahead by more than ``noise``: nearer ones are ties that rounding decides.
    """
    other, first, most = 0, "", 0.0
    for probe in probes:
        behind = [
            (top[0][1] - logprob if top[0][0] != token else 0.0)
            for token, logprob, top in zip(probe.forced, probe.logprobs, probe.top, strict=True)
        ]
        at = next((i for i, each in enumerate(behind) if each > noise), None)
        if at is not None:  # what follows it rests on it, and says nothing more
            other += 1
            first = first or f"{probe.request_id}, token {at + 1}"
            most = max(most, behind[at])
    return Replay(len(probes), other, first, most)


def _small(value: float) -> str:
    return f"{value:.2g}"
