"""The mapping of a file's keys to columns: by their names, by the form of another tool, or as a user writes it (``--map``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.rows.csv_rows import SUFFIXES, read_columns
from benchmarks.rows.files import RawRow, SkippedRow
from benchmarks.rows.nested_keys import flat_fields, lookup, plain_names
from benchmarks.rows.number_origin import Counting
from benchmarks.rows.reader_types import check_cluster, shortened
from benchmarks.rows.row_columns import COLUMN_NAMES, LONGEST_KEY, TABLE, Columns, key_parts, option_columns
from benchmarks.rows.table_presets import PRESETS, Preset, recognised
from benchmarks.rows.unknown_keys import check_columns

_PLURALS = {"images": "image", "passages": "passage"}
_PEEKED = 20
"""The number of first rows whose keys are those of the file."""
_LONGEST_PEEK = 1 << 23
"""The number of characters from which no further row is among them."""
_BAR = re.compile(r"\s*\|\s*")


def parse_mapping(text: str) -> tuple[str, dict[str, str]]:
    """Return the preset and the key of each column that ``text`` names, as in ``ragas,image=page``. Raises SpecError."""
    preset, keys = "", dict[str, str]()
    for item in filter(None, map(str.strip, text.split(","))):
        name, equals, key = (part.strip().lower() for part in item.partition("="))
        column = _PLURALS.get(name, name)
        if not equals and preset:
            raise SpecError(f"--map names two presets, {preset} and {name[:LONGEST_KEY]}; name one.")
        if not equals and name not in PRESETS:
            raise SpecError(
                f"--map has no preset {name[:LONGEST_KEY]!r}; the presets are {', '.join(PRESETS)}, and a column is mapped as "
                "COLUMN=KEY."
            )
        if not equals:
            preset = name
        elif column not in COLUMN_NAMES or not key:
            is_reversed = name and _PLURALS.get(key, key) in COLUMN_NAMES
            reverse = f"write {key}={name[:LONGEST_KEY]} if the file has a column {name[:LONGEST_KEY]}"
            raise SpecError(
                f"--map cannot use {shortened(item, 2 * LONGEST_KEY)!r}, which is COLUMN=KEY; "
                f"{f'{reverse}.' if is_reversed else did_you_mean(column, COLUMN_NAMES)}"
            )
        elif keys.setdefault(column, key := _BAR.sub("|", key)) != key:
            raise SpecError(f"--map gives {column} two keys, {keys[column]} and {key}; name one.")
    return preset, keys


class MappedFile(NamedTuple):
    """A file's columns, its keys, all of its rows, which are still by the file's own keys, and where it begins to count."""

    columns: Columns
    keys: list[str]
    rows: Iterator[RawRow | SkippedRow]
    counting: Counting


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
    keys = list(dict.fromkeys(chain.from_iterable(map(flat_fields, fields))))
    if not first and file.name.lower().endswith(SUFFIXES):
        keys = list(filter(None, read_columns(file)))
    known = {*keys, *chain.from_iterable(fields), *_outer_keys(keys)}
    preset = PRESETS.get(preset_name or recognised(known, table=needed is TABLE))
    names = COLUMN_NAMES if preset is None else _names_of(preset)
    if keys and (name := check_cluster(cluster, known, file)):
        chosen = {"document": name, **chosen}
    own = {column: (key,) for column, key in chosen.items()}
    if needed is TABLE and known.isdisjoint(names["options"]) and (options := option_columns(known)):
        own = {"options": (options,), **own}
    has_options = any(known.issuperset(key_parts("options", key)) for key in own.get("options", names["options"]))
    columns = Columns({**names, **own}, chosen, preset, has_options)
    if keys:
        check_columns(file, columns, peeked, needed, keys, known | _found_later(read, chosen, known))
    counting = Counting(lambda: (columns.row(row).fields for row in read() if isinstance(row, RawRow)))
    return MappedFile(columns, keys, chain(first, rows), counting)


def _names_of(preset: Preset) -> dict[str, tuple[str, ...]]:
    """Return the keys of each column under a preset."""
    names = {column: preset.keys.get(column, () if column == "answer" else own) for column, own in COLUMN_NAMES.items()}
    names["image"] = tuple(dict.fromkeys((*names["image"], *COLUMN_NAMES["image"])))
    return names


def _outer_keys(keys: Iterable[str]) -> set[str]:
    """Return the keys around nested ones: ``a`` and ``a.b`` of ``a.b.c``."""
    return {key[: dot.start()] for key in keys for dot in re.finditer(r"\.", key)}


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
    missing = {part for column, key in chosen.items() for part in key_parts(column, key)} - set(known)
    searched = set(missing)
    for row in read() if searched else ():
        if isinstance(row, RawRow):
            fields = plain_names(row.fields)
            searched -= {key for key in searched if lookup(fields, key) is not None}
            if not searched:
                break
    return missing - searched
