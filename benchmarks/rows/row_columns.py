"""Columns of tables and logs: their names, and the keys of a file that hold them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from string import ascii_lowercase
from typing import Any

from benchmarks.rows.files import RawRow
from benchmarks.rows.nested_keys import is_filled, lookup, plain_names
from benchmarks.rows.placeholder_texts import is_placeholder
from benchmarks.rows.reader_types import DOCUMENT_COLUMNS, Fields, shortened
from benchmarks.rows.table_presets import Preset
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
    "options": ("options", "choices"),
    "subfield": ("subfield",),
    "family": ("family",),
    TRUST: (TRUST,),
}
"""The columns of a table and the keys of a log, with their alternative names; the first that a row fills counts."""

TABLE = ("image", "question", "answer")
LOG = ("question", "passage", "image")
"""The columns that a table, and a retrieval log, must have."""

ANSWER_KEY = "key of the answer"
"""The field of a row that names the key of its answer: a list of ``answers`` is read otherwise than one in ``answer``."""

_OPTION_COLUMN = re.compile(r"(?:options?|choices?|opt|variante?|вариант)[ _.-]?([a-z]|\d{1,2})|(\d{1,2})")
RIGHT_ANSWERS = (
    *COLUMN_NAMES["answer"],
    *(
        "answers",
        "labels",
        "ground_truth",
        "ground_truths",
        "groundtruth",
        "gt",
        "gold_answer",
        "golden_answer",
        "reference",
    ),
    *("references", "reference_answer", "expected", "expected_output", "expected_answer", "correct_answer"),
)
"""Keys of right answers. Beside one of them, another, ``answer`` included, may hold a model's answer."""

_LISTED = 20
LONGEST_KEY = 60


@dataclass(frozen=True)
class Columns:
    """The keys that hold each column of a file; those ``chosen`` by the user go before what the preset derives."""

    keys: Mapping[str, tuple[str, ...]]
    chosen: Mapping[str, str]
    preset: Preset | None = None
    has_options: bool = False

    def row(self, raw: RawRow) -> RawRow:
        """Return a row with its fields by column, the options of columns that are letters, and all folders of its images."""
        fields = plain_names(raw.fields)
        columns = {
            letter: fields[letter] for letter in ascii_lowercase if letter in fields and letter not in self._single
        }
        for column in self.keys:
            key, columns[column] = self._value(fields, column)
            if column == "answer":
                columns[ANSWER_KEY] = key.rpartition(".")[2]
        folders = raw.folders
        if self.preset is not None:
            derived = self.preset.derive(fields)
            columns |= {column: value for column, value in derived.items() if self._is_derived(column)}
            folders += tuple(folder / name for folder in folders for name in self.preset.folders)
        return RawRow(raw.where, columns, folders, raw.anywhere)

    @cached_property
    def _single(self) -> set[str]:
        """The letters that are keys of columns, and so no options."""
        return {key for names in self.keys.values() for key in names if len(key) == 1}

    def _is_derived(self, column: str) -> bool:
        """Return whether the preset may say what a column holds: the user chose no key, or one of promptfoo's assertions."""
        key = self.chosen.get(column, "")
        return not key or (column == "answer" and self.preset is not None and key in self.preset.read_too)

    @cached_property
    def _parts(self) -> Mapping[str, Sequence[tuple[str, Sequence[str], bool]]]:
        """The keys of each column with their parts, and whether a row must have the key itself."""
        return {
            column: [
                (key, parts, len(parts) == 1 and "." not in key and key != "image_1")
                for key in names
                for parts in [key_parts(column, key)]
            ]
            for column, names in self.keys.items()
        }

    def _value(self, fields: Fields, column: str) -> tuple[str, Any]:
        """Return the first filled key of a column, and its value. Only an answer or an option may be a placeholder."""
        for key, parts, is_plain in self._parts[column]:
            if is_plain and key not in fields:
                continue
            value = self._read(fields, key, parts)
            if value is None or not is_filled(value):
                continue
            if isinstance(value, dict) and (column == "question" or (column == "answer" and self.preset is not None)):
                continue
            if column in ("answer", "options") or not (is_placeholder(value) or value in ("None", "none")):
                return key, value
        return "", None

    @staticmethod
    def _read(fields: Fields, key: str, parts: Sequence[str]) -> Any:
        if key == "image_1":
            return _numbered_images(fields)
        return lookup(fields, key) if len(parts) == 1 else [lookup(fields, part) for part in parts]

    def remarks(self, keys: Sequence[str]) -> list[str]:
        """Return remarks on the preset, and on the outermost of a file's ``keys`` from which nothing is read."""
        used = self._used_keys()
        unused = [
            key for key in dict.fromkeys(k if k in used else k.partition(".")[0] for k in keys) if key not in used
        ]
        remarks = [f"read as {self.preset.title}"] if self.preset is not None else []
        present = {column: [key for key in dict.fromkeys(names) if key in keys] for column, names in self.keys.items()}
        if self.preset is None and "answer" not in self.chosen and present["answer"][:1] in (["label"], ["gold"]):
            remarks.append(f"the answers are in the column {present['answer'][0]}")
        remarks += [
            f"{listed(other)} is read only where {first} is empty"
            for first, *other in filter(None, present.values())
            if other
        ]
        if unused:
            remarks.append(f"nothing is read from the column{'s'[: len(unused) > 1]} {listed(unused)}")
        return remarks

    def _used_keys(self) -> set[str]:
        """Return the keys from which something is read, and the outermost keys around them."""
        read = (part for column, names in self.keys.items() for key in names for part in key_parts(column, key))
        used = {part for key in read for part in (key, key.partition(".")[0])}
        used |= {f"image_{number}" for number in range(1, 10) if "image_1" in self.keys["image"]}
        return used | {*ascii_lowercase, *(self.preset.read_too if self.preset is not None else ())}


def key_parts(column: str, key: str) -> list[str]:
    """Return the keys of a column; options may have one each, as in ``a|b|c``."""
    return key.split("|") if column == "options" else [key]


def option_columns(keys: Collection[str]) -> str:
    """Return the keys such as ``option 1`` or ``choice_a`` that hold one option each, joined by bars; empty if there are none."""
    labels = {match[1] or match[2]: key for key in keys if (match := _OPTION_COLUMN.fullmatch(key))}
    for series in (ascii_lowercase, [str(number) for number in range(1, 27)]):
        columns = [labels[label] for label in takewhile(labels.__contains__, series)]
        if len(columns) > 1:
            return "|".join(columns)
    return ""


def _numbered_images(fields: Fields) -> Any:
    """Return the image of a row in image_1, or the list of those in image_1, image_2, ..."""
    images = [value for number in range(1, 10) if is_filled(value := fields.get(f"image_{number}"))]
    return images if len(images) > 1 else next(iter(images), None)


def written_mapping(keys: Mapping[str, str]) -> str:
    """Return the text that :func:`~benchmarks.rows.column_mapping.parse_mapping` reads."""
    return ",".join(f"{column}={key}" for column, key in keys.items())


def listed(keys: Sequence[str], separator: str = ", ") -> str:
    """Return the first of some keys of a file for a message, without the ends of long ones."""
    more = f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
    return separator.join(shortened(key, LONGEST_KEY) for key in keys[:_LISTED]) + more
