"""Lookup of a build's sources, and messages for sources that are missing or unusable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.errors import SourceError, SpecError, did_you_mean
from benchmarks.rows.files import list_folders
from benchmarks.untrusted.typed_paths import path_exists, typed_path


def resolve_sources(
    benchmark: str, names: Sequence[str], sources: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield a benchmark's ``sources`` as pairs of name and location; ``names`` are its sources' names.

    A folder without a name stands for its subfolders that are named after a source. Raises SpecError for an unknown name,
    SourceError for a folder without a name and without such subfolders.
    """
    for name, place in sources:
        if name in names:
            yield name, place
            continue
        if name:
            raise SpecError(f"{benchmark} has no source {name!r}; {did_you_mean(name, names)}")
        subfolders = {folder.name: str(folder) for folder in list_folders(typed_path(place))}
        matches = [(source, subfolders[source]) for source in names if source in subfolders]
        if not matches:
            raise SourceError(
                f"{place} has no subfolder named after a source of {benchmark} ({', '.join(names)}); name the source: "
                f"NAME={place}."
            )
        yield from matches


def existing_path(name: str, place: str, expected: str) -> Path:
    """Return ``place`` as a path. Raises SourceError with what is ``expected`` if the path does not exist."""
    if not path_exists(place):
        raise SourceError(f"{place} does not exist; {name} is read from {expected}.")
    return Path(place).expanduser()


def layout_error(name: str, path: Path, expected: str) -> SourceError:
    """Return the error for a folder or file with an unknown layout."""
    return SourceError(f"{path} has no known layout of {name}; expected {expected}.")


def top_reasons(skipped: Mapping[str, Counter[str]]) -> str:
    """Return the three most frequent reasons for leaving out rows, for an error message; ``skipped`` counts them by source."""
    reasons = sum(skipped.values(), Counter[str]()).most_common(3)
    return "; ".join(f"{format_times(n)}: {reason}" for reason, n in reasons) or "they are empty"


def format_times(count: int) -> str:
    """Return a count in words: "once", "2 times"."""
    return "once" if count == 1 else f"{count} times"
