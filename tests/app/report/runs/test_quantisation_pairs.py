"""Pairs of quantisations: runs of one model on the same instances."""

from __future__ import annotations

from typing import Any

from app.report.runs.quantisation_pairs import quantisation_pairs


def identity(model: str, quantisation: str | None, **changes: Any) -> dict[str, Any]:
    return {"model": model, "quantisation": quantisation, "data digest": "d", "seed": 0, **changes}


def test_runs_are_paired_with_the_most_bits_of_their_model() -> None:
    runs = {
        "small": identity("org/x-VL-2B-4bit", "4-bit, groups of 64"),
        "full": identity("/models/x-vl-2b-bf16", "bf16"),
        "middle": identity("other/x-VL-2B-8bit", "8-bit, groups of 64"),
        "another": identity("org/y-4bit", "4-bit"),
        "elsewhere": identity("org/x-VL-2B-4bit", "4-bit", **{"data digest": "e"}),
        "policy": identity("policy:always-image", None),
        "old": {},
    }
    assert sorted(quantisation_pairs(runs)) == [("full", "middle"), ("full", "small")]
    assert quantisation_pairs({"a": runs["full"], "b": runs["full"]}) == []
