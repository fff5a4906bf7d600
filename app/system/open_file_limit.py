"""The limit of open files, raised as far as the system allows."""

from __future__ import annotations

import resource

from benchmarks.errors import SpecError

NEEDED = 128
"""Open files that suffice for every command: a worker has 20, a remote engine one more for each request."""
_TARGET = 4096


def raise_open_files_limit() -> None:
    """Raise the limit of open files of this process and its children; the default on macOS is 256.

    Raises SpecError if fewer than :data:`NEEDED` are allowed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _TARGET if hard == resource.RLIM_INFINITY else min(_TARGET, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        except (OSError, ValueError):  # macOS allows no more than kern.maxfilesperproc, whatever the hard limit says
            target = soft
        soft = target
    if soft != resource.RLIM_INFINITY and soft < NEEDED:
        raise SpecError(
            f"this shell allows {soft} open files, but Rashomon needs {NEEDED}; use a shell with a higher hard limit "
            "(`ulimit -Hn` shows it)."
        )
