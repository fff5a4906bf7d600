"""Defaults of mlx-vlm's configurations, read from its files without importing it: what a ``config.json`` leaves out."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def text_defaults(model_type: Any) -> Mapping[str, Any]:
    """Return mlx-vlm's default values for the language model of a type; empty if it has no such type, or is not installed."""
    return _text_defaults(model_type) if isinstance(model_type, str) and model_type.isidentifier() else {}


@cache
def _text_defaults(model_type: str) -> Mapping[str, Any]:
    package = find_spec("mlx_vlm")
    if package is None or package.origin is None:
        return {}
    try:
        tree = ast.parse((Path(package.origin).parent / "models" / model_type / "config.py").read_text("utf-8"))
    except (OSError, SyntaxError):
        return {}
    defaults: dict[str, Any] = {}
    for part in tree.body:
        if isinstance(part, ast.ClassDef) and part.name == "TextConfig":
            for line in part.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                    with suppress(ValueError):  # computed, or made by a factory
                        defaults[line.target.id] = ast.literal_eval(line.value)
    return defaults
