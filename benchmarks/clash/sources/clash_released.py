"""The published samples, with their COCO images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.sources.clash_source_row import ClashSourceRow, image_folders, parse_sample
from benchmarks.errors import SourceError
from benchmarks.rows.files import RawRow, SkippedRow, image_loader, list_files, list_folders
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import existing_path, layout_error
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file

TEST_FILE = "synthetic_captions_test_filtered.json"
FILTERED_FILE, UNFILTERED_FILE = "filtered_data_finetune.json", "merged_data_finetune.json"
"""The fine-tuning files of the authors' repository: 18,097 filtered samples, and 31,676 with those that filters removed."""

LAYOUT = (
    f"a folder with {TEST_FILE} and COCO's images (in it, in train2017/ or val2017/), or such a JSON file beside them, as "
    f"{FILTERED_FILE}"
)

_NAME = "published"
_PREFIX = "synthetic_captions"  # of what the authors' script writes
_LARGEST_ID = 10**12


def read(place: str, seed: int = 0) -> Iterator[ClashSourceRow | SkippedRow]:
    """Yield the samples of the test file, or of a named file with its layout. Raises SourceError.

    The unfiltered file is read as the paper trains on it: with the rows that a check would remove.
    """
    root = existing_path(_NAME, place, LAYOUT)
    file, unfiltered = _file_at(root), is_unfiltered(place)
    raw_rows = read_raw_samples(file)
    if raw_rows is None:
        raise layout_error(_NAME, file, LAYOUT)
    roots = (root.parent, root.parent.parent) if root.is_file() else (root,)
    places = tuple(dict.fromkeys(folder for folder in roots for folder in image_folders(folder)))
    for number, raw in enumerate(raw_rows, 1):
        where = f"{file.name}:{number}"
        try:
            sample = parse_published_sample(raw, unfiltered=unfiltered)
            loader = image_loader(RawRow(where, {"image": f"{int(sample.image_id):012d}.jpg"}, places), "image")
        except RowProblem as problem:
            yield SkippedRow(_NAME, where, str(problem))
            continue
        yield ClashSourceRow(where, sample, loader)


def is_unfiltered(place: str) -> bool:
    """Return whether a source's place is the file with the samples that filters removed. Raises SourceError."""
    return _file_at(existing_path(_NAME, place, LAYOUT)).name == UNFILTERED_FILE


def read_raw_samples(file: Path) -> list[Any] | None:
    """Return the raw rows of a file of the published layout, ``{"samples": [...]}``; None for any other file."""
    try:
        content = read_json_file(file, MAX_SOURCE_BYTES)
    except (OSError, OutsideJSONError):
        return None
    rows = content.get("samples") if isinstance(content, dict) else None
    return rows if isinstance(rows, list) else None


def parse_published_sample(raw: Any, *, unfiltered: bool = False) -> ClashSample:
    """Parse a published row, without its image; for ``unfiltered`` see :func:`parse_sample`. Raises RowProblem."""
    if not isinstance(raw, Mapping):
        raise RowProblem("the row is not a JSON object")
    answers, words = _nested(raw, "answers"), _nested(raw, "changed_words")
    fields = {
        "image_id": parse_image_id(raw.get("image_id")),
        **{name: raw.get(name) for name in ("original_caption", "conflicting_caption", "question", "change_type")},
        "image_only": answers.get("image_only"),
        "text_only": answers.get("text_only"),
        "distractor": answers.get("irrelevant_but_plausible"),
        "changed_original": words.get("original"),
        "changed_conflicting": words.get("conflicting"),
        "published_category": raw.get("category"),
    }
    return parse_sample(fields, _NAME, unfiltered=unfiltered)


def parse_image_id(value: Any) -> str:
    """Return a COCO image id as text. Raises RowProblem for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST_ID:
        raise RowProblem("the image id is not a COCO image id, a whole number")
    return str(value)


def _nested(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, Mapping) else {}


def _file_at(root: Path) -> Path:
    """Return the file of samples at a path: the file itself, a folder's test file, or the only other one."""
    if root.is_file():
        return root
    folders = (root, *list_folders(root))
    for folder in folders:
        if (folder / TEST_FILE).is_file():
            return folder / TEST_FILE
    others = {file.name: file for folder in folders for file in list_files(folder, ".json") if _is_known(file.name)}
    if len(others) > 1:
        raise SourceError(f"{root} holds {' and '.join(sorted(others))}; name one of these files, as in {_NAME}=FILE.")
    if not others:
        raise layout_error(_NAME, root, LAYOUT)
    return next(iter(others.values()))


def _is_known(file: str) -> bool:
    return file in (FILTERED_FILE, UNFILTERED_FILE) or file.startswith(_PREFIX)
