"""Limit of open files: raised as far as the system lets us, refused where that is too low."""

from __future__ import annotations

import resource

from benchmarks.errors import SpecError

NEEDED = 128
"""Open files that every command can do with: a worker has 20, a remote engine one more for each of its requests."""
_WANTED = 4096


def raise_open_files_limit() -> None:
    """Raise this process's limit of open files, which the processes it starts inherit; macOS begins with 256.

    Raises SpecError where fewer than :data:`NEEDED` are allowed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS allows no more than kern.maxfilesperproc, whatever the hard limit says
            wanted = soft
        soft = wanted
    if soft != resource.RLIM_INFINITY and soft < NEEDED:
        raise SpecError(
            f"this shell allows {soft} open files and Rashomon needs {NEEDED}; start it in a shell with a higher hard limit "
            "(`ulimit -Hn` shows it)."
        )
