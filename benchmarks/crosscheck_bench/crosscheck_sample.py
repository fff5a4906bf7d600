"""Sample: a question about one or more pictures of a product, with its answer and the boxes that can be drawn.

The data set is announced but not published, so its layout is unknown. This layout is Rashomon's own, derived from
Appendices B, C and G and from the announcement in the authors' repository. ``sample.schema.json`` is the JSON Schema of
a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS, TASKS
from benchmarks.rows.reader_types import RowProblem
from benchmarks.text.normal_form import normalise
from benchmarks.values import compare
from benchmarks.vocabulary import Mark, Media, digest, part_from_json, part_to_json

IMAGE_PLACEHOLDER = "<image>"
"""The placeholder of the next picture in a question, as in Figure 8."""

OPTION_PLACEHOLDER = "<option>"
"""The placeholder of the next option in a question whose wording goes on after its options, as most of Figure 8 does."""

MAX_TEXT_LENGTH = 8_000
"""The most characters of a question, a text or a reasoning."""

MAX_SHORT_TEXT_LENGTH = 500
"""The most characters of an answer, an option, a label, a name or an id."""

MAX_FRAMES = 32
MAX_BOXES = 64
"""The most boxes of a picture; ``MAX_FRAMES`` is the most pictures of a row."""

_FIELDS = ("task", "question", "text", "answer", "product", "conflict_type", "reasoning", "row_id", "source")


@dataclass(frozen=True, slots=True)
class CrossCheckSample:
    """One row.

    ``task`` is a key of ``TASKS``. ``frames`` are the pictures in order: a product's image, two images to compare, or
    the frames of a video slice. ``question`` may hold one ``<image>`` placeholder per frame and one ``<option>`` placeholder
    per option. ``text`` is displayed with the frames (a title, a description).
    ``options`` are displayed as A, B, ...; ``answer`` is then a letter, otherwise
    Yes or No, or a text. ``boxes`` holds, for each frame, the marks that set-of-mark draws; a ``box`` is x0, y0, x1, y1
    in pixels of the upright picture, whose width and height are in ``sizes``. ``product`` names the product,
    ``conflict_type`` the contradiction that was introduced ("" for none), ``reasoning`` an optional written solution,
    ``row_id`` the row's id in its source, and ``source`` the source's name.
    """

    task: str
    question: str
    answer: str
    frames: tuple[Media, ...] = ()
    text: str = ""
    options: tuple[str, ...] = ()
    boxes: tuple[tuple[Mark, ...], ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    product: str = ""
    conflict_type: str = ""
    reasoning: str = ""
    row_id: str = ""
    source: str = "rows"

    @property
    def id(self) -> str:
        """An id derived from the question and its pictures: the same on every machine, and equal for a repeated row."""
        content = [self.task, self.question, self.text, list(self.options), [frame.sha256 for frame in self.frames]]
        return f"crosscheck-{digest(content)[:16]}"

    @property
    def closed(self) -> bool:
        """True if exact match decides: the question has options, or its answer is yes or no."""
        return bool(self.options) or self.answer.strip().casefold() in ("yes", "no")

    @property
    def level(self) -> str:
        """L1, L2 or L3."""
        return TASKS[self.task].level

    def to_row(self) -> dict[str, Any]:
        """Return the sample as a row of a build; the inverse of :meth:`from_row`."""
        row: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        row["frames"] = [part_to_json(frame) for frame in self.frames]
        row["options"] = list(self.options)
        row["boxes"] = [[{"label": mark.label, "box": list(mark.box)} for mark in marks] for marks in self.boxes]
        row["sizes"] = [list(size) for size in self.sizes]
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> CrossCheckSample:
        """Return the sample of a row that :meth:`to_row` wrote."""
        frames = [part_from_json(frame) for frame in row["frames"]]
        return cls(
            frames=tuple(frame for frame in frames if isinstance(frame, Media)),
            options=tuple(row["options"]),
            boxes=tuple(tuple(Mark(mark["label"], tuple(mark["box"])) for mark in marks) for marks in row["boxes"]),
            sizes=tuple((width, height) for width, height in row["sizes"]),
            **{name: row[name] for name in _FIELDS},
        )


def parse_sample(fields: Mapping[str, Any], frames: int, source: str = "rows") -> CrossCheckSample:
    """Return the sample in a row of the JSON layout, without its pictures; the row names ``frames`` of them.

    Raises RowProblem for a row that cannot become a question.
    """
    task = fields.get("task")
    if not isinstance(task, str) or task not in TASKS:
        raise RowProblem(f"the task is not one of {', '.join(TASKS)}")
    question = _text(fields, "question", MAX_TEXT_LENGTH)
    if not 1 <= frames <= MAX_FRAMES:
        raise RowProblem(f"the row has no frames, or more than {MAX_FRAMES}")
    if IMAGE_PLACEHOLDER in question and question.count(IMAGE_PLACEHOLDER) != frames:
        raise RowProblem(f"the question has {IMAGE_PLACEHOLDER} more or less often than the row has frames")
    options = _options(fields.get("options"))
    if OPTION_PLACEHOLDER in question and question.count(OPTION_PLACEHOLDER) != len(options):
        raise RowProblem(f"the question has {OPTION_PLACEHOLDER} more or less often than the row has options")
    answer = _text(fields, "answer", MAX_SHORT_TEXT_LENGTH).strip()
    if options and answer not in LETTERS[: len(options)]:
        raise RowProblem("the answer is not the letter of one of the options")
    parsed = CrossCheckSample(
        task=task,
        question=question,
        answer=answer,
        text=_text(fields, "text", MAX_TEXT_LENGTH, needed=False),
        options=options,
        boxes=_boxes(fields.get("boxes"), frames),
        product=_text(fields, "product", MAX_SHORT_TEXT_LENGTH, needed=False),
        conflict_type=_text(fields, "conflict_type", MAX_SHORT_TEXT_LENGTH, needed=False),
        reasoning=_text(fields, "reasoning", MAX_TEXT_LENGTH, needed=False),
        row_id=_text(fields, "id", MAX_SHORT_TEXT_LENGTH, needed=False),
        source=source,
    )
    if _label_gives_answer(parsed):
        raise RowProblem("the label of a box gives the answer away")
    return parsed


def with_frames(sample: CrossCheckSample, frames: Sequence[tuple[Media, tuple[int, int]]]) -> CrossCheckSample:
    """Return the sample with its pictures, each with its width and height when upright.

    Raises RowProblem if a box is not within its picture.
    """
    sizes = tuple(size for _, size in frames)
    check_boxes(sample, sizes)
    return replace(sample, frames=tuple(frame for frame, _ in frames), sizes=sizes)


def check_boxes(sample: CrossCheckSample, sizes: Sequence[tuple[int, int]]) -> None:
    """Raise RowProblem if a box exceeds its picture, whose width and height are in ``sizes``."""
    for marks, (width, height) in zip(sample.boxes, sizes, strict=False):
        if any(mark.box[2] > width or mark.box[3] > height for mark in marks):
            raise RowProblem("a box is not within its picture")


def _label_gives_answer(sample: CrossCheckSample) -> bool:
    """Return whether a box's label contains the answer to a question other than yes or no."""
    if sample.closed and not sample.options:
        return False
    answer = sample.options[LETTERS.index(sample.answer)] if sample.options else sample.answer
    words = f" {normalise(answer)} "
    return any(words in f" {normalise(mark.label)} " for marks in sample.boxes for mark in marks)


