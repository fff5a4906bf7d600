"""Columns of tables and logs: their names, those of other tools, and the mapping that a user writes as ``--map``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.errors import SourceError, SpecError, UnknownKeysError, did_you_mean
from benchmarks.rows.base import DOCUMENT_COLUMNS, Fields, check_cluster, shortened
from benchmarks.rows.csv_rows import SUFFIXES, read_columns
from benchmarks.rows.files import RawRow, SkippedRow
from benchmarks.rows.guess import guess_columns
from benchmarks.rows.nested_keys import flat_fields, is_filled, lookup, plain_names
from benchmarks.rows.presets import PRESETS, Preset, recognised
from benchmarks.vocabulary import TRUST

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "images", "image_1", "pages", "page_images"),
    "question": ("question", "query"),
    "answer": ("answer", "label", "gold"),
    "passage": ("passage", "passages", "texts", "contexts"),
    "image_answer": ("image_answer",),
    "text_answer": ("text_answer",),
    "conflict": ("conflict",),
    "group": ("group", "subject"),
    "document": DOCUMENT_COLUMNS,
    "options": ("options",),
    "subfield": ("subfield",),
    "family": ("family",),
    TRUST: (TRUST,),
}
"""The columns of a table and the keys of a log, with their alternative names; the first that a row fills counts."""

TABLE = ("image", "question", "answer")
LOG = ("question", "passage", "image")
"""The columns that a table, and a retrieval log, must have."""

_GUESSED = ("question", "answer", "passage", "image")
_PLURALS = {"images": "image", "passages": "passage"}
_PEEKED = 20
"""The number of first rows whose keys are those of the file."""
_LONGEST_PEEK = 1 << 23
"""The number of characters from which no further row is among them."""
_LISTED = 20
_LONGEST_KEY = 60


def parse_mapping(text: str) -> tuple[str, dict[str, str]]:
    """Return the preset and the key of each column that ``text`` names, as in ``ragas,image=page``. Raises SpecError."""
    preset, keys = "", dict[str, str]()
    for item in filter(None, map(str.strip, text.split(","))):
        name, equals, key = (part.strip().lower() for part in item.partition("="))
        column = _PLURALS.get(name, name)
        if not equals and preset:
            raise SpecError(f"--map names two presets, {preset} and {name[:_LONGEST_KEY]}; name one.")
        if not equals and name not in PRESETS:
            raise SpecError(
                f"--map has no preset {name[:_LONGEST_KEY]!r}; the presets are {', '.join(PRESETS)}, and a column is mapped as "
                "COLUMN=KEY."
            )
        if not equals:
            preset = name
        elif column not in COLUMN_NAMES or not key:
            reverse = f"did you mean {key}={name}?" if _PLURALS.get(key, key) in COLUMN_NAMES else ""
            raise SpecError(
                f"--map cannot use {shortened(item, 2 * _LONGEST_KEY)!r}, which is COLUMN=KEY; "
                f"{reverse or did_you_mean(column, COLUMN_NAMES)}"
            )
        elif keys.setdefault(column, key) != key:
            raise SpecError(f"--map gives {column} two keys, {keys[column]} and {key}; name one.")
    return preset, keys


def written_mapping(keys: Mapping[str, str]) -> str:
    """Return the text that :func:`parse_mapping` reads."""
    return ",".join(f"{column}={key}" for column, key in keys.items())


@dataclass(frozen=True, slots=True)
class Columns:
    """The keys that hold each column of a file; those ``chosen`` by the user go before what the preset derives."""

    keys: Mapping[str, tuple[str, ...]]
    chosen: Mapping[str, str]
    preset: Preset | None = None

    def row(self, raw: RawRow) -> RawRow:
        """Return a row with its fields by column, and with all folders of its images."""
        fields = plain_names(raw.fields)
        columns = {column: self._value(fields, column) for column in self.keys}
        folders = raw.folders
        if self.preset is not None:
            derived = self.preset.derive(fields)
            columns |= {column: value for column, value in derived.items() if column not in self.chosen}
            folders += tuple(folder / name for folder in folders for name in self.preset.folders)
        return RawRow(raw.where, columns, folders, raw.anywhere)

    def _value(self, fields: Fields, column: str) -> Any:
        values = (lookup(fields, key) for key in self.keys[column])
        no_objects = column == "question" or (column == "answer" and self.preset is not None)
        return next((v for v in values if is_filled(v) and not (no_objects and isinstance(v, dict))), None)

    def remarks(self, keys: Sequence[str]) -> list[str]:
        """Return remarks on the preset, and on the outermost of a file's ``keys`` from which nothing is read."""
        used = {part for names in self.keys.values() for key in names for part in (key, key.partition(".")[0])}
        used |= self.preset.read_too if self.preset is not None else set()
        unused = [
            key for key in dict.fromkeys(k if k in used else k.partition(".")[0] for k in keys) if key not in used
        ]
        remarks = [f"read as {self.preset.title}"] if self.preset is not None else []
        if unused:
            remarks.append(f"nothing is read from the column{'s'[: len(unused) > 1]} {_listed(unused)}")
        return remarks


