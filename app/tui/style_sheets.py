"""Style sheets of the interface."""

from __future__ import annotations

from pathlib import Path, PurePath

STYLES: list[str | PurePath] = [
    Path(__file__).parent / "styles" / f"{group}.tcss"
    for group in (
        "widgets",
        "dialogs",
        "screens",
        "runs",
        "live",
        "samples",
        "label",
        "review",
        "compare",
        "export",
        "new_run",
        "own_rows",
        "settings",
        "doctor",
        "fetch",
        "vary",
        "sets",
        "trainings",
        "train",
    )
]
"""The style sheets in the order of their precedence: of two equally specific rules the later one wins."""