def _text(fields: Mapping[str, Any], name: str, longest: int, *, needed: bool = True) -> str:
    label, value = name.replace("_", " "), fields.get(name)
    if value is None and not needed:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or (needed and not value.strip()):
        raise RowProblem(f"the row has no {label}" if needed else f"the {label} is not text")
    return _check_length(value, label, longest)


def _check_length(value: str, label: str, longest: int) -> str:
    if len(value) > longest:
        raise RowProblem(f"the {label} is longer than {longest} characters")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowProblem("the text is not valid Unicode") from error
    return value


def _options(value: Any) -> tuple[str, ...]:
    if value is None or value == []:
        return ()
    if not isinstance(value, list) or not all(isinstance(option, str) and option.strip() for option in value):
        raise RowProblem("the options are not a list of texts")
    if not 2 <= len(value) <= len(LETTERS):
        raise RowProblem(f"the row has 1 option, or more than {len(LETTERS)}")
    if any(len(option.splitlines()) > 1 for option in value):
        raise RowProblem("an option has more than one line")
    if any(compare(option, other).verdict == "same" for option, other in combinations(value, 2)):
        raise RowProblem("two of the options are the same")
    return tuple(_check_length(option, "option", MAX_SHORT_TEXT_LENGTH) for option in value)


def _boxes(value: Any, frames: int) -> tuple[tuple[Mark, ...], ...]:
    """Return the marks of each frame; () if the row has none at all."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) != frames or not all(isinstance(boxes, list) for boxes in value):
        raise RowProblem("the boxes are not one list for each frame")
    if any(len(boxes) > MAX_BOXES for boxes in value):
        raise RowProblem(f"a picture has more than {MAX_BOXES} boxes")
    marks = tuple(tuple(_mark(box) for box in boxes) for boxes in value)
    return marks if any(marks) else ()


def _mark(value: Any) -> Mark:
    if not isinstance(value, dict) or not isinstance(value.get("label"), str) or not value["label"].strip():
        raise RowProblem("a box has no label")
    box = value.get("box")
    if (
        not isinstance(box, list)
        or len(box) != 4
        or not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in box)
    ):
        raise RowProblem("a box is not four numbers")
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 < 1e9 and 0 <= y0 < y1 < 1e9):
        raise RowProblem("a box has no area, or begins outside its picture")
    return Mark(_check_length(" ".join(value["label"].split()), "label", MAX_SHORT_TEXT_LENGTH), (x0, y0, x1, y1))
