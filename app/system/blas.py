"""Number of threads that numpy computes with."""

from __future__ import annotations

import os

_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def use_one_thread() -> None:
    """Let numpy compute in one thread, unless the user asks for more; to be called before numpy is imported.

    The matrices of tables are so small that more threads only wait for each other.
    """
    for variable in _VARIABLES:
        os.environ.setdefault(variable, "1")
