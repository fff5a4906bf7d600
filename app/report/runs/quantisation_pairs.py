"""Pairs of runs of one model with more and with fewer bits, on the same instances."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.report.runs.short_names import short_model, short_quantisation

_SAME = ("benchmark", "data digest", "prompt set", "protocol", "conditions", "strata", "limit", "seed", "max pixels")
"""The keys of a run's identity that decide which instances it has, and how they are shown."""


def quantisation_pairs(identities: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return each run with the run of most bits of its model, by label: ``(more bits, fewer bits)``.

    Models are matched by their names without owner and format, as in ``org/x-bf16`` and ``other/x-4bit``.
    """
    families: dict[tuple[str, ...], list[tuple[float, str]]] = {}
    for label, identity in identities.items():
        quantisation = identity.get("quantisation")
        if not quantisation or not identity.get("data digest"):
            continue
        model = short_model(str(identity.get("model", "")), str(quantisation))
        key = (model, *(repr(identity.get(name)) for name in _SAME))
        families.setdefault(key, []).append((_bits(str(quantisation)), label))
    return [
        (most[1], label)
        for members in families.values()
        for most in [max(members, key=lambda member: member[0])]
        for bits, label in members
        if bits < most[0]
    ]


def _bits(quantisation: str) -> float:
    """Return the number of bits that a quantisation begins with; of several, the smallest."""
    numbers = re.findall(r"\d+(?:\.\d+)?", short_quantisation(quantisation))
    return min(map(float, numbers), default=0.0)
