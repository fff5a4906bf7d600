"""Facts of runs as they are passed on: without the folders of this machine, which name its user and mean nothing elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlx_backends.portable_model_names import without_folders


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


def portable_path(path: Path, workspace: Path) -> str:
    """Return a path below the workspace's folder as it is there, and any other as its name alone."""
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else path.name


def portable_text(text: str, spec: Mapping[str, Any]) -> str:
    """Return a message about a run with each folder that the run's spec names replaced by its own name."""
    for name in sorted((str(spec["model"]), *map(str, spec["judge"])), key=len, reverse=True):
        text = text.replace(name, without_folders(name))
    return text


def portable_message(text: str, workspace: Path, spec: Mapping[str, Any] | None = None) -> str:
    """Return a message with its paths relative to the workspace or the working folder, or after ``~`` below the home folder.

    Of a message about a run, the folders that its ``spec`` names are replaced by their own names first.
    """
    if spec:
        text = portable_text(text, spec)
    text = text.replace(f"--workspace {shlex.quote(str(workspace))}", "--workspace WORKSPACE")  # of a command
    text = text.replace(f"{workspace}/", "").replace(str(workspace), "the workspace")
    with suppress(OSError):  # the working folder is gone
        text = text.replace(f"{Path.cwd()}/", "")
    home = str(Path.home())
    return text if home == "/" else text.replace(home, "~")
