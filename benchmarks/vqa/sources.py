"""The published questions of OK-VQA and GQA."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import SourceError
from benchmarks.rows.files import SkippedRow
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file
from benchmarks.vqa.constants import ANSWERS

OKVQA_QUESTIONS = "OpenEnded_mscoco_val2014_questions.json"
OKVQA_ANNOTATIONS = "mscoco_val2014_annotations.json"
OKVQA_LAYOUT = (
    f"a folder with {OKVQA_QUESTIONS} and {OKVQA_ANNOTATIONS}, and COCO's val2014 images beside them, in val2014/, or in a "
    "folder of their own (--source images=FOLDER)"
)
GQA_QUESTIONS = ("testdev_balanced_questions.json", "val_balanced_questions.json")
GQA_LAYOUT = (
    f"a folder with {GQA_QUESTIONS[0]}, and GQA's images in images/ beside it, or in a folder of their own "
    "(--source images=FOLDER)"
)

NOT_A_ROW = "the entry is not a question: it needs an image, a question and an answer"
NO_ANNOTATION = "the question has no annotation"
OTHER_ANSWERS = f"the annotation does not have {ANSWERS} answers"

_LONGEST = 500
_GQA_IMAGE = re.compile(r"[A-Za-z0-9_]{1,40}")
_LARGEST_ID = 10**12


@dataclass(frozen=True, slots=True)
class VqaQuestion:
    """A question: ``images`` are the possible names of its image, ``group`` identifies the image."""

    row: str
    key: str
    group: str
    images: tuple[str, ...]
    question: str
    answers: tuple[str, ...]
    type: str


ReadSource = Callable[[Path], Iterator[VqaQuestion | SkippedRow]]


def read_okvqa(folder: Path) -> Iterator[VqaQuestion | SkippedRow]:
    """Yield the questions of OK-VQA's validation set in ``folder``.

    Raises SourceError if a file is not there or not of its layout.
    """
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


def read_gqa(folder: Path) -> Iterator[VqaQuestion | SkippedRow]:
    """Yield the questions of GQA in ``folder``. Raises SourceError if there is no file of its layout."""
    file = next((folder / name for name in GQA_QUESTIONS if (folder / name).is_file()), folder / GQA_QUESTIONS[0])
    for key, item in _content(file, GQA_LAYOUT).items():
        row = f"{file.name}:{key[:40]}"
        fields = item if isinstance(item, dict) else {}
        question, answer, image = (_text(fields.get(name)) for name in ("question", "answer", "imageId"))
        if not question or not answer or not _GQA_IMAGE.fullmatch(image):
            yield SkippedRow("gqa", row, NOT_A_ROW)
            continue
        types = fields.get("types")
        kind = _text(types.get("structural")) if isinstance(types, dict) else ""
        yield VqaQuestion(row, key[:80], image, (f"{image}.jpg",), question, (answer,), kind or "other")


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
