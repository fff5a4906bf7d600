"""A disk without room, for anybody: files of this process and of those it starts may not grow over some size."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_room_above(size: int) -> Iterator[None]:
    """No file may be written beyond ``size`` bytes. Python ignores the signal, so that writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
