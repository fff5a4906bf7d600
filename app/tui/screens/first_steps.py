"""First steps that an empty workspace offers, each with its key."""

from __future__ import annotations

from collections.abc import Callable

from app.tui.widgets.table_columns import Cell

_FIRST_STEPS = (
    (
        "everywhere.go.rows",
        "Your own documents",
        "charts or other pictures in a folder, and a spreadsheet of questions",
    ),
    ("everywhere.go.fetch", "A paper's benchmark", "fetch its data and a model, build it, run it (fn and f6 on a Mac)"),
    ("runs.demo", "The demo", "a tiny model reads drawn charts; a minute or two, no download"),
)
"""The ways in that an empty workspace offers: the ids of commands, each with its name and what it takes."""
_NEXT_STEPS = (("everywhere.go.new", "to run a build that you have"), ("runs.workspace", "to open another folder"))
"""Further ways in that an empty workspace offers."""


def first_steps(key: Callable[[str], str], *, has_demos: bool) -> list[Cell]:
    """Return the ways to begin as lines; ``key`` returns the key of a command, and demos that were run are offered."""
    width = max(len(key(name)) for name, *_ in _FIRST_STEPS)
    lines: list[Cell] = ["", [("No runs yet. Three ways to begin; press a key:", "$foreground")]]
    for name, title, text in _FIRST_STEPS:
        text = "opens the demo's runs, in a workspace of their own" if name == "runs.demo" and has_demos else text
        lines += ["", [(f"  {key(name):<{width}}  ", "bold $key"), (title, "bold $foreground")]]
        lines.append([(f"  {'':<{width}}  {text}", "$foreground")])
    lines.append("")
    for name, text in _NEXT_STEPS:
        lines.append([(f"  {key(name):<{width}}  ", "bold $key"), (text, "$foreground")])
    return lines
