"""JSON of bundles: a new one, and the runs of one that was opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.json_output.runs_json import ListedRun, listed_run
from app.store.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBundle:
    """A new bundle. ``media`` says which media it has: all, thumbnails or none."""

    file: str
    bytes: int
    run_count: int
    media: str
    media_files: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedBundle:
    """An opened bundle: the version of Rashomon that wrote it, the media that it has, its notes, and its runs."""

    file: str
    written_by: str
    media: str
    notes: tuple[str, ...]
    runs: tuple[ListedRun, ...]


def opened_bundle(file: str, manifest: Mapping[str, Any], bundle: Workspace) -> OpenedBundle:
    """Return the bundle in ``file`` with its ``manifest``, whose values may be of any type."""
    notes = manifest.get("notes")
    return OpenedBundle(
        file=file,
        written_by=str(manifest.get("rashomon")),
        media=str(manifest.get("media")),
        notes=tuple(map(str, notes)) if isinstance(notes, list) else (),
        runs=tuple(listed_run(run, bundle) for run in bundle.summaries()),
    )