class MappedFile(NamedTuple):
    """A file's columns, its keys, and all of its rows, which are still by the file's own keys."""

    columns: Columns
    keys: list[str]
    rows: Iterator[RawRow | SkippedRow]


Read = Callable[[], Iterator[RawRow | SkippedRow]]
"""A function that reads a file from its beginning."""


def map_file(file: Path, read: Read, needed: Sequence[str], mapping: str = "", cluster: str = "") -> MappedFile:
    """Return the columns of a file from its first rows.

    ``mapping`` is the text of ``--map``, ``cluster`` the key that names the documents. Raises SpecError for another text,
    UnknownKeysError where a column that is ``needed`` or mapped is missing, SourceError where two keys hold one.
    """
    preset_name, chosen = parse_mapping(mapping)
    rows = read()
    first = list(_first(rows))
    peeked = [row for row in first if isinstance(row, RawRow)]
    fields = [plain_names(row.fields) for row in peeked]
    keys = list(dict.fromkeys(key for row in fields for key in flat_fields(row)))
    if not first and file.name.lower().endswith(SUFFIXES):
        keys = [name for name in read_columns(file) if name]
    known = {*keys, *(key for row in fields for key in row)}
    known |= {key[: dot.start()] for key in keys for dot in re.finditer(r"\.", key)}
    preset = PRESETS.get(preset_name or recognised(known, table=needed is TABLE))
    names = COLUMN_NAMES
    if preset is not None:
        names = {column: preset.keys.get(column, () if column == "answer" else names[column]) for column in names}
        names["image"] = tuple(dict.fromkeys((*names["image"], *COLUMN_NAMES["image"])))
    if keys and (name := check_cluster(cluster, known, file)):
        chosen = {"document": name, **chosen}
    columns = Columns({**names, **{column: (key,) for column, key in chosen.items()}}, chosen, preset)
    if keys:
        _check(file, columns, peeked, needed, keys, known | _found_later(read, chosen, known))
    return MappedFile(columns, keys, chain(first, rows))


def _first(rows: Iterator[RawRow | SkippedRow]) -> Iterator[RawRow | SkippedRow]:
    """Yield the first rows, fewer if they are long."""
    size = 0
    for row in islice(rows, _PEEKED):
        yield row
        size += (
            sum(len(value) for value in row.fields.values() if isinstance(value, str)) if isinstance(row, RawRow) else 0
        )
        if size > _LONGEST_PEEK:
            return


def _found_later(read: Read, chosen: Mapping[str, str], known: Collection[str]) -> set[str]:
    """Return those of the mapped keys that only rows further below have."""
    searched = {key for key in chosen.values() if key not in known}
    for row in read() if searched else ():
        if isinstance(row, RawRow):
            fields = plain_names(row.fields)
            searched -= {key for key in searched if lookup(fields, key) is not None}
            if not searched:
                break
    return {key for key in chosen.values() if key not in known} - searched


def _check(
    file: Path, columns: Columns, rows: Sequence[RawRow], needed: Sequence[str], keys: Sequence[str], known: set[str]
) -> None:
    """Raise UnknownKeysError or SourceError if the columns do not fit the file."""
    gone = {column: key for column, key in columns.chosen.items() if key not in known}
    for column in needed:
        rivals = [key for key in columns.keys[column] if key in known]
        if columns.preset is None and len(rivals) > 1 and not {column, f"{column}s"} & set(rivals):
            raise SourceError(
                f"{file.name} has two columns for {column}, {rivals[0]} and {rivals[1]}; name one: --map {column}={rivals[0]}."
            )
    mapped = [columns.row(row) for row in rows]
    missing = [column for column in needed if column in gone or not _holds(columns, column, mapped, known)]
    present = {
        column: key
        for column, names in columns.keys.items()
        if column not in gone
        for key in names[::-1]
        if key in known
    }
    if not gone and not missing:
        return
    read = {key for name, names in columns.keys.items() if name not in (*missing, "document") for key in names}
    wanted = [column for column in _GUESSED if column in missing or not _holds(columns, column, mapped, known)]
    guess, unclear = guess_columns([key for key in keys if key not in read], rows, wanted)
    start = f"{file.name} has no column {_listed(list(gone.values()) or missing)}"
    if columns.preset is not None and not gone:
        start = f"{file.name} is read as {columns.preset.title}, and has no {_listed(missing)}"
    raise UnknownKeysError(
        f"{start}; it has {_listed(keys)}. {_advice(columns, missing, guess, unclear)}", guess, present
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
        f"{column.upper()} is {' or '.join(map(_short, unclear[column][:4]))}"
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


def _short(key: str) -> str:
    return shortened(key, _LONGEST_KEY)


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
    return ", ".join(map(_short, keys[:_LISTED])) + more
