"""Catalog of models worth fetching, converted for MLX: those of the papers and others in wide use, with their memory needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).resolve().parents[2] / "assets" / "models.json"
_BITS = {"4-bit": 4.5, "8-bit": 8.5, "bf16": 16.0}
"""Bits per parameter: quantised in groups of 64, each with a scale and a bias of 16 bits."""


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """A model on the Hub in one quantisation.

    ``weights_bytes`` is computed: the language model's parameters at the quantisation's bits, all others (the encoders) in
    bf16. The Hub reports the exact size when the model is fetched. Licences, months and configurations are from their
    makers' publications, or from memory.

    Attributes:
        base: The model that was converted.
        family: Its type in mlx-vlm.
        licence: As the Hub abbreviates it; None if unknown.
        released: The month, as 2026-04; None if unknown.
        checked: The day on which ids and sizes were compared with public records: lists of files, measured peaks; None if not.
        benchmarks: Those whose paper has a row for it.
        parameters: The number of all its parameters.
        config: What its ``config.json`` says of the memory of a request; None if unknown.
        caution: Why it is never recommended, a phrase; empty for most.
    """

    id: str
    base: str
    quantisation: str
    family: str
    licence: str | None
    released: str | None
    checked: str | None
    benchmarks: tuple[str, ...]
    parameters: int
    weights_bytes: int
    config: Mapping[str, Any] | None = None
    caution: str = ""


@cache
def catalog_models() -> tuple[CatalogModel, ...]:
    """Return the catalog, in the order of ``assets/models.json``."""
    entries: list[dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))
    return tuple(
        CatalogModel(
            name,
            entry["base"],
            quantisation,
            entry["family"],
            entry.get("licence"),
            entry.get("released"),
            entry.get("checked"),
            tuple(entry["benchmarks"]),
            entry["language"] + entry["rest"],
            round((entry["language"] * _BITS[quantisation] + entry["rest"] * 16) / 8),
            entry.get("config"),
            entry.get("caution", ""),
        )
        for entry in entries
        for quantisation, name in entry["models"].items()
    )


def catalog_entry(name: str) -> CatalogModel | None:
    """Return the model called ``name``, a Hub id; None if the catalog has none."""
    return next((model for model in catalog_models() if model.id == name), None)
