"""The error for a file that lacks columns: the keys that are there, and the likely mapping."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.errors import SourceError, UnknownKeysError
from benchmarks.rows.columns import Columns, key_parts, listed, written_mapping
from benchmarks.rows.files import RawRow
from benchmarks.rows.guess import guess_columns
from benchmarks.rows.nested_keys import is_filled
from benchmarks.rows.presets import PRESETS

_GUESSED = ("question", "answer", "passage", "image")


def check_columns(
    file: Path, columns: Columns, rows: Sequence[RawRow], needed: Sequence[str], keys: Sequence[str], known: set[str]
) -> None:
    """Raise UnknownKeysError or SourceError if the columns do not fit the file."""
    gone = {
        column: part for column, key in columns.chosen.items() for part in key_parts(column, key) if part not in known
    }
    for column in needed:
        rivals = [key for key in columns.keys[column] if key in known]
        if columns.preset is None and len(rivals) > 1 and not {column, f"{column}s"} & set(rivals):
            raise SourceError(
                f"{file.name} has two columns for {column}, {rivals[0]} and {rivals[1]}; name one: --map {column}={rivals[0]}."
            )
    mapped = [columns.row(row) for row in rows]
    missing = [column for column in needed if column in gone or not _holds(columns, column, mapped, known)]
    if not gone and not missing:
        return
    present = {
        column: key
        for column, names in columns.keys.items()
        if column not in gone
        for key in names[::-1]
        if key in known
    }
    read = {key for name, names in columns.keys.items() if name not in (*missing, "document") for key in names}
    wanted = [column for column in _GUESSED if column in missing or not _holds(columns, column, mapped, known)]
    guess, unclear = guess_columns([key for key in keys if key not in read], rows, wanted)
    start = f"{file.name} has no column {listed(list(gone.values()) or missing)}"
    if columns.preset is not None and not gone:
        start = f"{file.name} is read as {columns.preset.title}, and has no {listed(missing)}"
    raise UnknownKeysError(
        f"{start}; it has {listed(keys)}. {_advice(columns, missing, guess, unclear)}", guess, present
    )


def _holds(columns: Columns, column: str, mapped: Sequence[RawRow], known: set[str]) -> bool:
    """Return whether a file has a column; that of another tool must be filled, because its keys have several meanings."""
    if columns.preset is not None and column not in columns.chosen:
        return any(is_filled(row.fields[column]) for row in mapped)
    return not known.isdisjoint(columns.keys[column])


def _advice(
    columns: Columns, missing: Sequence[str], guess: Mapping[str, str], unclear: Mapping[str, Sequence[str]]
) -> str:
    """Return the mapping to write, with a placeholder for what only the user knows."""
    kept = {column: key for column, key in columns.chosen.items() if column not in (*missing, *guess)}
    unknown = [column for column in missing if column not in guess]
    preset = next((name for name, preset in PRESETS.items() if preset is columns.preset), "")
    keys = {**kept, **guess, **{column: column.upper() for column in unknown}}
    option = f"--map {shlex.quote(','.join(filter(None, (preset, written_mapping(keys)))))}"
    if unknown and not guess and not unclear:
        kinds = " and ".join(_KINDS[column] for column in unknown)
        return f"Give each row {kinds} under a key of its own, and name that key: {option}"
    notes = [
        f"{column.upper()} is {listed(unclear[column][:4], ' or ')}"
        if column in unclear
        else f"{column.upper()} stands for the key of {_KINDS[column]}"
        for column in unknown
    ]
    return f"Try {option}" + (f", where {', and '.join(notes)}" if notes else "")


_KINDS = {
    "image": "the picture's file",
    "question": "the question",
    "answer": "the right answer",
    "passage": "the retrieved texts",
}
