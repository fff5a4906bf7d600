"""A home with a question set of four rows, its build, and a run of it that no model answered."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.command import ROOT, Rashomon

_CHARTS = ROOT / "assets" / "demo" / "held_out" / "cmc-bench" / "charts"
_ROWS = """image,question,answer,conflict
0.png,What is the value of kale?,43,46
1.png,What is the value of kale?,68,60
2.png,What is the value of kale?,57,67
3.png,What is the value of kale?,79,73
"""


def make_home(home: Path) -> None:
    """Build the table of a home into the set ``rows``, and ask it as the run ``asked``."""
    for number in range(4):
        shutil.copyfile(_CHARTS / f"00{number}.png", home / f"{number}.png")
    (home / "rows.csv").write_text(_ROWS)
    rashomon = Rashomon(home, variables={"XDG_STATE_HOME": str(home / "state")})
    rashomon.process("build", "cmc-bench", "--from", "rows.csv")
    rashomon.process("batch", *BATCH, "--name", "asked", "--display", "none")


BATCH = ("--benchmark", "cmc-bench", "--model", "policy:always-image")
