"""The shared types of the sources: a source row, its parser, and the folders of COCO images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clash.clash_categories import join_categories, shared_categories
from benchmarks.clash.clash_constants import CHANGE_TYPES, RELATIONS
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.rows.files import Loader, SkippedRow, list_folders
from benchmarks.rows.reader_types import NOT_UNICODE, RowProblem, is_unicode
from benchmarks.text.normal_form import normalise

CONSTRUCTED = ("coco", "spatial")
SOURCE_NAMES = ("published", "sugar-crepe", "coco", "spatial", "rows")

LONGEST_SENTENCE = 2_000
"""The maximum characters of a caption or question; COCO's longest have about 250."""

LONGEST_ANSWER = 200
"""The maximum characters of an answer or changed word; the published ones have at most 19."""

_SENTENCES = ("original_caption", "conflicting_caption", "question")
_ANSWERS = ("image_only", "text_only", "distractor")
_WORDS = ("changed_original", "changed_conflicting")
_CHECKS = {
    "text_only": "text-answer",
    "distractor": "distractor",
    "changed_original": "original-word",
    "changed_conflicting": "conflicting-word",
}
"""The fields that a training does not need, with the check that a row without one fails."""

_FAULTS = {
    "one-change": "the two captions are the same",
    "distinct-answers": "two of the three answers are the same",
}
_COCO_FOLDERS = ("train2017", "val2017")


@dataclass(frozen=True, slots=True)
class ClashSourceRow:
    """A sample of a source: ``row`` is its place in the source, ``image`` returns its image's bytes."""

    row: str
    sample: ClashSample
    image: Loader


Reader = Callable[[str, int], Iterator[ClashSourceRow | SkippedRow]]


def image_folders(root: Path) -> tuple[Path, ...]:
    """Return the folders that may hold COCO images: ``root``, its sub-folders, and train2017/, val2017/ in them."""
    parents = [root, *(folder for folder in list_folders(root) if folder.name not in _COCO_FOLDERS)]
    candidates = [place for folder in parents for place in (folder, *(folder / name for name in _COCO_FOLDERS))]
    return tuple(place for place in candidates if place.is_dir())


def parse_sample(fields: Mapping[str, Any], source: str, *, unfiltered: bool = False) -> ClashSample:
    """Parse ``fields``, named as ClashSample's are, into a sample with its category and without its image.

    With ``unfiltered``, a row that can be trained on although a check of section 3.3 would remove it is a sample too, whose
    ``rejected`` is the check. Raises RowProblem, with one of a fixed set of sentences, for any other unusable row.
    """
    values = {name: _text(fields.get(name), name, LONGEST_SENTENCE) for name in _SENTENCES}
    rejected = ""
    for name in (*_ANSWERS, *_WORDS, "image_id"):
        if unfiltered and name in _CHECKS and not fields.get(name):
            values[name], rejected = "", rejected or _CHECKS[name]
        else:
            values[name] = _text(fields.get(name), name, LONGEST_ANSWER)
    change_type, relation = fields.get("change_type"), fields.get("relation") or ""
    if change_type not in CHANGE_TYPES:
        raise RowProblem(f"the change type is not one of {', '.join(CHANGE_TYPES)}")
    if (relation not in RELATIONS) if change_type == "spatial" else relation:
        raise RowProblem(f"the relation is not one of {', '.join(RELATIONS)}, or the change is not spatial")
    answers = [normalise(values[name]) for name in _ANSWERS if values[name]]
    faults = {
        "one-change": _folded(values["original_caption"]) == _folded(values["conflicting_caption"]),
        "distinct-answers": len(set(answers)) < len(answers),
    }
    for check in (check for check, is_faulty in faults.items() if is_faulty):
        if not unfiltered:
            raise RowProblem(_FAULTS[check])
        rejected = rejected or check
    names = shared_categories(change_type, values["changed_original"], values["changed_conflicting"])
    return ClashSample(
        image=None,
        change_type=change_type,
        relation=relation,
        category=join_categories(names, change_type),
        source=source,
        published_category=_published(fields.get("published_category"), change_type),
        rejected=rejected,
        **values,
    )


def _text(value: Any, name: str, longest: int) -> str:
    label = name.replace("_", " ")
    if not isinstance(value, str) or not value.strip():
        raise RowProblem(f"the row has no {label}")
    if len(value) > longest:
        raise RowProblem(f"the {label} is longer than {longest} characters")
    if len(value.strip().splitlines()) > 1:
        raise RowProblem(f"the {label} has more than one line")
    if not is_unicode(value):
        raise RowProblem(NOT_UNICODE)
    return value


def _published(value: Any, change_type: str) -> str | None:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and 0 < len(n) <= 40 for n in names):
        return None
    return join_categories(names, change_type)


def _folded(caption: str) -> str:
    return " ".join(caption.casefold().split())
