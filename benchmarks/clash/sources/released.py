"""The published samples, with the COCO images that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.clash.sample import ClashSample
from benchmarks.clash.sources import ClashSourceRow, image_folders, sample
from benchmarks.rows.files import RawRow, RowProblem, SkippedRow, files, folders, image_loader
from benchmarks.rows.sources import folder_of, wrong_layout
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file

TEST_FILE = "synthetic_captions_test_filtered.json"
LAYOUT = (
    f"a folder with {TEST_FILE} and COCO's images (in it, in train2017/ or val2017/), or such a JSON file beside them"
)

_NAME = "published"
_PREFIX = "synthetic_captions"
_LARGEST_ID = 10**12


def read(place: str, seed: int = 0) -> Iterator[ClashSourceRow | SkippedRow]:
    """The samples of the test file, or of another file of its layout that is given by name. Raises SourceError."""
    root = folder_of(_NAME, place, LAYOUT)
    file = root if root.is_file() else _file_in(root)
    every = raw_samples(file)
    if every is None:
        raise wrong_layout(_NAME, file, LAYOUT)
    around = (root.parent, root.parent.parent) if root.is_file() else (root,)
    places = tuple(dict.fromkeys(folder for each in around for folder in image_folders(each)))
    for number, raw in enumerate(every, 1):
        where = f"{file.name}:{number}"
        try:
            made = published_sample(raw)
            loader = image_loader(RawRow(where, {"image": f"{int(made.image_id):012d}.jpg"}, places), "image")
        except RowProblem as problem:
            yield SkippedRow(_NAME, where, str(problem))
            continue
        yield ClashSourceRow(where, made, loader)


def raw_samples(file: Path) -> list[Any] | None:
    """The rows of a file of the published layout, ``{"samples": [...]}``, as they stand; None where it is no such file."""
    try:
        whole = read_json_file(file, MAX_SOURCE_BYTES)
    except (OSError, OutsideJSONError):
        return None
    rows = whole.get("samples") if isinstance(whole, dict) else None
    return rows if isinstance(rows, list) else None


def published_sample(raw: Any) -> ClashSample:
    """The sample of a published row, without its image. Raises RowProblem."""
    if not isinstance(raw, Mapping):
        raise RowProblem("the row is not a JSON object")
    answers, words = _nested(raw, "answers"), _nested(raw, "changed_words")
    fields = {
        "image_id": image_id(raw.get("image_id")),
        **{name: raw.get(name) for name in ("original_caption", "conflicting_caption", "question", "change_type")},
        "image_only": answers.get("image_only"),
        "text_only": answers.get("text_only"),
        "distractor": answers.get("irrelevant_but_plausible"),
        "changed_original": words.get("original"),
        "changed_conflicting": words.get("conflicting"),
        "published_category": raw.get("category"),
    }
    return sample(fields, _NAME)


def image_id(value: Any) -> str:
    """A COCO image id as text. Raises RowProblem where it is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST_ID:
        raise RowProblem("the image id is not a COCO image id, a whole number")
    return str(value)


def _nested(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, Mapping) else {}


def _file_in(root: Path) -> Path:
    for folder in (root, *folders(root)):
        if (folder / TEST_FILE).is_file():
            return folder / TEST_FILE
    others = [file for file in files(root, ".json") if file.name.startswith(_PREFIX)]
    if len(others) == 1:
        return others[0]
    raise wrong_layout(_NAME, root, LAYOUT)
