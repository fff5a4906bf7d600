"""The runs of a batch, as its process reports them to others: by a file in the folder of each run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, remove_file, replace_file

BATCH_FILE = "batch"
_MOST_BYTES = 1 << 20


def report_batch(folders: Sequence[Path]) -> None:
    """Report that this process works on the runs in ``folders``, in this order. A failure to do so is ignored."""
    report = json.dumps({"pid": os.getpid(), "runs": [folder.name for folder in folders]}).encode()
    for folder in folders:
        with suppress(OSError, UnsafeFileError, StoreError):
            if len(folders) > 1:
                replace_file(folder, BATCH_FILE, report)
            else:
                remove_file(folder, BATCH_FILE)


def read_batch(folder: Path) -> tuple[str, ...]:
    """Return the names of the runs of the batch that the run in ``folder`` is part of, in their order.

    It is empty if the run was started alone, or if the process of its batch is gone.
    """
    try:
        report = json.loads(read_bytes(folder, BATCH_FILE, limit=_MOST_BYTES))
        pid, names = int(report["pid"]), [str(name) for name in report["runs"]]
        if pid > 0:
            os.kill(pid, 0)
    except (OSError, UnsafeFileError, StoreError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return ()
    return tuple(names) if pid > 0 and folder.name in names else ()
