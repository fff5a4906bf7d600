"""Whether a run's answers are those that its engine gives when nothing else is under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.parity.numerics import NOISE, noise_of, replay
from app.parity.outputs import RunOutputs
from app.parity.probe_store import StoredProbes
from app.parity.probing import FORCED
from app.parity.stages import StageFinding

_MULTIPLE = 4
"""As in the canary: two logprobs move, and either may move twice as far as was seen."""


def batching_finding(
    a: tuple[RunOutputs, StoredProbes | None], b: tuple[RunOutputs, StoredProbes | None], instances: Sequence[str]
) -> list[StageFinding]:
    """The stage's finding over both runs, with whoever answers otherwise alone named."""
    told, causes, looked = [], [], False
    for name, (run, kept) in (("A", a), ("B", b)):
        if kept is None or run.spec.decoding.temperature:
            continue
        if kept.alone:
            other, count, first = _asked_again(run, kept, instances)
            who = f"{name}'s server gives when it is asked one at a time"
        else:
            found = replay(_own(run, kept, instances), _noise(run))
            other, count, first = found.other, found.answers, found.first
            who = f"{name} gives alone"
            if found.other:
                first += f", where another token is ahead by {found.margin:.2g}"
        if not count:
            continue
        looked = True
        told.append(f"{count - other} of {count} answers of {name}'s run are what {who}")
        if other:
            told[-1] += f" (first another one: {first})"
            causes.append(f"{other} of {count} answers of {name}'s run are not what {who} (batching)")
    if not looked:
        return [StageFinding("batching", "unknown", "no run's answers were looked at alone")]
    return [StageFinding("batching", "differs" if causes else "same", "; ".join(told), "; ".join(causes))]


def _own(run: RunOutputs, kept: StoredProbes, instances: Sequence[str]) -> list[Any]:
    found = []
    for instance in instances:
        step = run.records[instance].generations[0]
        probe = kept.of(run.request(instance).id, step.tokens[:FORCED])
        if probe is not None and step.tokens:
            found.append(probe)
    return found


def _noise(run: RunOutputs) -> float:
    """How far ahead another token may be for rounding to decide: by the noise that the run's canaries saw, where they did."""
    measured = max((float(canary.get("noise", 0)) for canary in run.canaries), default=0.0)
    return max(_MULTIPLE * measured, NOISE["fp32"]) if measured else _MULTIPLE * noise_of(run.quantisation)


def _asked_again(run: RunOutputs, kept: StoredProbes, instances: Sequence[str]) -> tuple[int, int, str]:
    """How many answers are others when they are asked for alone, of how many, and the first of them."""
    pairs = [
        (instance, run.records[instance].generations[0].text, kept.alone[request])
        for instance in instances
        if (request := run.request(instance).id) in kept.alone
    ]
    other = [instance for instance, before, now in pairs if before.strip() != now.strip()]
    return len(other), len(pairs), other[0] if other else ""
