"""Diagnosis of a parity report: the earliest stage that differs, other causes, and the effect, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.parity.output_stages import RunOutputs
from app.parity.parity_stages import STAGES, Stage, StageFinding
from mlx_backends.models.unquantised_names import unquantised_name

_INPUTS: tuple[Stage, ...] = ("asked", "prompt", "tokens", "images", "pixels")
_CAUSED_BY: Mapping[Stage, tuple[Stage, ...]] = {
    "prompt": ("asked",),
    "tokens": ("asked", "prompt", "images", "pixels"),
    "images": ("asked",),
    "pixels": ("asked", "images"),
    "numerics": _INPUTS,
}
"""The earlier stages that can cause a stage's difference; if one of them differs, the stage is no cause of its own."""

_VERSION = "version of "


def root_causes(findings: Sequence[StageFinding]) -> list[StageFinding]:
    """Return the differing findings that no other finding causes, in the order of the stages."""
    differing = [finding for finding in findings if finding.status == "differs"]
    stages = {finding.stage for finding in differing}
    return [finding for finding in differing if not stages & set(_CAUSED_BY.get(finding.stage, ()))]


def verdict_sentence(findings: Sequence[StageFinding], consequence: str) -> str:
    """Return the first difference between A and B, other causes, and the ``consequence``, as sentences."""
    causes = root_causes(findings)
    by_stage = {finding.stage: finding for finding in findings}
    unknown = [STAGES[finding.stage] for finding in findings if finding.status == "unknown"]
    if causes:
        first, *others = causes
        sentences = [f"A and B first differ at {STAGES[first.stage]}: {first.cause}."]
        sentences += [f"They also differ at {STAGES[finding.stage]}: {finding.cause}." for finding in others]
    elif "numerics" in by_stage and by_stage["numerics"].status == "noise":
        sentences = ["A and B first differ at the logits for the same inputs, but only within rounding noise."]
    elif unknown:
        sentences = [f"Nothing that was compared differs; not compared: {', '.join(unknown)}."]
    else:
        sentences = ["A and B do not differ at any stage."]
    return " ".join([*sentences, consequence])


def weights_cause(a: RunOutputs, b: RunOutputs) -> str:
    """Return the difference between two models that get the same inputs: quantisation, framework, both, or the weights."""
    frameworks = _frameworks(a, b)
    framework = f"the framework ({frameworks[0]} in A, {frameworks[1]} in B)" if frameworks[0] != frameworks[1] else ""
    widths = (
        f"the quantisation ({a.quantisation or 'none'} in A, {b.quantisation or 'none'} in B)"
        if a.quantisation != b.quantisation
        else ""
    )
    if framework and widths:
        return f"{framework} and {widths}, which `rashomon parity --model` separates"
    if a.identity.get("weights digest") != b.identity.get("weights digest") and not widths:
        same_model = unquantised_name(Path(a.spec.model).name) == unquantised_name(Path(b.spec.model).name)
        weights = "another conversion of the weights" if same_model else "other weights"
        return f"{framework} and {weights}" if framework else weights
    return widths or framework or "the same weights in the same engine give other numbers"


def _frameworks(a: RunOutputs, b: RunOutputs) -> tuple[str, str]:
    """Return the engines with their devices; for one engine on one device, the libraries whose versions differ."""
    engines = [f"{run.identity.get('engine')} on {run.identity.get('device')}" for run in (a, b)]
    if engines[0] != engines[1]:
        return engines[0], engines[1]
    keys = [key for key in a.identity if key.startswith(_VERSION) and a.identity[key] != b.identity.get(key)]
    versions = [" ".join(f"{key.removeprefix(_VERSION)} {run.identity.get(key)}" for key in keys) for run in (a, b)]
    return versions[0], versions[1]
