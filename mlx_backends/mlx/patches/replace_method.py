"""Replacement of a method of mlx-vlm, once in a process and only where it has a fault."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def replace_method(owner: Any, name: str, fault: str, patched: Callable[[Any], Any], *, unless: str = "") -> bool:
    """Replace the method ``name`` by what ``patched`` makes of it, and return whether it needed that.

    It does if its source has the ``fault``, and not the text that repairs it in other versions (``unless``).
    """
    method = inspect.unwrap(getattr(owner, name))
    source = inspect.getsource(method)
    if fault not in source or (unless and unless in source):
        return False
    if getattr(owner, name) is method:
        setattr(owner, name, patched(method))
    return True
