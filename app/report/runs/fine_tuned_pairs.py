"""Runs of a model that was fine-tuned from that of another run, by the digests in their identities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ADAPTER, BASE, WEIGHTS = "adapter digest", "base weights digest", "weights digest"
"""The keys of a run's identity that tell what was fine-tuned from what."""


def base_places(runs: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return for each run the place of the run of its base; None where it is not fine-tuned, or its base is not among them.

    ``runs`` are identities. A run is fine-tuned if it has an adapter, or is of a model into which one was fused. The base was
    asked with the same prompt set.
    """
    return [_base_place(runs, number) for number in range(len(runs))]


def _base_place(runs: Sequence[Mapping[str, Any]], number: int) -> int | None:
    tuned = runs[number]
    if not tuned.get(ADAPTER):
        return None
    weights = tuned.get(BASE) or tuned.get(WEIGHTS)
    return next(
        (
            place
            for place, run in enumerate(runs)
            if place != number
            and run.get(WEIGHTS) == weights
            and run.get("prompt set") == tuned.get("prompt set")
            and (not run.get(ADAPTER) or run.get(BASE))
        ),
        None,
    )
