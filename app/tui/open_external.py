"""What is outside the interface: who sits at it, and the system's viewer."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.errors import RashomonError


class NoViewerError(RashomonError):
    """This machine has nothing that opens files."""

    exit_code = 1


def person() -> str:
    """A name for whoever labels here, made of the user's."""
    try:
        name = re.sub(r"[^A-Za-z0-9._-]+", "", getpass.getuser()).lstrip("._-")[:40]
    except (OSError, KeyError):
        name = ""
    return name or "me"


def open_outside(path: Path) -> None:
    """Open a file with the system's viewer, which outlives us. Raises NoViewerError."""
    program = "open" if sys.platform == "darwin" else "xdg-open"
    if shutil.which(program) is None:
        raise NoViewerError(f"there is no {program} here; the file is {path}.")
    # An absolute path is never taken for an option.
    subprocess.Popen(
        [program, str(path.resolve())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
