"""The system's viewer for files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.errors import STOPPED, RashomonError


class NoViewerError(RashomonError):
    """This machine has no program that opens files."""

    exit_code = STOPPED


def open_in_viewer(path: Path) -> None:
    """Open a file with the system's viewer, which outlives this process.

    Raises:
        NoViewerError: If the system has no viewer.
    """
    program = "open" if sys.platform == "darwin" else "xdg-open"
    if shutil.which(program) is None:
        raise NoViewerError(f"{program} is not installed; open the file yourself: {path}.")
    # An absolute path cannot be mistaken for an option.
    subprocess.Popen(
        [program, str(path.resolve())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
