"""The README's pictures: ``python -m tests.support.pictures WORKSPACE SCREEN``.

WORKSPACE is the one that ``rashomon demo`` made; SCREEN a file with a terminal's screen while a batch runs, colours
included, as ``tmux capture-pane -p -e`` writes it.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from app.commands.demo import POLICIES
from app.report.render import print_table
from app.report.tables import tables_of
from app.store.workspace import Workspace

PICTURES = Path(__file__).resolve().parents[2] / "assets" / "pictures"


def main(workspace: Workspace, screen: Path) -> None:
    """Write both pictures."""
    runs = [workspace.run_folder(f"demo-{name}") for name in (*POLICIES, "tiny-vlm")]
    console = Console(record=True, width=142, file=io.StringIO())
    print_table(tables_of(runs, only="main")[0], console)
    console.save_svg(str(PICTURES / "demo.svg"), title="rashomon demo")
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(Text.from_ansi(screen.read_text("utf-8").rstrip()))
    console.save_svg(str(PICTURES / "progress.svg"), title="rashomon --batch")


if __name__ == "__main__":
    main(Workspace(Path(sys.argv[1]).absolute()), Path(sys.argv[2]))
