"""Facts of runs as they are passed on: without the folders of this machine, which name its user and mean nothing elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlx_backends.shared_names import without_folders


def portable_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's spec without the path of its build, and with the names of models and judges instead of their folders."""
    return {
        **spec,
        "data": None,
        "model": without_folders(str(spec["model"])),
        "judge": [without_folders(str(judge)) for judge in spec["judge"]],
    }


def portable_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's identity with its model's name instead of the model's folder."""
    model = identity.get("model")
    return dict(identity) if model is None else {**identity, "model": without_folders(str(model))}


def portable_text(text: str, spec: Mapping[str, Any]) -> str:
    """Return a message about a run with each folder that the run's spec names replaced by its own name."""
    for name in sorted((str(spec["model"]), *map(str, spec["judge"])), key=len, reverse=True):
        text = text.replace(name, without_folders(name))
    return text
