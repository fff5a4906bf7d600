"""What was fetched for a benchmark: a note beside the files, written when all of them are whole."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, remove_file, replace_file
from benchmarks.untrusted.safe_json import parse_json

_NOTE = ".fetched.json"
_LARGEST = 1 << 20

State = Literal["fetched", "begun", "none"]


@dataclass(frozen=True, slots=True)
class FetchManifest:
    """So many files and bytes, their licences, and the commits of the Hub's repositories they are of."""

    benchmark: str
    files: int
    bytes: int
    licences: tuple[str, ...]
    revisions: tuple[str, ...]


def note(folder: Path, fetched: FetchManifest) -> None:
    """Write down that ``folder`` is complete."""
    replace_file(folder, _NOTE, (json.dumps(asdict(fetched), indent=2) + "\n").encode("utf-8"))


def forget(folder: Path) -> None:
    """Take the note away, before files are fetched anew."""
    with suppress(FileNotFoundError):
        remove_file(folder, _NOTE)


def fetched(folder: Path) -> FetchManifest | None:
    """The note in ``folder``; None where there is none that can be read."""
    try:
        found = parse_json(read_bytes(folder, _NOTE, limit=_LARGEST))
        return FetchManifest(
            str(found["benchmark"]),
            int(found["files"]),
            int(found["bytes"]),
            tuple(map(str, found["licences"])),
            tuple(map(str, found["revisions"])),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UnsafeFileError):
        return None


def state(folder: Path) -> State:
    """Whether ``folder`` is complete, begun, or not there."""
    if fetched(folder) is not None:
        return "fetched"
    return "begun" if folder.is_dir() and any(folder.iterdir()) else "none"
