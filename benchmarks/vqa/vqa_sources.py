"""The published questions of OK-VQA and GQA, in their own layouts and in those of the Hub's copies by lmms-lab."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.errors import MediaError, SourceError
from benchmarks.rows.files import RawRow, SkippedRow, image_loader, list_files, read_rows, text_field
from benchmarks.rows.reader_types import RowProblem
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file
from benchmarks.vqa.vqa_constants import ANSWERS

OKVQA_QUESTIONS = "OpenEnded_mscoco_val2014_questions.json"
OKVQA_ANNOTATIONS = "mscoco_val2014_annotations.json"
OKVQA_LAYOUT = (
    f"a folder with {OKVQA_QUESTIONS} and {OKVQA_ANNOTATIONS}, and COCO's val2014 images beside them, in val2014/, or in a "
    "folder of their own (--source images=FOLDER); or the Hub's copy, data/val2014-*.parquet"
)
GQA_QUESTIONS = ("testdev_balanced_questions.json", "val_balanced_questions.json")
GQA_LAYOUT = (
    f"a folder with {GQA_QUESTIONS[0]}, and GQA's images in images/ beside it, or in a folder of their own "
    "(--source images=FOLDER); or the Hub's copy, testdev_balanced_instructions/*.parquet and "
    "testdev_balanced_images/*.parquet"
)

NOT_A_ROW = "the entry is not a question: it needs an image, a question and an answer"
NO_ANNOTATION = "the question has no annotation"
OTHER_ANSWERS = f"the annotation does not have {ANSWERS} answers"

_GQA_COPY = ("testdev_balanced_instructions", "testdev_balanced_images")
"""The folders of questions and of images in the Hub's copy of GQA."""

_LONGEST = 500
_GQA_IMAGE = re.compile(r"[A-Za-z0-9_]{1,40}")
_LARGEST_ID = 10**12


@dataclass(frozen=True, slots=True)
class VqaQuestion:
    """A question: ``images`` are the possible names of its image, ``group`` identifies the image.

    ``image`` is the image itself if its row contains it.
    """

    row: str
    key: str
    group: str
    images: tuple[str, ...]
    question: str
    answers: tuple[str, ...]
    type: str
    image: bytes | None = None


ReadSource = Callable[[Path], Iterator[VqaQuestion | SkippedRow]]


def read_okvqa(folder: Path) -> Iterator[VqaQuestion | SkippedRow]:
    """Yield the questions of OK-VQA's validation set in ``folder``.

    Raises SourceError if a file is not there or not of its layout.
    """
    if not (folder / OKVQA_QUESTIONS).exists():
        copies = [
            file
            for place in (folder, folder / "data")
            for file in list_files(place, ".parquet")
            if file.name.startswith("val2014-")
        ]
        if copies:
            yield from _okvqa_copy(folder, copies)
            return
    questions = _content(folder / OKVQA_QUESTIONS, OKVQA_LAYOUT).get("questions")
    annotated = _content(folder / OKVQA_ANNOTATIONS, OKVQA_LAYOUT)
    annotations, names = annotated.get("annotations"), annotated.get("question_types")
    if not isinstance(questions, list) or not isinstance(annotations, list):
        raise SourceError(f"{folder} has no questions of OK-VQA; expected {OKVQA_LAYOUT}.")
    by_id = {
        item.get("question_id"): item
        for item in annotations
        if isinstance(item, dict) and _is_id(item.get("question_id"))
    }
    types = names if isinstance(names, dict) else {}
    for number, item in enumerate(questions, 1):
        row = f"{OKVQA_QUESTIONS}:{number}"
        fields = item if isinstance(item, dict) else {}
        question, image, key = _text(fields.get("question")), fields.get("image_id"), fields.get("question_id")
        if not question or not _is_id(image) or not _is_id(key):
            yield SkippedRow("okvqa", row, NOT_A_ROW)
            continue
        annotation = by_id.get(key)
        if annotation is None:
            yield SkippedRow("okvqa", row, NO_ANNOTATION)
            continue
        answers = _answers(annotation.get("answers"))
        if len(answers) != ANSWERS:
            yield SkippedRow("okvqa", row, OTHER_ANSWERS)
            continue
        kind = _text(types.get(str(annotation.get("question_type")))) or "other"
        images = (f"COCO_val2014_{image:012d}.jpg", f"{image:012d}.jpg")
        yield VqaQuestion(row, str(key), str(image), images, question, answers, kind)


