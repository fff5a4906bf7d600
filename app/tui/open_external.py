"""Programs of the desktop: the system's viewer for files, the browser, the clipboard of a Mac."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from benchmarks.errors import STOPPED, RashomonError

_COPY_SECONDS = 2.0


class NoViewerError(RashomonError):
    """This machine has no program that opens files."""

    exit_code = STOPPED


def open_in_viewer(path: Path) -> None:
    """Open a file with the system's viewer, which outlives this process.

    Raises:
        NoViewerError: If the system has no viewer.
    """
    if not _open(str(path.resolve())):  # an absolute path cannot be mistaken for an option
        raise NoViewerError(f"{_program()} is not installed; open the file yourself: {path}.")


def open_in_browser(link: str) -> bool:
    """Open a link in the browser and return True; return False if there is none beside this terminal."""
    remote = "SSH_CONNECTION" in os.environ or "SSH_TTY" in os.environ
    desktop = sys.platform == "darwin" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    return desktop and not remote and _open(link)


def copy_on_mac(text: str) -> None:
    """Copy a text with a Mac's ``pbcopy``; do nothing elsewhere, or if that fails."""
    if sys.platform == "darwin" and shutil.which("pbcopy"):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(["pbcopy"], input=text.encode("utf-8", "replace"), check=False, timeout=_COPY_SECONDS)


def _program() -> str:
    return "open" if sys.platform == "darwin" else "xdg-open"


def _open(target: str) -> bool:
    """Open a file or a link; return False if this machine has no program for that."""
    if shutil.which(_program()) is None:
        return False
    try:
        subprocess.Popen(
            [_program(), target],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # it is no program
        return False
    return True
