"""Stored checks that a run's answers rest on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any


def stored_check(result: Mapping[str, Any], unit: str) -> Iterator[str]:
    """Yield a line on the stored check that a run's result is of, if any; the run confirmed it on so many of ``unit``."""
    if not result.get("key"):
        return
    line = f"stored check {result['key'][:12]} of {time.strftime('%Y-%m-%d', time.localtime(result.get('checked_at')))}"
    confirmed = result.get("confirmed")
    plural = "" if confirmed == 1 else "s"
    yield f"{line}, confirmed by this run on {confirmed} {unit}{plural}" if confirmed else line
