"""JSON of builds: what was built, the size of a design, and the check of a table's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A number of rows that were left out for a reason; with a ``condition``, of that one alone."""

    condition: str | None
    reason: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWarning:
    """A row that was used, and what is doubtful in it."""

    row: str
    warning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """A cell with its value before and after; null where it was or is empty. An image is its sha256 in hex."""

    column: str
    before: str | list[str] | None
    after: str | list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A row that changed, by its place in the table."""

    row: str
    cells: tuple[CellChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChanges:
    """The difference between the newest version of a set and the one before, in rows by their places."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    left_out: tuple[str, ...]
    changed: tuple[RowChange, ...]
    instances: int
    same_instances: int
    """The instances of the newest version that the one before has, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltVersion:
    """The version of a question set that a table became. ``changes`` is null if there are none, or it is the first."""

    name: str
    version: int
    moved_from: str | None
    """The name of the table of the version before, if that was another file."""
    changes: VersionChanges | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """The replies of a model to a construction, in all commands for one folder, and what they cost; see ``cached``."""

    model: str
    roles: tuple[str, ...]
    replies: int
    cached: int
    """Replies among them that came from the cache, which use no tokens, time or money again."""
    failed: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float | None
    """Seconds of generation of the replies that were not cached, which may overlap; null for a model behind an API."""
    cost: float | None
    """In the currency of the prices; null for a model of this machine, and without prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltBenchmark:
    """A new build."""

    folder: str
    """Relative to the workspace; outside of it, the folder's name."""
    digest: str
    """The sha256 of its manifest, in hex."""
    manifest: dict[str, Any]
    """Its ``manifest.json``; the keys are those of the benchmark."""
    left_out: tuple[LeftOut, ...]
    warnings: tuple[RowWarning, ...]
    audit: str | None = None
    """A sentence on what rules answer that look at no source."""
    rejected: str | None = None
    """The folder of the samples that a check of the construction rejected."""
    set: BuiltVersion | None = None
    usage: tuple[ModelUsage, ...] = ()
    """The models of a construction."""
    replaced_runs: tuple[str, ...] = ()
    """The runs of the build that this one replaced: they cannot be resumed without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignSize:
    """The size of a design that was not built: calls of a model for each run. ``sentence`` says the same."""

    examples: int
    cells: int
    full_cells: int | None
    """The cells of which a fraction is used; null for a design without fractions."""
    instances: int | None
    calls: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRow:
    """The check of a row: what is built from it or what is wrong with it, how to fix that, and what is doubtful."""

    row: str
    usable: bool
    message: str
    fix: str
    warning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTable:
    """The check of a table's rows, of which ``usable`` can be used."""

    usable: int
    rows: tuple[CheckedRow, ...]
    remarks: tuple[str, ...]


BuildResult = BuiltBenchmark | CheckedTable
"""Result of ``rashomon build``; with ``--check`` the second."""

DesignResult = BuiltBenchmark | DesignSize
"""Result of ``rashomon vary`` and ``passages``; with ``--dry-run`` the second."""
