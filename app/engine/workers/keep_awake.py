"""Prevention of idle sleep, which would otherwise interrupt a run on an unattended Mac."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PROGRAM = "caffeinate"


@contextmanager
def keep_awake() -> Iterator[None]:
    """Keep a Mac from idle sleep within the block; do nothing elsewhere, or without ``caffeinate``.

    The display may still sleep. ``caffeinate`` ends by itself when this process ends or is killed.
    """
    keeper: subprocess.Popen[bytes] | None = None
    program = shutil.which(PROGRAM) if sys.platform == "darwin" else None
    if program is not None:
        with suppress(OSError):  # the run must not fail because of this
            # In its own session, so that Ctrl-C does not end it before the run.
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
