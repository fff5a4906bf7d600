"""Changes between two versions of a question set: rows added, removed and changed, by content."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.store.held_out_questions import build_instances
from app.store.question_sets import QuestionSet
from benchmarks.build import Build, BuiltRow
from benchmarks.hash_collections import hash64
from benchmarks.vocabulary import Instance, digest

_IDENTITY = ("question", "image", "images")
"""The cells by which a row is known after several others were edited."""


@dataclass(frozen=True, slots=True)
class SetChanges:
    """The difference between two versions, by content.

    Attributes:
        added: The rows that only the newer version has, in the order of its table.
        removed: The rows that only the older one has, and that are gone from the table.
        left_out: The rows that only the older one has, whose place in the newer table has a row that could not be used.
        changed: Pairs of an older and a newer row that agree in most cells.
        instances: The number of instances of the newer version.
        same_instances: The number of these whose prompt and media the older version has, too.
    """

    added: Sequence[BuiltRow]
    removed: Sequence[BuiltRow]
    changed: Sequence[tuple[BuiltRow, BuiltRow]]
    instances: int
    same_instances: int
    left_out: Sequence[BuiltRow] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.left_out)


def compare_builds(older: Build, newer: Build) -> SetChanges:
    """Return the changes from one build of a table to another. Raises SourceError if a build was damaged."""
    before, after = (sorted(build.built_rows(), key=_by_place) for build in (older, newer))
    matches = _match(before, after)
    new_places = {new for _, new in matches}
    changed = [
        (before[old], after[new]) for old, new in matches if before[old].cells and before[old].cells != after[new].cells
    ]
    requests = {_request(instance) for instance in build_instances(older)}
    same = [_request(instance) in requests for instance in build_instances(newer)]
    gone, left_out = _split_gone(before, {before[old].row: after[new].row for old, new in matches}, newer)
    return SetChanges(
        [row for place, row in enumerate(after) if place not in new_places],
        gone,
        changed,
        len(same),
        sum(same),
        left_out,
    )


def latest_changes(question_set: QuestionSet) -> SetChanges | None:
    """Return the changes that made the newest version of a set; None if there is one version. Raises SourceError."""
    if len(question_set.versions) == 1:
        return None
    older, newer = (Build.open(version.build) for version in question_set.versions[-2:])
    return compare_builds(older, newer)


def _split_gone(
    before: Sequence[BuiltRow], places: Mapping[str, str], newer: Build
) -> tuple[list[BuiltRow], list[BuiltRow]]:
    """Return the rows without a new place that are gone, and those whose place has a row that was left out of ``newer``.

    A left-out row has no content to compare, so its place is the one behind the row before it. ``places`` are the new places
    of the rows that stayed, by the old ones.
    """
    skipped, shift = newer.left_out_rows(), 0
    gone, left_out = list[BuiltRow](), list[BuiltRow]()
    table = next((_split_place(place)[0] for place in places.values()), None)
    for row in before:
        name, number = _split_place(row.row)
        if row.row in places:
            shift = _split_place(places[row.row])[1] - number
        elif f"{name if table is None else table}{number + shift}" in skipped:
            left_out.append(row)
        else:
            gone.append(row)
            shift -= 1
    return gone, left_out


def _split_place(place: str) -> tuple[str, int]:
    """Return a place such as "rows.csv:10" as the text before its number and the number; -1 without one."""
    match = re.fullmatch(r"(.*?)([0-9]{1,18})", place, re.DOTALL)
    return (match[1], int(match[2])) if match else (place, -1)


def _by_place(row: BuiltRow) -> list[str | int]:
    """Return a key that sorts places such as "rows.csv:10" by their numbers."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", row.row)]


def _request(instance: Instance) -> int:
    return hash64(digest([repr(part) for part in instance.parts]))


def _match(before: Sequence[BuiltRow], after: Sequence[BuiltRow]) -> list[tuple[int, int]]:
    """Return the places of rows that are the same, or were the same before an edit, in order of ``after``.

    Equal rows are matched first, then rows that differ in one cell, then those with the same question about the same picture,
    then those of one place that agree in half of their cells.
    """
    matches: list[tuple[int, int]] = []
    old_left, new_left = dict(enumerate(before)), dict(enumerate(after))

    def match_by(key: Callable[[BuiltRow], Any], is_match: Callable[[BuiltRow, BuiltRow], bool] | None = None) -> None:
        places: dict[Any, list[int]] = {}
        for old, row in old_left.items():
            places.setdefault(key(row), []).append(old)
        for new, row in list(new_left.items()):
            candidates = places.get(key(row), [])
            if candidates and (is_match is None or is_match(old_left[candidates[0]], row)):
                old = candidates.pop(0)
                del old_left[old], new_left[new]
                matches.append((old, new))

    match_by(lambda row: row.group)
    for name in dict.fromkeys(name for row in after for name in row.cells):
        match_by(lambda row, name=name: digest({k: v for k, v in row.cells.items() if k != name}))  # type: ignore[misc]
    match_by(lambda row: digest([row.cells.get(name) for name in _IDENTITY] if row.cells else row.group))
    match_by(lambda row: row.row, lambda old, new: 2 * _agreeing(old, new) >= len(new.cells))
    return sorted(matches, key=lambda match: match[1])


def _agreeing(old: BuiltRow, new: BuiltRow) -> int:
    return sum(old.cells.get(name) == value for name, value in new.cells.items())
