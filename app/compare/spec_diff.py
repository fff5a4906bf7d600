"""In what runs differ, and whether that is more than what is being compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.compare.run_view import RunView
from app.report.imported import DECODING_KEYS, is_imported
from app.report.tables import model_label

_MODEL = ("model", "engine", "weights digest", "model revision", "quantisation")
_FACETS: Mapping[str, tuple[str, ...]] = {
    "model": _MODEL,
    "prompt set": ("prompt set",),
    "protocol": ("protocol",),
    "decoding": ("max tokens", "temperature", "top p", "max pixels"),
    "seed": ("seed",),
    "engine's version": ("device",),
    "data": ("data digest",),
    "choice of instances": ("conditions", "strata", "limit"),
}
_VERSION = "version of "
_WIDTH = re.compile(r"(?i)[-_. ]+(?:(?:mx|nv)?fp\d+|bf16|f\d\d|float\d\d|int\d|q\d\w*|\d+[-_ ]?bits?|dwq)(?=$|[-_. ])")
_SHOWN = 3


def stem(side: RunView) -> str:
    """What a run's model is called without its quantisation: the same for "X-4bit" and "X-bf16"."""
    return stem_of(model_label(str(side.spec["model"])))


def stem_of(name: str) -> str:
    """A model's name without its quantisation."""
    return _WIDTH.sub("", name).strip("-_. ") or name


def compared_in(sides: Sequence[RunView]) -> str | None:
    """The first thing that the runs differ in, which is taken for what is compared; None where they differ in nothing."""
    return next((facet for facet in _FACETS if any(_differing(facet, sides[0], other) for other in sides[1:])), None)


def warnings(sides: Sequence[RunView], *, quantisation: bool = False) -> list[str]:
    """What else the runs differ in, a sentence each: whoever reads the comparison must know. ``sides[0]`` is the baseline.

    With ``quantisation``, that alone is what is being compared.
    """
    told = []
    what = compared_in(sides)
    for facet in _FACETS:
        if facet == what:
            continue
        for key in _keys(facet, sides):
            values = {side.label: _value(side, key) for side in sides if _has(side, key, sides[0])}
            if len(set(values.values())) > 1:
                told.append(f"The runs differ in more than the {what}: {key} ({_each(values)}).")
    if what == "model":
        told += _models(sides, quantisation)
    told += _prompts(sides)
    return told + _machines(sides)


def _models(sides: Sequence[RunView], quantisation: bool) -> list[str]:
    stems = {side.label: stem(side) for side in sides if side.quantisation is not None}
    widths = {side.label: side.quantisation for side in sides if side.quantisation is not None}
    if len(set(stems.values())) > 1 and quantisation:
        return [f"These are not quantisations of one model, by their names: {_each(stems)}."]
    if len(set(stems.values())) > 1 and len(set(widths.values())) > 1:
        return [f"Both the models and their quantisations differ: {_each(widths)}."]
    return []


def _prompts(sides: Sequence[RunView]) -> list[str]:
    """Shared instances that were asked in other words although the prompt set has one name."""
    first, told = sides[0], []
    for side in sides[1:]:
        if side.spec.get("prompt_set") == first.spec.get("prompt_set"):
            both = [each for each in side.said if each in first.said]
            other = sum(side.said[each].prompt != first.said[each].prompt for each in both)
            if other:
                told.append(
                    f"{other} of the {len(both)} instances that {first.label} and {side.label} share show another prompt "
                    "or picture in each."
                )
    return told


def _machines(sides: Sequence[RunView]) -> list[str]:
    chips = {side.label: chip for side in sides if (chip := chip_of(side)) is not None}
    if len(set(chips.values())) < 2:
        return []
    return [f"Speeds are of different machines: {_each(chips)}."]


def chip_of(side: RunView) -> str | None:
    """The chip that answered last, where that is known and a model of this machine did."""
    local = [each for each in side.engines if each.get("needs_device")]
    return next((str(each["machine"]["chip"]) for each in reversed(local) if each.get("machine")), None)


def _keys(facet: str, sides: Sequence[RunView]) -> list[str]:
    if facet != "engine's version":
        return list(_FACETS[facet])
    versions = dict.fromkeys(key for side in sides for key in side.identity if key.startswith(_VERSION))
    return [*_FACETS[facet], *versions]


def _differing(facet: str, first: RunView, second: RunView) -> list[str]:
    return [
        key
        for key in _keys(facet, (first, second))
        if _has(second, key, first) and _has(first, key, second) and _value(first, key) != _value(second, key)
    ]


def _has(side: RunView, key: str, other: RunView) -> bool:
    """Whether a key says something of both: a baseline by rule has neither device nor versions, and imported answers no seed."""
    if key == "device" or key.startswith(_VERSION):
        return all(each.identity.get("weights digest") and key in each.identity for each in (side, other))
    return key in side.identity and not (key in DECODING_KEYS and is_imported(side.spec))


def _value(side: RunView, key: str) -> str:
    value: Any = side.identity.get(key)
    if key == "model":
        return model_label(str(value))
    if key.endswith("digest") and value:
        return str(value)[:8]
    if isinstance(value, list | dict):
        return ", ".join(map(str, value)) or "all"
    return "none" if value is None else str(value)


def _each(values: Mapping[str, Any]) -> str:
    by_value: dict[str, list[str]] = {}
    for label, value in values.items():
        by_value.setdefault(str(value), []).append(label)
    shown = (
        f"{value}: {', '.join(labels[:_SHOWN])}{f' and {len(labels) - _SHOWN} more' if len(labels) > _SHOWN else ''}"
        for value, labels in by_value.items()
    )
    return "; ".join(shown)
