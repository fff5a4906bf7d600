"""Batching stage: comparison of a run's answers with those that its engine gives sequentially."""

from __future__ import annotations

from collections.abc import Sequence

from app.parity.model_probing import MAX_FORCED_TOKENS
from app.parity.numerics_stage import ROUNDING_NOISE, replay, rounding_noise
from app.parity.output_stages import RunOutputs
from app.parity.parity_stages import StageFinding
from app.parity.probe_store import StoredProbes
from mlx_backends.core.engine_probe import Probe

_MULTIPLE = 4
"""The factor of the batch-invariance check: two logprobs move, and each may move twice as far as was measured."""


def batching_finding(
    a: tuple[RunOutputs, StoredProbes | None], b: tuple[RunOutputs, StoredProbes | None], instances: Sequence[str]
) -> list[StageFinding]:
    """Return the stage's finding over both runs, naming those whose sequential answers differ."""
    summaries, causes = [], []
    for name, (run, stored_probes) in (("A", a), ("B", b)):
        if stored_probes is None or run.spec.decoding.temperature:
            continue
        if stored_probes.alone:
            differing, count, first = _compare_sequential(run, stored_probes, instances)
            source = f"{name}'s server gives sequentially"
        else:
            replayed = replay(_forced_probes(run, stored_probes, instances), _noise(run))
            differing, count, first = replayed.other, replayed.answers, replayed.first
            source = f"{name} gives sequentially"
            if replayed.other:
                first += f", where another token is ahead by {replayed.margin:.2g}"
        if not count:
            continue
        summary = f"{count - differing} of {count} answers of {name}'s run are those that {source}"
        if differing:
            summary += f" (first that differs: {first})"
            causes.append(f"{differing} of {count} answers of {name}'s run are not those that {source} (batching)")
        summaries.append(summary)
    if not summaries:
        return [StageFinding("batching", "unknown", "no run's answers were compared with sequential ones")]
    return [StageFinding("batching", "differs" if causes else "same", "; ".join(summaries), "; ".join(causes))]


def _forced_probes(run: RunOutputs, stored: StoredProbes, instances: Sequence[str]) -> list[Probe]:
    """Return the probes of the run's own answers."""
    probes = []
    for instance in instances:
        step = run.records[instance].generations[0]
        probe = stored.forced_probe(run.request(instance).id, step.tokens[:MAX_FORCED_TOKENS])
        if probe is not None and step.tokens:
            probes.append(probe)
    return probes


def _noise(run: RunOutputs) -> float:
    """Return the largest lead of another token that rounding explains, from the run's own measurements where it has any."""
    return largest_tie(max((float(canary.get("noise", 0)) for canary in run.canaries), default=0.0), run.quantisation)


def largest_tie(noise: float, quantisation: str | None) -> float:
    """Return the largest lead of another token that rounding explains, for the ``noise`` that a run's check measured, or 0."""
    return max(_MULTIPLE * noise, ROUNDING_NOISE["fp32"]) if noise else _MULTIPLE * rounding_noise(quantisation)


def _compare_sequential(run: RunOutputs, stored: StoredProbes, instances: Sequence[str]) -> tuple[int, int, str]:
    """Return the number of answers that differ from the sequential ones, the number compared, and the first that differs."""
    pairs = [
        (instance, run.records[instance].generations[0].text, stored.alone[request])
        for instance in instances
        if (request := run.request(instance).id) in stored.alone
    ]
    differing = [instance for instance, batched, sequential in pairs if batched.strip() != sequential.strip()]
    return len(differing), len(pairs), differing[0] if differing else ""
