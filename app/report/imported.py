"""What nobody knows of imported answers: the settings they were decoded with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from benchmarks.base import Decoding
from mlx_backends.registry import IMPORTED

UNKNOWN = "unknown"

DECODING_KEYS = tuple(field.name.replace("_", " ") for field in fields(Decoding))
"""The keys of a run's identity that say how its answers were decoded."""


def is_imported(spec: Mapping[str, Any]) -> bool:
    """Return whether a run's answers were given elsewhere and imported."""
    return str(spec["model"]).startswith(IMPORTED)


def known_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's spec as far as it is known: of imported answers the decoding settings and the seed are None.

    What is stored holds the usual settings, which an import never asks for.
    """
    if not is_imported(spec):
        return dict(spec)
    return {**spec, "decoding": dict.fromkeys(spec["decoding"]), "seed": None}


def known_identity(identity: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decided a run's answers as far as it is known, in the same way."""
    unknown = DECODING_KEYS if is_imported(spec) else ()
    return {key: None if key in unknown else value for key, value in identity.items()}
