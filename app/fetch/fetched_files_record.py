"""Manifest of the data fetched for a benchmark, written next to the files when all are complete."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, remove_file, replace_file
from benchmarks.untrusted.safe_json import parse_json

_FILE = ".fetched.json"
_LARGEST = 1 << 20

State = Literal["fetched", "begun", "none"]


@dataclass(frozen=True, slots=True)
class FetchManifest:
    """The number of files and bytes, their licences, and the commits of their Hub repositories."""

    benchmark: str
    files: int
    bytes: int
    licences: tuple[str, ...]
    revisions: tuple[str, ...]


def write_manifest(folder: Path, manifest: FetchManifest) -> None:
    """Write the manifest of a complete ``folder``."""
    replace_file(folder, _FILE, (json.dumps(asdict(manifest), indent=2) + "\n").encode("utf-8"))


def remove_manifest(folder: Path) -> None:
    """Remove the manifest, before files are fetched again."""
    with suppress(FileNotFoundError):
        remove_file(folder, _FILE)


def read_manifest(folder: Path) -> FetchManifest | None:
    """Return the manifest in ``folder``, or None if there is no readable one."""
    try:
        values = parse_json(read_bytes(folder, _FILE, limit=_LARGEST))
        return FetchManifest(
            str(values["benchmark"]),
            int(values["files"]),
            int(values["bytes"]),
            tuple(map(str, values["licences"])),
            tuple(map(str, values["revisions"])),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UnsafeFileError):
        return None


def fetch_state(folder: Path) -> State:
    """Return whether the data in ``folder`` is fetched, begun or absent."""
    if read_manifest(folder) is not None:
        return "fetched"
    return "begun" if folder.is_dir() and any(folder_entries(folder)) else "none"
