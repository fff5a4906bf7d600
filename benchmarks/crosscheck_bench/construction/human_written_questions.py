"""L3 questions written by people (section "Question Generation"), read from ``authored.jsonl``.

A row cites facts of the clue graphs by id. The cited facts must exist and be visible, be more than one, and imply the
answer by the task's rule, which follows the wording of the answers in Figure 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.crosscheck_bench.construction.clue_graph import Clue, occurs_in, remove_value
from benchmarks.crosscheck_bench.construction.question_drafts import (
    FIGURE_8,
    REGION_LABELS,
    QuestionDraft,
    Shot,
    image_placeholders,
    option_placeholders,
)
from benchmarks.crosscheck_bench.construction.template_data import TemplateData
from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS, TASKS
from benchmarks.crosscheck_bench.crosscheck_sample import (
    IMAGE_PLACEHOLDER,
    MAX_FRAMES,
    MAX_SHORT_TEXT_LENGTH,
    MAX_TEXT_LENGTH,
)
from benchmarks.crosscheck_bench.sources.product_folders import SOURCE, Product
from benchmarks.rows.files import SkippedRow, text_field
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.reader_types import RowProblem, is_present
from benchmarks.values import compare
from benchmarks.vocabulary import Mark

FILE = "authored.jsonl"

MIN_CLUES = 2

BC = (
    "See carefully with the product images. Reply to me whether this product actually has brand circumvention behavior."
)
BC_FORM = (
    "Following are the definition of Brand Circumvention behaviour: obscure or hide the brand name or logo in the content so "
    "that the brand of the selling products can not be identified. Answer Yes or No."
)
BC_CONTENT = "Reply to me with only Yes or No whether this slice actually has brand circumvention behavior."
BI_OPTIONS = (
    "The detected brand is the primary brand of the product.",
    "The detected brand is correctly detected but irrelevant to the product, including background/incidental appearances and "
    "supplier/service mentions.",
    'The product is piggybacked on the detected brand, including selling items the brand does not produce and "nested" brands.',
    "The detected brand is incorrectly detected and irrelevant due to an identification error. False detection.",
)
BI_CONTENT_OPTIONS = (
    "The detected brand is one of the brands of the product the slice is intended to sell.",
    "The candidate brand does not dominate the overall brand of the product.",
    "The brand's image, logo, or design elements appear in the image and are not intended for sale.",
    "The detected logo was misclassified due to incorrect positioning, incorrect brand identification, or a mismatch in the "
    "brand name.",
)
PI_OPTIONS = ("Main item for sale", "Partial item for sale", "Item not for sale")
OPTION_MARKS = {"BI": ".", "BI*": ":", "PI": ":"}
"""The mark after an option's letter in Figure 8, by task."""

OWN_WORDING = "the author's own"

OPTIONS: Mapping[str, tuple[str, ...]] = {"BI": BI_OPTIONS, "BI*": BI_CONTENT_OPTIONS, "PI": PI_OPTIONS}

_DETECTIONS = ("BI", "BI*", "PI")


@dataclass(frozen=True, slots=True)
class AuthoredQuestion:
    """A row of the file: a question about pictures of one product.

    ``located`` is the fact whose box the question is about (BI, BI*, PI), ``detected_brand`` the brand said to be there
    (BI, BI*).
    """

    id: str
    task: str
    product: Product
    shots: tuple[Shot, ...]
    facts: tuple[Clue, ...]
    answer: str
    located: Clue | None
    detected_brand: str
    question: str
    rationale: str


class RefusedQuestion(Exception):
    """The reason why a row is not a sample, preceded by the name of the check."""


def read_authored_questions(folder: Path, data: TemplateData) -> Iterator[QuestionDraft | SkippedRow]:
    """Yield the questions of the folder's file in order, if it has one. Raises SourceError if it cannot be read."""
    file = folder / FILE
    if not is_present(file):
        return
    ids: set[str] = set()
    for number, fields in read_json_lines(file):
        try:
            row = _parse_row(fields, data)
            if row.id in ids:
                raise RowProblem("repeated: another row has this id")
            ids.add(row.id)
            _check_question(row)
            yield _build_draft(row)
        except (RowProblem, RefusedQuestion) as problem:
            yield SkippedRow(SOURCE, f"{FILE}:{number}", str(problem))


def derive_answer(row: AuthoredQuestion) -> str | None:
    """Return the answer that the cited facts imply by the task's rule, or None if they decide nothing."""
    return ANSWER_RULES[row.task](row)


# --- rules ---------------------------------------------------------------------------------------


def _circumvention(row: AuthoredQuestion) -> str | None:
    """Return the answer of BC and BC*: Yes if a logo is covered and the product's brand is legible nowhere else."""
    visible = [item for shot in row.shots for item in shot.picture.visible]
    cited = {fact.attribute for fact in row.facts}
    if any(item.attribute == "brand" for item in visible):
        return "No" if "brand" in cited else None
    return "Yes" if "covered brand" in cited else None


