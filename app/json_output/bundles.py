"""JSON of bundles: a new one, and the runs of one that was opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBundle:
    """A new bundle. ``media`` says which media it has: all, thumbnails or none."""

    file: str
    bytes: int
    run_count: int
    media: str
    media_files: int
    notes: tuple[str, ...]
