"""Differences between the specs of runs, beyond the one that is being compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.compare.runs.run_view import RunView
from app.report.runs.imported_settings import DECODING_KEYS, is_imported
from app.report.tables.run_labels import model_label
from mlx_backends.models.unquantised_names import unquantised_name

_MODEL = (
    "model",
    "engine",
    "weights digest",
    "adapter digest",
    "base weights digest",
    "model revision",
    "quantisation",
)
_FACETS: Mapping[str, tuple[str, ...]] = {
    "model": _MODEL,
    "prompt set": ("prompt set",),
    "protocol": ("protocol",),
    "decoding": ("max tokens", "temperature", "top p", "max pixels"),
    "seed": ("seed",),
    "kv bits": ("kv bits",),
    "engine's version": ("device",),
    "data": ("data digest",),
    "choice of instances": ("conditions", "strata", "limit", "part"),
}
_VERSION = "version of "
_NAMED = 3


def unquantised_model(run: RunView) -> str:
    """Return the name of a run's model without its quantisation: the same for "X-4bit" and "X-bf16"."""
    return unquantised_name(model_label(str(run.spec["model"])))


def compared_facet(runs: Sequence[RunView]) -> str | None:
    """Return the first facet that the runs differ in, taken for what is compared; None where they differ in nothing."""
    return next((facet for facet in _FACETS if any(_differing(facet, runs[0], other) for other in runs[1:])), None)


def difference_warnings(runs: Sequence[RunView], *, quantisation: bool = False) -> list[str]:
    """Return a sentence on each difference between the runs besides the compared one; ``runs[0]`` is the baseline.

    With ``quantisation``, only that is being compared.
    """
    messages = []
    compared = compared_facet(runs)
    for facet in _FACETS:
        if facet == compared:
            continue
        for key in _keys(facet, runs):
            comparable = [run for run in runs if _comparable(run, key, runs[0])]
            if len({_value(run, key) for run in comparable}) > 1:
                values = {run.label: _in_words(run, key) for run in comparable}
                messages.append(f"The runs differ in more than the {compared}: {key} ({_by_value(values)}).")
    if compared == "model":
        messages += _model_warnings(runs, quantisation)
    messages += _prompt_warnings(runs) + reuse_warnings(runs)
    return messages + _machine_warnings(runs)


def _model_warnings(runs: Sequence[RunView], quantisation: bool) -> list[str]:
    models = {run.label: unquantised_model(run) for run in runs if run.quantisation is not None}
    widths = {run.label: run.quantisation for run in runs if run.quantisation is not None}
    if len(set(models.values())) > 1 and quantisation:
        return [f"These are not quantisations of one model, by their names: {_by_value(models)}."]
    if len(set(models.values())) > 1 and len(set(widths.values())) > 1:
        return [f"Both the models and their quantisations differ: {_by_value(widths)}."]
    return []


def _prompt_warnings(runs: Sequence[RunView]) -> list[str]:
    """Return a warning for each run whose shared instances have other prompts although the prompt set has the same name."""
    first, messages = runs[0], []
    for run in runs[1:]:
        if run.spec.get("prompt_set") == first.spec.get("prompt_set"):
            places = first.coded.ids.places(run.coded.ids)
            shared = places >= 0
            n_differing = int((run.coded.prompt[shared] != first.coded.prompt[places[shared]]).sum())
            if n_differing:
                messages.append(
                    f"{n_differing} of the {int(shared.sum())} instances that {first.label} and {run.label} share have different "
                    "prompts or pictures."
                )
    return messages


def reuse_warnings(runs: Sequence[RunView]) -> list[str]:
    """Return a warning for each run that has answers in common with the first, which one of them, or a third run, gave."""
    first, messages = runs[0], []
    for run in runs[1:]:
        if first.reused is None or run.reused is None:
            continue
        if first.reused.run == run.reused.run:
            messages.append(f"{first.label} and {run.label} are copies of one run: that they agree says nothing.")
            continue
        ours, theirs = first.reused.lenders, run.reused.lenders
        shared = theirs.get(first.reused.run, 0) + ours.get(run.reused.run, 0)
        shared += sum(min(ours[lender], theirs[lender]) for lender in ours.keys() & theirs.keys())
        if shared:
            messages.append(
                f"Up to {shared:,} answers of {first.label} and {run.label} are the same ones, reused: that they agree says "
                "nothing about the models."
            )
    return messages


def _machine_warnings(runs: Sequence[RunView]) -> list[str]:
    chips = {run.label: chip for run in runs if (chip := chip_of(run)) is not None}
    if len(set(chips.values())) < 2:
        return []
    return [f"Speeds were measured on different machines: {_by_value(chips)}."]


def chip_of(run: RunView) -> str | None:
    """Return the chip that answered last; None where it is unknown or the model was remote."""
    local = [engine for engine in run.engines if engine.get("needs_device")]
    return next((str(engine["machine"]["chip"]) for engine in reversed(local) if engine.get("machine")), None)


def _keys(facet: str, runs: Sequence[RunView]) -> list[str]:
    if facet != "engine's version":
        return list(_FACETS[facet])
    versions = dict.fromkeys(key for run in runs for key in run.identity if key.startswith(_VERSION))
    return [*_FACETS[facet], *versions]


def _differing(facet: str, first: RunView, second: RunView) -> list[str]:
    return [
        key
        for key in _keys(facet, (first, second))
        if _comparable(second, key, first)
        and _comparable(first, key, second)
        and _value(first, key) != _value(second, key)
    ]


def _comparable(run: RunView, key: str, other: RunView) -> bool:
    """Return whether a key applies to both runs: a policy has neither device nor versions, and imported answers no seed.

    A run without the key for quantised caches has one in the activations' type, if it has weights.
    """
    if key == "kv bits":
        return all(view.identity.get("weights digest") for view in (run, other))
    if key == "device" or key.startswith(_VERSION):
        return all(view.identity.get("weights digest") and key in view.identity for view in (run, other))
    return key in run.identity and not (key in DECODING_KEYS and is_imported(run.spec))


def _value(run: RunView, key: str) -> str:
    value: Any = run.identity.get(key)
    if key == "model":
        return model_label(str(value))
    if key.endswith("digest") and value:
        return str(value)[:8]
    if isinstance(value, list | dict):
        return ", ".join(map(str, value)) or "all"
    return "none" if value is None else str(value)


def _in_words(run: RunView, key: str) -> str:
    return (run.protocol if key == "protocol" else "") or _value(run, key)


def _by_value(values: Mapping[str, Any]) -> str:
    labels_of: dict[str, list[str]] = {}
    for label, value in values.items():
        labels_of.setdefault(str(value), []).append(label)
    groups = (
        f"{value}: {', '.join(labels[:_NAMED])}{f' and {len(labels) - _NAMED} more' if len(labels) > _NAMED else ''}"
        for value, labels in labels_of.items()
    )
    return "; ".join(groups)