def _brand_intent(row: AuthoredQuestion) -> str | None:
    """Return the answer of BI and BI*, whose options B and C are swapped."""
    if row.located is None or row.located not in row.facts:
        return None
    # A brand that may be a misspelling of another is a look-alike.
    if compare(row.located.value, row.detected_brand).verdict != "same":
        return "D"
    own = compare(row.detected_brand, row.product.brand).verdict == "same"
    meant = {"brand": "own" if own else "", "minor brand": "minor", "other brand": "other"}.get(
        row.located.attribute, ""
    )
    letters = {"own": "A", "other": "B", "minor": "C"} if row.task == "BI" else {"own": "A", "minor": "B", "other": "C"}
    return letters.get(meant)


def _product_intent(row: AuthoredQuestion) -> str | None:
    if row.located is None or row.located not in row.facts:
        return None
    return {"product": "A", "part": "B", "prop": "C"}.get(row.located.attribute)


ANSWER_RULES: Mapping[str, Callable[[AuthoredQuestion], str | None]] = {
    "BC": _circumvention,
    "BC*": _circumvention,
    "BI": _brand_intent,
    "PI": _product_intent,
    "BI*": _brand_intent,
}
"""The rules by which facts imply the answer, by L3 task."""


# --- reading and checking ------------------------------------------------------------------------


def _parse_row(fields: Any, data: TemplateData) -> AuthoredQuestion:
    if not isinstance(fields, dict):
        raise RowProblem("the line is not a JSON object")
    task = text_field(fields, "task")
    if task not in ANSWER_RULES:
        raise RowProblem(f"the task is not one of {', '.join(ANSWER_RULES)}")
    graph = data.graphs.get(text_field(fields, "product"))
    if graph is None:
        raise RefusedQuestion("product: the product is not one that can be used")
    facts = _names(fields, "facts")
    unknown = [name for name in facts if name not in graph.by_id]
    if unknown:
        raise RefusedQuestion(f"facts: {unknown[0][:80]!r} is no fact of the product's graph")
    at = text_field(fields, "at")
    if (at not in graph.by_id or graph.by_id[at].box is None) if task in _DETECTIONS else at:
        raise RefusedQuestion("at: it is not the id of a fact with a box, or the task has no use for one")
    detected = _line(fields, "detected")
    if bool(detected) != (task in ("BI", "BI*")):
        raise RefusedQuestion("detected: the detected brand is missing, or the task has no use for one")
    return AuthoredQuestion(
        id=_line(fields, "id") or _raise_missing("id"),
        task=task,
        product=graph.product,
        shots=_shots(graph.product, _names(fields, "images"), task),
        facts=tuple(graph.by_id[name] for name in facts),
        answer=_line(fields, "answer"),
        located=graph.by_id.get(at),
        detected_brand=detected,
        question=_line(fields, "question", MAX_TEXT_LENGTH),
        rationale=_line(fields, "rationale", MAX_TEXT_LENGTH),
    )


def _raise_missing(name: str) -> str:
    raise RowProblem(f"the row has no {name}")


def _names(fields: Mapping[str, Any], name: str) -> list[str]:
    value = fields.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise RowProblem(f"the {name} are not a list of names")
    if len(set(value)) < len(value):
        raise RowProblem(f"the {name} name one twice")
    return value


def _line(fields: Mapping[str, Any], name: str, longest: int = MAX_SHORT_TEXT_LENGTH) -> str:
    value = text_field(fields, name)
    if len(value) > longest or len(value.splitlines()) > 1:
        raise RowProblem(f"the {name} is longer than {longest} characters or has more than one line")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise RowProblem("the text is not valid Unicode")
    return value


def _shots(product: Product, views: list[str], task: str) -> tuple[Shot, ...]:
    pictures = [product.picture(name) for name in views]
    if None in pictures:
        raise RefusedQuestion(f"images: the product has no view {views[pictures.index(None)][:80]!r} that can be used")
    if len(pictures) > MAX_FRAMES or (len(pictures) > 1) != TASKS[task].multi_frame:
        raise RefusedQuestion(f"images: {task} shows {'several frames' if TASKS[task].multi_frame else 'one image'}")
    return tuple(Shot(product, picture) for picture in pictures if picture is not None)


