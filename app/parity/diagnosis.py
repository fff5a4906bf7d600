"""The verdict: the earliest stage at which two sides part, what else is the matter, and how much it changes, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.compare.spec_diff import stem_of
from app.parity.outputs import RunOutputs
from app.parity.stages import STAGES, Stage, StageFinding

_INPUTS: tuple[Stage, ...] = ("asked", "prompt", "tokens", "images", "pixels")
_FOLLOWS: Mapping[Stage, tuple[Stage, ...]] = {
    "prompt": ("asked",),
    "tokens": ("asked", "prompt", "images", "pixels"),
    "images": ("asked",),
    "pixels": ("asked", "images"),
    "numerics": _INPUTS,
}
"""What a stage's difference may follow from, so that it is no cause of its own."""

_VERSION = "version of "


def causes(findings: Sequence[StageFinding]) -> list[StageFinding]:
    """The findings that differ and do not follow from another one, in the order of the stages; the first is the verdict."""
    differs = [finding for finding in findings if finding.found == "differs"]
    there = {finding.stage for finding in differs}
    return [each for each in differs if not there & set(_FOLLOWS.get(each.stage, ()))]


def verdict(findings: Sequence[StageFinding], consequence: str) -> str:
    """Where A and B part, why, and how much it changes."""
    found = causes(findings)
    by_stage = {finding.stage: finding for finding in findings}
    unknown = [STAGES[each.stage] for each in findings if each.found == "unknown"]
    if found:
        first, *others = found
        told = [f"A and B part at {STAGES[first.stage]}: {first.cause}."]
        told += [f"Besides, at {STAGES[each.stage]}: {each.cause}." for each in others]
    elif "numerics" in by_stage and by_stage["numerics"].found == "noise":
        told = ["A and B part at what the weights make of the same inputs, within the noise of rounding alone."]
    elif unknown:
        told = [f"Nothing that was looked at differs; not looked at: {', '.join(unknown)}."]
    else:
        told = ["A and B do not part at any stage."]
    return " ".join([*told, consequence])


def weights_cause(a: RunOutputs, b: RunOutputs) -> str:
    """What sets two models apart that are given the same: quantisation, framework, both, or other weights."""
    one, other = a.quantisation, b.quantisation
    frameworks = _frameworks(a, b)
    framework = f"the framework ({frameworks[0]} in A, {frameworks[1]} in B)" if frameworks[0] != frameworks[1] else ""
    widths = f"the quantisation ({one or 'none'} in A, {other or 'none'} in B)" if one != other else ""
    if framework and widths:
        return f"{framework} and {widths} together, which `rashomon parity --model` tells apart"
    if a.identity.get("weights digest") != b.identity.get("weights digest") and not widths:
        same = stem_of(Path(a.spec.model).name) == stem_of(Path(b.spec.model).name)
        other_weights = "another conversion of the weights" if same else "other weights"
        return f"{framework} and {other_weights}" if framework else other_weights
    return widths or framework or "the same weights in the same engine give other numbers"


def _frameworks(a: RunOutputs, b: RunOutputs) -> tuple[str, str]:
    """The engines and their devices; of one engine on one device, the libraries whose versions differ."""
    named = [f"{run.identity.get('engine')} on {run.identity.get('device')}" for run in (a, b)]
    if named[0] != named[1]:
        return named[0], named[1]
    keys = [key for key in a.identity if key.startswith(_VERSION) and a.identity[key] != b.identity.get(key)]
    told = [" ".join(f"{key.removeprefix(_VERSION)} {run.identity.get(key)}" for key in keys) for run in (a, b)]
    return told[0], told[1]
