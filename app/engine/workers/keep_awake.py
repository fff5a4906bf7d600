"""The machine kept awake while a run goes on: a Mac that nobody touches would sleep in the middle of the night's run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PROGRAM = "caffeinate"


@contextmanager
def awake() -> Iterator[None]:
    """Keep a Mac from idle sleep while the block runs; elsewhere, and where there is no ``caffeinate``, nothing.

    The display may still go dark. ``caffeinate`` ends by itself with this process, also if that is killed.
    """
    keeper: subprocess.Popen[bytes] | None = None
    program = shutil.which(PROGRAM) if sys.platform == "darwin" else None
    if program is not None:
        with suppress(OSError):  # a run is worth more than a Mac that stays awake
            # In a session of its own, so that Ctrl-C does not end it while the run still goes on.
            keeper = subprocess.Popen(
                [program, "-i", "-w", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
    try:
        yield
    finally:
        if keeper is not None:
            keeper.kill()
            keeper.wait()