def _check_question(row: AuthoredQuestion) -> None:
    """Raise RefusedQuestion if the row cannot be used as a question or its answer is not the graph's."""
    views = {shot.picture.view for shot in row.shots}
    hidden = [
        fact
        for fact in (*row.facts, *([row.located] if row.located else []))
        if fact.modality == "image" and fact.place not in views
    ]
    if hidden:
        raise RefusedQuestion(f"shown: {hidden[0].id!r} is in none of the images that are shown")
    if len(row.facts) < MIN_CLUES:
        raise RefusedQuestion(f"clues: the row cites fewer than {MIN_CLUES} facts")
    allowed = LETTERS[: len(OPTIONS[row.task])] if row.task in OPTIONS else ("Yes", "No")
    if row.answer not in allowed:
        raise RefusedQuestion(f"answer-form: the answer is not one of {', '.join(allowed)}")
    if row.question and row.question.count(IMAGE_PLACEHOLDER) not in (0, len(row.shots)):
        raise RefusedQuestion(f"question: it has {IMAGE_PLACEHOLDER} more or less often than the row has images")
    if row.task in OPTIONS and occurs_in(OPTIONS[row.task][LETTERS.index(row.answer)].rstrip("."), row.question):
        raise RefusedQuestion("leak: the question holds the answer")
    right_answer = derive_answer(row)
    if right_answer is None:
        raise RefusedQuestion("answer: the cited facts decide no answer")
    if right_answer != row.answer:
        raise RefusedQuestion(f"answer: by the cited facts it is {right_answer}, the row says {row.answer}")


# --- questions -----------------------------------------------------------------------------------


def _build_draft(row: AuthoredQuestion) -> QuestionDraft:
    context, ask, form = _printed_wording(row) if not row.question else _own_wording(row)
    return QuestionDraft(
        task=row.task,
        context=context,
        ask=ask,
        form=form,
        answer=row.answer,
        shots=_with_logo_marked(row) if row.task == "BI*" else row.shots,
        clues=row.facts,
        stratum=row.answer,
        options=OPTIONS.get(row.task, ()),
        choices=_choices(row),
        wording=OWN_WORDING if row.question else FIGURE_8,
        conflict=_conflict_of(row),
        reasoning=row.rationale,
        titles=(row.product.title,),
        row_id=row.id,
        origin="authored",
    )


def _choices(row: AuthoredQuestion) -> str:
    if row.question or row.task not in OPTIONS:
        return ""
    return option_placeholders(len(OPTIONS[row.task]), mark=OPTION_MARKS[row.task])


def _own_wording(row: AuthoredQuestion) -> tuple[str, str, str]:
    context = "" if IMAGE_PLACEHOLDER in row.question else image_placeholders(len(row.shots))
    return context, row.question, "" if row.task in OPTIONS else "Answer Yes or No."


def _printed_wording(row: AuthoredQuestion) -> tuple[str, str, str]:
    """Return the wording that Figure 8 prints for the task, completed where the figure breaks off."""
    frames, title = image_placeholders(len(row.shots)), row.product.title
    if row.task == "BC":
        return f"The product images is {frames} .", BC, BC_FORM
    if row.task == "BC*":
        # Figure 8's title names no brand; a title that did would reveal what the slice hides.
        title = remove_value(row.product.brand, title) or title
        listed = f"product: {title} with categories detected as {row.product.category}."
        selling = f"The selling list of the slice contains the following products: {listed}"
        return f"Here is a video slice of a live, with key frames {frames}. {selling}", BC_CONTENT, ""
    if row.task == "BI*":
        subject = (
            f"detected logos seems related to the brand {row.detected_brand} are highlighted with red bounding boxes"
        )
        return f"This is a live slice. The following images have been provided, where {subject}: {frames}.", "", ""
    region = f"This is a normalized bounding box coordinate: {_normalised_box(row)},"
    if row.task == "BI":
        return (
            f"The product title is {title} The image is {IMAGE_PLACEHOLDER} The detected brand is {row.detected_brand}. {region}",
            "",
            "",
        )
    return f"Here is an image of a product: {IMAGE_PLACEHOLDER} Its title is: {title} {region}", "", ""


def _normalised_box(row: AuthoredQuestion) -> str:
    assert row.located is not None
    assert row.located.box is not None
    picture = next(shot.picture for shot in row.shots if shot.picture.view == row.located.place)
    sides = (picture.width, picture.height) * 2
    return str([round(edge / side, 3) for edge, side in zip(row.located.box, sides, strict=True)])


def _with_logo_marked(row: AuthoredQuestion) -> tuple[Shot, ...]:
    """Return the frames with the detected logo in a red box, as the question says."""
    at = row.located
    assert at is not None
    assert at.box is not None
    mark = Mark(REGION_LABELS.get(at.attribute, at.attribute), at.box)
    return tuple(Shot(s.product, s.picture, (mark,) if s.picture.view == at.place else ()) for s in row.shots)


def _conflict_of(row: AuthoredQuestion) -> str:
    """Return the contradiction that the answer reports, or ""."""
    return {
        ("BC", "Yes"): "covered brand",
        ("BC*", "Yes"): "covered brand",
        ("BI", "B"): "another brand in the background",
        ("BI", "C"): "piggybacked brand",
        ("BI", "D"): "false detection",
        ("BI*", "B"): "piggybacked brand",
        ("BI*", "C"): "another brand in the background",
        ("BI*", "D"): "false detection",
        ("PI", "C"): "item not for sale",
    }.get((row.task, row.answer), "")
