"""The README's pictures, from a real demo: ``python -m tests.support.pictures WORKSPACE`` after ``rashomon demo`` in it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console

from app.display import progress_table
from app.pace import Pace
from app.report.render import print_table
from app.report.tables import tables_of
from app.store.workspace import Workspace, summary

PICTURES = Path(__file__).resolve().parents[2] / "assets" / "pictures"
WIDTH = 112


def main(workspace: Workspace) -> None:
    runs = [workspace.runs_folder / name for name in workspace.run_names() if name.startswith("demo-")]
    model = workspace.run_folder("demo-tiny-vlm")
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    print_table(tables_of(runs, only="main")[0], console)
    console.save_svg(str(PICTURES / "demo.svg"), title="rashomon demo")
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    clock = iter((0.0, 20.0))
    pace = Pace(lambda: next(clock))
    run = summary(model)
    pace.sample(0)
    pace.sample(run.done)
    console.print(progress_table(run, pace))
    console.save_svg(str(PICTURES / "progress.svg"), title="rashomon --batch")


if __name__ == "__main__":
    main(Workspace(Path(sys.argv[1]).absolute()))
