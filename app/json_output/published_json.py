"""JSON of ``rashomon published`` and ``rashomon cite``."""

from __future__ import annotations

from dataclasses import dataclass

from app.json_output.tables_json import TableJson
from app.report.runs.citations import Citations


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedResult:
    """The tables of a benchmark's paper; without a ``benchmark``, one that lists the papers' tables."""

    benchmark: str | None
    tables: tuple[TableJson, ...]


CiteResult = Citations
