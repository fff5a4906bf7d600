"""Where samples come from that no model constructs: which source, which layout, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clash.categories import categories, joined
from benchmarks.clash.constants import CHANGE_TYPES, RELATIONS
from benchmarks.clash.sample import ClashSample
from benchmarks.rows.files import Loader, RowProblem, SkippedRow, folders
from benchmarks.text.answer_equality import normalise

CONSTRUCTED = ("coco", "spatial")
NAMES = ("published", "sugar-crepe", "coco", "spatial", "rows")

LONGEST_SENTENCE = 2_000
"""Characters a caption or a question may have; COCO's longest have some 250."""

LONGEST_ANSWER = 200
"""Characters an answer or a changed word may have; the published ones have at most 19."""

_SENTENCES = ("original_caption", "conflicting_caption", "question")
_ANSWERS = ("image_only", "text_only", "distractor")
_WORDS = ("changed_original", "changed_conflicting")
_COCO_FOLDERS = ("train2017", "val2017")


@dataclass(frozen=True, slots=True)
class ClashSourceRow:
    """A sample as a source has it: ``row`` is where a person finds it, ``image`` gives its picture's bytes."""

    row: str
    sample: ClashSample
    image: Loader


Reader = Callable[[str, int], Iterator[ClashSourceRow | SkippedRow]]


def read(name: str, place: str, seed: int) -> Iterator[ClashSourceRow | SkippedRow]:
    """The samples of source ``name``, one of those that are read, not constructed, in folder or file ``place``.

    ``seed`` decides what a source leaves open. Raises SourceError where it is not there or of no known layout.
    """
    from benchmarks.clash.sources import own_rows, released, sugar_crepe

    readers: Mapping[str, Reader] = {
        "published": released.read,
        "sugar-crepe": sugar_crepe.read,
        "rows": own_rows.read,
    }
    return readers[name](place, seed)


def image_folders(root: Path) -> tuple[Path, ...]:
    """Where COCO images may lie: in ``root`` or one of its folders, there also in train2017/ and val2017/."""
    near = [root, *(folder for folder in folders(root) if folder.name not in _COCO_FOLDERS)]
    every = [place for each in near for place in (each, *(each / name for name in _COCO_FOLDERS))]
    return tuple(place for place in every if place.is_dir())


def sample(fields: Mapping[str, Any], source: str) -> ClashSample:
    """The sample that ``fields``, named as Sample's are, hold; its category is found here, its image is None.

    Raises RowProblem, with one of a few sentences, for what cannot be asked.
    """
    made = {name: _text(fields.get(name), name, LONGEST_SENTENCE) for name in _SENTENCES}
    made |= {name: _text(fields.get(name), name, LONGEST_ANSWER) for name in (*_ANSWERS, *_WORDS, "image_id")}
    change_type, relation = fields.get("change_type"), fields.get("relation") or ""
    if change_type not in CHANGE_TYPES:
        raise RowProblem(f"the change type is not one of {', '.join(CHANGE_TYPES)}")
    if (relation not in RELATIONS) if change_type == "spatial" else relation:
        raise RowProblem(f"the relation is not one of {', '.join(RELATIONS)}, or the change is not spatial")
    if _folded(made["original_caption"]) == _folded(made["conflicting_caption"]):
        raise RowProblem("the two captions are the same")
    if len({normalise(made[name]) for name in _ANSWERS}) < len(_ANSWERS):
        raise RowProblem("two of the three answers are the same")
    found = categories(change_type, made["changed_original"], made["changed_conflicting"])
    return ClashSample(
        image=None,
        change_type=change_type,
        relation=relation,
        category=joined(found, change_type),
        source=source,
        published_category=_published(fields.get("published_category"), change_type),
        **made,
    )


def _text(value: Any, name: str, longest: int) -> str:
    shown = name.replace("_", " ")
    if not isinstance(value, str) or not value.strip():
        raise RowProblem(f"the row has no {shown}")
    if len(value) > longest:
        raise RowProblem(f"the {shown} is longer than {longest} characters")
    if len(value.strip().splitlines()) > 1:
        raise RowProblem(f"the {shown} has more than one line")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowProblem("the text is not valid Unicode") from error
    return value


def _published(value: Any, change_type: str) -> str | None:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and 0 < len(n) <= 40 for n in names):
        return None
    return joined(names, change_type)


def _folded(caption: str) -> str:
    return " ".join(caption.casefold().split())
