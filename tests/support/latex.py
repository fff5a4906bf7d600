"""LaTeX documents compiled by pdflatex, where it is installed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

EVERY = "".join(
    chr(code) for code in (*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2010, 0x2070), 0x4E2D, 0x1F600)
)
"""Characters of every kind: all of Latin and Greek, punctuation, a Chinese one and an emoji."""


def compile_latex(path: Path) -> tuple[int, float]:
    """Compile a document without errors; return the number of its pages, and by how many points its widest line is too wide."""
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", path.name]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[log.find("\n!") :][:1000]
    pages = re.search(r"Output written on .*?[(](\d+) page", log, re.DOTALL)
    assert pages is not None
    widths = re.findall(r"Overfull .hbox .([0-9.]+)pt too wide", log)
    return int(pages[1]), max(map(float, widths), default=0.0)
