"""Unknown settings of imported answers: how they were decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from benchmarks.vocabulary import Decoding
from mlx_backends.imported_engine import IMPORTED

UNKNOWN = "unknown"

DECODING_KEYS = tuple(field.name.replace("_", " ") for field in fields(Decoding))
"""The keys of a run's identity that are decoding settings."""


def is_imported(spec: Mapping[str, Any]) -> bool:
    """Return whether a run's answers were imported."""
    return str(spec["model"]).startswith(IMPORTED)


def known_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's spec; for imported answers, with None for the decoding settings and the seed.

    The stored spec of an import holds default settings, which played no part.
    """
    if not is_imported(spec):
        return dict(spec)
    return {**spec, "decoding": dict.fromkeys(spec["decoding"]), "seed": None}


def known_identity(identity: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's identity; for imported answers, with None for the decoding settings."""
    unknown = DECODING_KEYS if is_imported(spec) else ()
    return {key: None if key in unknown else value for key, value in identity.items()}
