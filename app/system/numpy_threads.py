"""Number of threads that numpy computes with."""

from __future__ import annotations

import os

_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

_set: list[str] = []


def use_one_thread() -> None:
    """Let numpy compute in one thread, unless the user asks for more; to be called before numpy is imported.

    The matrices of tables are so small that more threads only wait for each other.
    """
    for variable in _VARIABLES:
        if variable not in os.environ:
            os.environ[variable] = "1"
            _set.append(variable)


def user_environment() -> dict[str, str]:
    """Return the environment without what :func:`use_one_thread` has set, for processes in which a model computes."""
    return {name: value for name, value in os.environ.items() if name not in _set}
