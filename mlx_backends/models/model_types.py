"""Types of models that mlx-vlm has, read from its files without importing it, and those that are refused."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

REFUSED: Mapping[str, str] = {
    "granite_vision": "mlx-vlm shows it only the first image of a prompt and leaves out the text between images",
    "molmo": "mlx-vlm puts its image before the whole prompt, and makes several prompts of several images",
    "molmo2": "mlx-vlm lets an image's tokens see only those before them, and the model was trained to see all of them",
    "moondream2": "mlx-vlm takes its tokenizer from moondream/starmie-v1, another repository, and fetches it while loading",
    "moondream3": "mlx-vlm puts its one image before the whole prompt, in the place of tokens that also begin a text",
}
"""Types that mlx-vlm has and that are not run, each with the reason."""


def type_problem(config: Mapping[str, Any]) -> str | None:
    """Return why a vision-language model with this ``config.json`` cannot be run through mlx-vlm, by its type alone.

    None where nothing speaks against it, or where mlx-vlm is not installed.
    """
    declared = config.get("model_type")
    if (known := _known()) is None:
        return None
    types, aliases = known
    kind = aliases.get(declared.lower(), declared.lower()) if isinstance(declared, str) else ""
    if kind in REFUSED:
        return f"is of type {declared!r}, which is refused: {REFUSED[kind]}. Choose another model."
    if kind in types:
        return None
    near_types = difflib.get_close_matches(kind, sorted(types), n=1, cutoff=0.5)
    nearest = f"the nearest type that it knows is {near_types[0]!r}; " if near_types else ""
    return (
        f"is of type {declared!r}, which this version of mlx-vlm does not know; "
        f"{nearest}update mlx-vlm or choose another model."
    )


@cache
def _known() -> tuple[frozenset[str], Mapping[str, str]] | None:
    """Return the types that mlx-vlm has, and its other names for some."""
    package = find_spec("mlx_vlm")
    if package is None or package.origin is None:
        return None
    root = Path(package.origin).parent
    types = frozenset(file.parent.name for file in (root / "models").glob("*/__init__.py"))
    aliases: dict[str, str] = {}
    for statement in ast.parse((root / "utils.py").read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "MODEL_REMAPPING":
            aliases = ast.literal_eval(statement.value)
    return types, {name: kind for name, kind in aliases.items() if re.fullmatch(r"\w+", kind)}
