"""Review guides: the texts and media of a build's row that people review, the paper's checks, and corrections of a row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import SpecError
from benchmarks.rows.reader_types import RowProblem, is_unicode
from benchmarks.vocabulary import Media, part_from_json

Row = Mapping[str, Any]

LONGEST_CORRECTION = 20_000
"""The most characters of a corrected text."""


@dataclass(frozen=True, slots=True)
class ReviewField:
    """A text of a row: its place (``options.1`` is the second item of the list ``options``), heading, and value.

    ``emphasis`` is the part of the text that the construction changed; "" for none.
    """

    place: str
    heading: str
    text: str
    editable: bool = True
    emphasis: str = ""


@dataclass(frozen=True, slots=True)
class ReviewMedium:
    """A medium of a row with its caption; ``media`` is None if the build lacks it, and ``problem`` says why."""

    caption: str
    media: Media | None
    problem: str = ""


class ReviewGuide:
    """The review of a benchmark's constructed rows. The methods take and return rows of ``instances.jsonl``.

    This class shows every text of a row and allows no correction; a benchmark that is constructed derives its own.
    """

    checks: tuple[str, ...] = ("Is the question clear, and is its answer right?",)
    """The questions that a reviewer answers by accepting."""
    checks_from: str = "our wording"
    """The source of the checks."""
    reasons: tuple[str, ...] = ("question", "answer", "media", "duplicate")
    """The reasons for a rejection that are offered; others can be written."""
    grades: tuple[str, ...] = ()
    """The difficulty levels that a reviewer can assign; empty for none."""

    def fields(self, row: Row) -> tuple[ReviewField, ...]:
        """Return the texts of a row, in order of display."""
        return tuple(ReviewField(place, place, text, editable=False) for place, text in _texts(row) if place != "id")

    def media(self, row: Row) -> tuple[ReviewMedium, ...]:
        """Return the media of a row, in order of display."""
        return tuple(ReviewMedium("", media) for media in media_of(row))

    def example(self, row: Row) -> str:
        """Return the id of the example that a row belongs to; a rejection and a correction concern all of its rows."""
        return str(row["id"])

    def is_reserved(self, row: Row) -> bool:
        """Return whether the construction reserved a row for manual checks; True if it reserves none."""
        return True

    def grade(self, row: Row) -> str:
        """Return the difficulty level that the construction assigned to a row; "" for none."""
        return ""

    def complete(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows of a corrected example with what follows from their texts, such as their ids.

        Raises RowProblem for an invalid row.
        """
        return list(rows)


def check_corrections(guide: ReviewGuide, row: Row, corrections: Mapping[str, str]) -> None:
    """Raise SpecError unless these texts, by place, are a valid correction of a row."""
    _check_texts(guide, row, corrections)
    correct_example(guide, [row], {str(row["id"]): corrections})


def correct_example(
    guide: ReviewGuide, rows: Sequence[Row], corrections: Mapping[str, Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return the rows of one example with the corrected texts, by row id and place.

    A correction changes the text in every row of the example that has it in the same place. Raises SpecError if the result
    is invalid, or if two corrections of one text differ.
    """
    by_text: dict[tuple[str, str], str] = {}
    for row in rows:
        for place, text in corrections.get(str(row["id"]), {}).items():
            before = text_at(row, place) or ""
            if by_text.setdefault((place, before), text) != text:
                raise SpecError(
                    f"two corrections of {place!r} in the example {guide.example(row)[:80]!r} differ; decide on one of them."
                )
    corrected: list[dict[str, Any]] = [json.loads(json.dumps(row)) for row in rows]
    for row in corrected:
        for (place, before), text in by_text.items():
            if text_at(row, place) == before:
                _put(row, place.split("."), text)
    try:
        return guide.complete(corrected)
    except RowProblem as problem:
        raise SpecError(f"the correction of {str(rows[0]['id'])[:80]!r} is invalid: {problem}; change it.") from problem


def _check_texts(guide: ReviewGuide, row: Row, corrections: Mapping[str, str]) -> None:
    editable = {field.place: field.text for field in guide.fields(row) if field.editable}
    if not corrections or all(editable.get(place) == text for place, text in corrections.items()):
        raise SpecError("the correction changes nothing; change a text, or accept the row.")
    for place, text in corrections.items():
        if place not in editable:
            raise SpecError(f"{place!r} of {str(row['id'])[:80]!r} cannot be corrected; reject the row instead.")
        if not text.strip() or len(text) > LONGEST_CORRECTION or "\0" in text or not is_unicode(text):
            raise SpecError(
                f"the correction of {place!r} is empty, longer than {LONGEST_CORRECTION:,} characters or not Unicode text; "
                "change it, or reject the row."
            )


def media_of(value: Any) -> Iterator[Media]:
    """Yield the media that a row names, at any depth, each once."""
    seen: set[str] = set()
    for media in _media(value):
        if media.name not in seen:
            seen.add(media.name)
            yield media


def text_at(row: Row, place: str) -> str | None:
    """Return the text at a place of a row; None if there is none."""
    value: Any = row
    for key in place.split("."):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value if isinstance(value, str) else None


def _media(value: Any) -> Iterator[Media]:
    if isinstance(value, Mapping):
        if isinstance(value.get("sha256"), str) and isinstance(value.get("suffix"), str):
            part = part_from_json({key: value[key] for key in ("sha256", "suffix", "modality") if key in value})
            assert isinstance(part, Media)
            yield part
            return
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _media(item)


def _texts(value: Any, place: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if "sha256" not in value:
            for key, item in value.items():
                yield from _texts(item, (*place, str(key)))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _texts(item, (*place, str(number)))
    elif isinstance(value, str) and value:
        yield ".".join(place), value


def _put(value: Any, keys: Sequence[str], text: str) -> None:
    for key in keys[:-1]:
        value = value[int(key)] if isinstance(value, list) else value[key]
    if isinstance(value, list):
        value[int(keys[-1])] = text
    else:
        value[keys[-1]] = text
