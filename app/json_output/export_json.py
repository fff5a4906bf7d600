"""JSON of exports: ``results.json``, and the description of a run that other formats carry."""

from __future__ import annotations

from dataclasses import dataclass

from app.json_output.facts_json import Fact
from app.json_output.tables_json import TableJson
from app.store.run_facts import ExcludedInstances


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesJson:
    """The number of a run's answers of each outcome."""

    labelled: int
    unparsed: int
    undecided: int
    judge_failed: int
    error: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJson:
    """A run of an export, with what decided its answers. A canonical export has neither ``created``, ``engines`` nor ``reused``.

    ``versions`` are those of Rashomon, of its tables, and of the libraries of the engines.
    """

    name: str
    label: str
    """Its name in the tables."""
    judge: str
    spec: tuple[Fact, ...]
    identity: tuple[Fact, ...]
    outcomes: OutcomesJson
    excluded: ExcludedInstances
    versions: tuple[Fact, ...]
    created: float | None
    """Seconds since 1970."""
    engines: tuple[tuple[Fact, ...], ...]
    reused: str
    """The numbers of answers that were reused from other runs, in words; empty if none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """The runs of an export with all tables."""

    runs: tuple[RunJson, ...]
    tables: tuple[TableJson, ...]
