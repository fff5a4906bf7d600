"""Rashomon as a library: workspaces, runs, their records and tables.

Every package of Rashomon is also importable below this one: ``rashomon.benchmarks.vocabulary`` is the module
``benchmarks.vocabulary``, the same object.
"""

from __future__ import annotations

from rashomon import _alias
from rashomon._names import CollisionError

_alias.install()

__all__ = ["CollisionError"]
