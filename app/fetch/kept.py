"""What was fetched for a benchmark: a note beside the files, written when all of them are whole."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.outside_json import read_json_file

_NOTE = ".fetched.json"

State = Literal["fetched", "begun", "none"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """So many files and bytes, their licences, and the commits of the Hub's repositories they are of."""

    benchmark: str
    files: int
    bytes: int
    licences: tuple[str, ...]
    revisions: tuple[str, ...]


def note(folder: Path, fetched: Fetched) -> None:
    """Write down that ``folder`` is complete."""
    written = folder / f"{_NOTE}.part"
    written.write_text(json.dumps(asdict(fetched), indent=2) + "\n", "utf-8")
    written.replace(folder / _NOTE)


def forget(folder: Path) -> None:
    """Take the note away, before files are fetched anew."""
    (folder / _NOTE).unlink(missing_ok=True)


def fetched(folder: Path) -> Fetched | None:
    """The note in ``folder``; None where there is none that can be read."""
    try:
        found = read_json_file(folder / _NOTE)
        return Fetched(
            str(found["benchmark"]),
            int(found["files"]),
            int(found["bytes"]),
            tuple(map(str, found["licences"])),
            tuple(map(str, found["revisions"])),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def state(folder: Path) -> State:
    """Whether ``folder`` is complete, begun, or not there."""
    if fetched(folder) is not None:
        return "fetched"
    return "begun" if folder.is_dir() and any(folder.iterdir()) else "none"
