"""The error for a file that lacks columns: the keys that are there, and the likely mapping."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from benchmarks.errors import SourceError, UnknownKeysError
from benchmarks.rows.cell_images import is_image
from benchmarks.rows.column_guess import guess_columns
from benchmarks.rows.files import RawRow
from benchmarks.rows.nested_keys import is_filled, plain_names
from benchmarks.rows.row_columns import RIGHT_ANSWERS, Columns, key_parts, listed, written_mapping
from benchmarks.rows.table_presets import PRESETS

_GUESSED = ("question", "answer", "passage", "image")


def check_columns(
    file: Path, columns: Columns, rows: Sequence[RawRow], needed: Sequence[str], keys: Sequence[str], known: set[str]
) -> None:
    """Raise UnknownKeysError or SourceError if the columns do not fit the file."""
    gone = {
        column: part for column, key in columns.chosen.items() for part in key_parts(column, key) if part not in known
    }
    present = _present(columns, gone, known)
    _check_rivals(file, columns, rows, known, present)
    mapped = [columns.row(row) for row in rows]
    missing = [column for column in needed if column in gone or not _holds(columns, column, mapped, known)]
    if not gone and not missing:
        return
    if not columns.chosen and any(_is_value(key, rows) for key in keys):
        raise SourceError(
            f"the first row of {file.name} holds values, not the names of its columns; write the names above it: "
            f"{', '.join(needed)}."
        )
    wanted = [column for column in _GUESSED if column in missing or not _holds(columns, column, mapped, known)]
    guess, unclear = guess_columns(_unread(columns, missing, keys), rows, wanted)
    start = f"{file.name} has no column {listed(list(gone.values()) or missing)}"
    if columns.preset is not None and not gone:
        start = f"{file.name} is read as {columns.preset.title}, and has no {listed(missing)}"
    raise UnknownKeysError(
        f"{start}; it has {listed(keys)}.", guess, present, _advice(columns, gone, missing, guess, unclear)
    )


def _present(columns: Columns, gone: Collection[str], known: set[str]) -> dict[str, str]:
    """Return the key of each column that is there, the first of its names."""
    keys = {column: names for column, names in columns.keys.items() if column not in gone}
    return {column: key for column, names in keys.items() for key in names[::-1] if key in known}


def _check_rivals(
    file: Path, columns: Columns, rows: Sequence[RawRow], known: set[str], present: Mapping[str, str]
) -> None:
    """Raise UnknownKeysError if two keys may hold one column."""
    for column in ("image", "question", "answer"):
        rivals = _rivals(column, columns, rows, known)
        if len(rivals) > 1:
            raise UnknownKeysError(
                f"{file.name} has two columns for {column}, {rivals[0]} and {rivals[1]}; name the right one.",
                {},
                {other: key for other, key in present.items() if other != column},
                f"Write --map {column}={rivals[0]} or --map {column}={rivals[1]}.",
            )


def _unread(columns: Columns, missing: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return the keys that hold no column that is there, and no answer of a model."""
    read = {key for name, names in columns.keys.items() if name not in (*missing, "document") for key in names}
    models = columns.preset.model_answers if columns.preset is not None else ()
    parts = tuple(f"{name}." for name in models)
    return [key for key in keys if key not in (*read, *models) and not key.startswith(parts)]


def _rivals(column: str, columns: Columns, rows: Sequence[RawRow], known: set[str]) -> list[str]:
    """Return the keys of which only the user knows which holds a column.

    Those of an answer need not be names that are read, and are rivals only where a row's values differ.
    """
    if columns.preset is not None or column in columns.chosen:
        return []
    if column != "answer":
        keys = [key for key in columns.keys[column] if key in known]
        return [] if {column, f"{column}s"} & set(keys) else keys
    keys = [key for key in RIGHT_ANSWERS if key in known]
    if not {*keys}.intersection(columns.keys["answer"]):
        return []
    first, *others = keys
    fields = [plain_names(row.fields) for row in rows]
    return [first, *(key for key in others if any(_differ(row.get(first), row.get(key)) for row in fields))]


def _differ(value: object, other: object) -> bool:
    """Return whether two filled values have no text in common."""
    texts, others = (
        {str(item).strip().casefold() for item in (v if isinstance(v, list) else [v]) if is_filled(item)}
        for v in (value, other)
    )
    return bool(texts and others) and texts.isdisjoint(others)


def _is_value(key: str, rows: Sequence[RawRow]) -> bool:
    """Return whether a file's key is a question or a picture of a row: a table without a header has such keys."""
    return key.endswith(("?", "？")) or any(is_image(row, key) for row in rows[:1])


def _holds(columns: Columns, column: str, mapped: Sequence[RawRow], known: set[str]) -> bool:
    """Return whether a file has a column; that of another tool must be filled, because its keys have several meanings."""
    if columns.preset is not None and column not in columns.chosen:
        return any(is_filled(row.fields[column]) for row in mapped)
    return not known.isdisjoint(columns.keys[column])


def _advice(
    columns: Columns,
    gone: Collection[str],
    missing: Sequence[str],
    guess: Mapping[str, str],
    unclear: Mapping[str, Sequence[str]],
) -> str:
    """Return the mapping to write, with a placeholder for what only the user knows; "" if nothing need be written."""
    kept = {column: key for column, key in columns.chosen.items() if column not in (*gone, *missing, *guess)}
    unknown = [column for column in missing if column not in guess]
    preset = next((name for name, preset in PRESETS.items() if preset is columns.preset), "")
    keys = {**kept, **guess, **{column: column.upper() for column in unknown}}
    if not keys and not preset:
        return ""
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
