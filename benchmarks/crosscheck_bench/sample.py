"""Sample: one question about one or several pictures of a product, with its answer and the boxes that can be drawn.

The data set is announced and not published, so that its layout is not known: this one is Rashomon's, made of what
Appendices B, C and G show and the authors' repository announces. ``sample.schema.json`` is the JSON Schema of a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.base import Mark, Media, digest, part_from_json, part_to_json
from benchmarks.crosscheck_bench.constants import LETTERS, TASKS
from benchmarks.rows.files import RowProblem
from benchmarks.text.answer_equality import normalise

PLACE = "<image>"
"""Where in a question the next picture stands, as in Figure 8."""

LONGEST_TEXT = 8_000
"""Characters that a question, a text or a reasoning may have."""

LONGEST_WORDS = 500
"""Characters that an answer, an option, a label, a name or an id may have."""

MOST_FRAMES = 32
MOST_BOXES = 64
"""Pictures a row may have, and boxes a picture may have."""

_FIELDS = ("task", "question", "text", "answer", "product", "conflict_type", "reasoning", "row_id", "source")


@dataclass(frozen=True, slots=True)
class CrossCheckSample:
    """One row.

    ``task`` is a key of ``TASKS``. ``frames`` are the pictures in order: a product's image, two images to be compared, or the
    frames of a slice of video. ``question`` may say with ``<image>`` where each of them stands, for all of them or for
    none. ``text`` is what is shown with them (a title, a description). ``options`` are shown as A, B, ...; ``answer`` is then
    a letter, else Yes or No, else text. ``boxes`` has for each frame, in its order, the marks that set-of-mark draws; their
    ``box`` is x0, y0, x1, y1 in pixels of the upright picture, and ``sizes`` is its width and height. ``product`` says which
    product it is about, ``conflict_type`` which contradiction was put in ("" for none), ``reasoning`` is an optional written
    solution, ``row_id`` the id that the row had where it was read, ``source`` the name of the source.
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
        """Made from what is asked and about which pictures: the same on every machine, and equal for a row that is repeated."""
        asked = [self.task, self.question, self.text, list(self.options), [frame.sha256 for frame in self.frames]]
        return f"crosscheck-{digest(asked)[:16]}"

    @property
    def closed(self) -> bool:
        """Whether exact match decides: options, or an answer that is yes or no."""
        return bool(self.options) or self.answer.strip().casefold() in ("yes", "no")

    @property
    def level(self) -> str:
        """L1, L2 or L3."""
        return TASKS[self.task].level

    def to_row(self) -> dict[str, Any]:
        """The sample as a row of a build; the inverse of :meth:`from_row`."""
        row: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        row["frames"] = [part_to_json(frame) for frame in self.frames]
        row["options"] = list(self.options)
        row["boxes"] = [[{"label": mark.label, "box": list(mark.box)} for mark in marks] for marks in self.boxes]
        row["sizes"] = [list(size) for size in self.sizes]
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> CrossCheckSample:
        """The sample of a row that :meth:`to_row` made."""
        frames = [part_from_json(frame) for frame in row["frames"]]
        return cls(
            frames=tuple(frame for frame in frames if isinstance(frame, Media)),
            options=tuple(row["options"]),
            boxes=tuple(tuple(Mark(mark["label"], tuple(mark["box"])) for mark in marks) for marks in row["boxes"]),
            sizes=tuple((width, height) for width, height in row["sizes"]),
            **{name: row[name] for name in _FIELDS},
        )


def sample(fields: Mapping[str, Any], frames: int, source: str = "rows") -> CrossCheckSample:
    """The sample that a row of the JSON layout holds, still without its pictures, of which it names ``frames``.

    Raises RowProblem, with one of a few sentences, for what cannot be asked.
    """
    task = fields.get("task")
    if not isinstance(task, str) or task not in TASKS:
        raise RowProblem(f"the task is not one of {', '.join(TASKS)}")
    question = _text(fields, "question", LONGEST_TEXT)
    if not 1 <= frames <= MOST_FRAMES:
        raise RowProblem(f"the row has no frames, or more than {MOST_FRAMES}")
    if PLACE in question and question.count(PLACE) != frames:
        raise RowProblem(f"the question has {PLACE} more or less often than the row has frames")
    options = _options(fields.get("options"))
    answer = _text(fields, "answer", LONGEST_WORDS).strip()
    if options and answer not in LETTERS[: len(options)]:
        raise RowProblem("the answer is not the letter of one of the options")
    made = CrossCheckSample(
        task=task,
        question=question,
        answer=answer,
        text=_text(fields, "text", LONGEST_TEXT, needed=False),
        options=options,
        boxes=_boxes(fields.get("boxes"), frames),
        product=_text(fields, "product", LONGEST_WORDS, needed=False),
        conflict_type=_text(fields, "conflict_type", LONGEST_WORDS, needed=False),
        reasoning=_text(fields, "reasoning", LONGEST_TEXT, needed=False),
        row_id=_text(fields, "id", LONGEST_WORDS, needed=False),
        source=source,
    )
    if _told(made):
        raise RowProblem("the label of a box gives the answer away")
    return made


def with_frames(made: CrossCheckSample, frames: Sequence[tuple[Media, tuple[int, int]]]) -> CrossCheckSample:
    """The sample with its pictures, each given with its width and height as it stands upright.

    Raises RowProblem where a box is not within its picture.
    """
    sizes = tuple(size for _, size in frames)
    check_boxes(made, sizes)
    return replace(made, frames=tuple(frame for frame, _ in frames), sizes=sizes)


def check_boxes(made: CrossCheckSample, sizes: Sequence[tuple[int, int]]) -> None:
    """Raise RowProblem where a box is not within its picture, of the width and height in ``sizes``."""
    for marks, (width, height) in zip(made.boxes, sizes, strict=False):
        if any(mark.box[2] > width or mark.box[3] > height for mark in marks):
            raise RowProblem("a box is not within its picture")


def _told(made: CrossCheckSample) -> bool:
    """Whether the answer to a question that is not yes or no can be read off a box."""
    if made.closed and not made.options:
        return False
    answer = made.options[LETTERS.index(made.answer)] if made.options else made.answer
    told = f" {normalise(answer)} "
    return any(told in f" {normalise(mark.label)} " for marks in made.boxes for mark in marks)


def _text(fields: Mapping[str, Any], name: str, longest: int, *, needed: bool = True) -> str:
    shown, value = name.replace("_", " "), fields.get(name)
    if value is None and not needed:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or (needed and not value.strip()):
        raise RowProblem(f"the row has no {shown}" if needed else f"the {shown} is not text")
    return _fit(value, shown, longest)


def _fit(value: str, shown: str, longest: int) -> str:
    if len(value) > longest:
        raise RowProblem(f"the {shown} is longer than {longest} characters")
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
    if len({normalise(option) for option in value}) < len(value):
        raise RowProblem("two of the options are the same")
    return tuple(_fit(option, "option", LONGEST_WORDS) for option in value)


def _boxes(value: Any, frames: int) -> tuple[tuple[Mark, ...], ...]:
    """For each frame its marks; () where the row has none at all."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) != frames or not all(isinstance(each, list) for each in value):
        raise RowProblem("the boxes are not one list for each frame")
    if any(len(each) > MOST_BOXES for each in value):
        raise RowProblem(f"a picture has more than {MOST_BOXES} boxes")
    found = tuple(tuple(_mark(box) for box in each) for each in value)
    return found if any(found) else ()


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
    return Mark(_fit(" ".join(value["label"].split()), "label", LONGEST_WORDS), (x0, y0, x1, y1))