def _okvqa_copy(folder: Path, files: Sequence[Path]) -> Iterator[VqaQuestion | SkippedRow]:
    """Yield the questions of ``lmms-lab/OK-VQA``, whose rows have no image id: the image's bytes identify it."""
    for file in files:
        for row in read_rows(file, folder, "okvqa"):
            if isinstance(row, SkippedRow):
                yield row
                continue
            question, key = _text(row.fields.get("question")), text_field(row.fields, "question_id")
            if not question:
                yield SkippedRow("okvqa", row.where, NOT_A_ROW)
                continue
            answers = row.fields.get("answers")
            people = tuple(_text(answer) for answer in answers) if isinstance(answers, list) else ()
            if len(people) != ANSWERS or not all(people):
                yield SkippedRow("okvqa", row.where, OTHER_ANSWERS)
                continue
            image = _image_of(row)
            if isinstance(image, str):
                yield SkippedRow("okvqa", row.where, image)
                continue
            group, kind = hashlib.sha256(image).hexdigest()[:16], _text(row.fields.get("question_type")) or "other"
            yield VqaQuestion(row.where, key[:80], group, (), question, people, kind, image)


def read_gqa(folder: Path) -> Iterator[VqaQuestion | SkippedRow]:
    """Yield the questions of GQA in ``folder``. Raises SourceError if there is no file of its layout."""
    file = next((folder / name for name in GQA_QUESTIONS if (folder / name).is_file()), folder / GQA_QUESTIONS[0])
    if not file.exists() and (copies := list_files(folder / _GQA_COPY[0], ".parquet")):
        yield from _gqa_copy(folder, copies)
        return
    for key, item in _content(file, GQA_LAYOUT).items():
        yield _gqa_question(f"{file.name}:{key[:40]}", key, item if isinstance(item, dict) else {})


def _gqa_question(row: str, key: str, fields: Mapping[str, Any]) -> VqaQuestion | SkippedRow:
    question, answer, image = (_text(fields.get(name)) for name in ("question", "answer", "imageId"))
    if not question or not answer or not _GQA_IMAGE.fullmatch(image):
        return SkippedRow("gqa", row, NOT_A_ROW)
    types = fields.get("types")
    kind = _text(types.get("structural")) if isinstance(types, dict) else ""
    return VqaQuestion(row, key[:80], image, (f"{image}.jpg",), question, (answer,), kind or "other")


def _gqa_copy(folder: Path, files: Sequence[Path]) -> Iterator[VqaQuestion | SkippedRow]:
    """Yield the questions of ``lmms-lab/GQA`` image by image, since its images are in other files than its questions."""
    waiting: dict[str, list[VqaQuestion]] = {}
    for file in files:
        for row in read_rows(file, folder, "gqa"):
            item = (
                _gqa_question(row.where, text_field(row.fields, "id"), row.fields) if isinstance(row, RawRow) else row
            )
            if isinstance(item, VqaQuestion):
                waiting.setdefault(item.group, []).append(item)
            else:
                yield item
    for file in list_files(folder / _GQA_COPY[1], ".parquet"):
        for row in read_rows(file, folder, "gqa"):
            if isinstance(row, SkippedRow):
                yield row
                continue
            image = _image_of(row)
            for question in waiting.pop(text_field(row.fields, "id"), ()):
                if isinstance(image, str):
                    yield SkippedRow("gqa", question.row, image)
                else:
                    yield replace(question, image=image)
    for questions in waiting.values():
        yield from questions


def _image_of(row: RawRow) -> bytes | str:
    """Return the image of a row of the Hub, or the reason why there is none."""
    try:
        return image_loader(row, "image")()
    except RowProblem as problem:
        return str(problem)
    except MediaError as error:
        return f"the image {error.reason}"


def _content(file: Path, layout: str) -> dict[str, Any]:
    try:
        content = read_json_file(file, MAX_SOURCE_BYTES)
    except FileNotFoundError as error:
        raise SourceError(f"{file} is not there; expected {layout}.") from error
    except (OSError, OutsideJSONError) as error:
        raise SourceError(f"{file} cannot be read as JSON; expected {layout}.") from error
    if not isinstance(content, dict):
        raise SourceError(f"{file} is not of the published layout; expected {layout}.")
    return content


def _answers(value: Any) -> tuple[str, ...]:
    """Return the people's answers; () if one of them is no text."""
    answers = (
        [_text(item.get("answer")) if isinstance(item, dict) else "" for item in value]
        if isinstance(value, list)
        else []
    )
    return tuple(answers) if all(answers) else ()


def _text(value: Any) -> str:
    """Return a text of one line, or "" for anything else."""
    text = value.strip() if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST and text.isprintable() else ""


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_ID
