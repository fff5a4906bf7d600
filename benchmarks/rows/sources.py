"""What a build's sources share: finding them, and saying what is wrong where they are not what they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.base import did_you_mean
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.files import folders


def resolved(benchmark: str, names: Sequence[str], sources: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """A benchmark's ``sources`` by name, one of ``names``; a nameless folder is replaced by its sub-folders that bear one.

    Raises SpecError for an unknown name, SourceError for a nameless folder without a source in it.
    """
    for name, place in sources:
        if name in names:
            yield name, place
            continue
        if name:
            raise SpecError(f"{benchmark} has no source {name!r}; {did_you_mean(name, names)}")
        inside = {folder.name: str(folder) for folder in folders(Path(place).expanduser())}
        known = [(each, inside[each]) for each in names if each in inside]
        if not known:
            raise SourceError(
                f"{place} has no sub-folder named after a source of {benchmark} ({', '.join(names)}); say which it is: "
                f"NAME={place}."
            )
        yield from known


def folder_of(name: str, place: str, expected: str) -> Path:
    """``place`` as a path that exists. Raises SourceError saying what was ``expected`` where it does not."""
    path = Path(place).expanduser()
    try:
        there = path.exists()
    except (OSError, ValueError):
        there = False
    if not there:
        raise SourceError(f"there is no folder {place}; {name} is read from {expected}.")
    return path


def wrong_layout(name: str, path: Path, expected: str) -> SourceError:
    """The error for a folder or file of no known layout."""
    return SourceError(f"{path} is nothing that {name} can be read from; expected {expected}.")


def most_common(skipped: Mapping[str, Counter[str]]) -> str:
    """The three most frequent reasons of what was left out, by source, for an error's sentence."""
    reasons = sum(skipped.values(), Counter[str]()).most_common(3)
    return "; ".join(f"{times(n)}: {reason}" for reason, n in reasons) or "they are empty"


def times(count: int) -> str:
    """How often something was so, in words."""
    return "once" if count == 1 else f"{count} times"
