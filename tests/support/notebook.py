"""Notebooks, run cell by cell in one process: ``python -m tests.support.notebook FILE`` writes what the cells display into FILE.

It is what a kernel does with plain cells: statements are executed, and the value of a last expression is displayed. Magics are
not supported.
"""

from __future__ import annotations

import ast
import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


def code_cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cells with code."""
    yield from (cell for cell in notebook["cells"] if cell["cell_type"] == "code")


def run_cells(sources: list[str]) -> Iterator[Any]:
    """Run cells, and yield what each displays, or None."""
    module = ModuleType("__main__")
    for number, source in enumerate(sources, 1):
        tree = ast.parse(source, f"cell {number}")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), module.__dict__)  # noqa: S102
        code = compile(ast.Expression(last.value), f"cell {number}", "eval") if isinstance(last, ast.Expr) else None
        yield eval(code, module.__dict__) if code is not None else None  # noqa: S307


def mime_bundle(value: Any) -> dict[str, str]:
    """Return what a notebook would display of a value, by MIME type."""
    bundle = {"text/plain": repr(value)}
    makers: dict[str, tuple[str, Callable[[Any], str]]] = {
        "text/html": ("_repr_html_", str),
        "image/png": ("_repr_png_", lambda png: b64encode(png).decode()),
    }
    for kind, (method, text) in makers.items():
        if (content := getattr(value, method, lambda: None)()) is not None:
            bundle[kind] = text(content)
    return bundle


def main() -> None:
    path = Path(sys.argv[1]).absolute()
    notebook = json.loads(path.read_text("utf-8"))
    cells = list(code_cells(notebook))
    values = run_cells(["".join(cell["source"]) for cell in cells])
    for number, (cell, value) in enumerate(zip(cells, values, strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = []
        if value is not None:
            data = {kind: text.splitlines(keepends=True) for kind, text in mime_bundle(value).items()}
            output = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
            cell["outputs"].append(output)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
