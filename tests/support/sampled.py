"""Parameters of expensive tests: some in the fast suite, all in the slow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_fast(values: Iterable[Any], count: int) -> list[Any]:
    """Return ``values`` as parameters, of which ``count`` at equal distances are in the fast suite."""
    values = list(values)
    fast = {place * len(values) // count for place in range(count)}
    return [value if n in fast else pytest.param(value, marks=pytest.mark.slow) for n, value in enumerate(values)]
