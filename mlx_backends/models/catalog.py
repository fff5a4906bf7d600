"""Catalog of models worth fetching, converted for MLX: those of the papers and others in wide use, with their memory needs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).resolve().parents[2] / "assets" / "models.json"
_BITS = {"4-bit": 4.5, "8-bit": 8.5, "bf16": 16.0}
"""Bits per parameter: quantised in groups of 64, each with a scale and a bias of 16 bits."""


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """A model on the Hub in one quantisation. ``benchmarks`` are those whose paper has a row for it.

    ``unverified`` tells that its id or its size was not compared with the Hub.

    ``weights_bytes`` is computed: the language model's parameters at the quantisation's bits, all others (the encoders) in
    bf16. The Hub reports the exact size when the model is fetched.
    """

    id: str
    base: str
    quantisation: str
    benchmarks: tuple[str, ...]
    weights_bytes: int
    unverified: bool = False


@cache
def catalog_models() -> tuple[CatalogModel, ...]:
    """Return the catalog, in the order of ``assets/models.json``."""
    entries: list[dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))
    return tuple(
        CatalogModel(
            name,
            entry["base"],
            quantisation,
            tuple(entry["benchmarks"]),
            round((entry["language"] * _BITS[quantisation] + entry["rest"] * 16) / 8),
            entry.get("unverified", False),
        )
        for entry in entries
        for quantisation, name in entry["models"].items()
    )
