"""JSON of people's work: the state of a review, the reviewed build, and the human baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.json_output.tables_json import TableJson


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStatus:
    """The state of a review. ``outcomes`` are the decisions by the ids of rows."""

    review: str
    build: str
    digest: str
    rows: int
    outcomes: dict[str, str]
    tables: tuple[TableJson, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedBuild:
    """The build that a review became. ``review`` is the entry of its manifest."""

    folder: str
    digest: str
    instances: int
    review: dict[str, Any]


ReviewResult = ReviewStatus | ReviewedBuild
"""Result of ``rashomon review``; with ``--out`` the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanBaseline:
    """The tables of the people who answered a benchmark; none if nobody did."""

    tables: tuple[TableJson, ...]
