"""L3 by people (section "Question Generation"): questions in ``authored.jsonl``, which rest on facts of the clue graphs.

A row names the facts by id. What it cites must be there and be shown, be more than one clue, and give the answer by the
task's rule, which is the wording of the answers in Figure 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.base import Mark
from benchmarks.crosscheck_bench.constants import LETTERS, TASKS
from benchmarks.crosscheck_bench.construction.clue_graph import Clue, same, stands_in, without
from benchmarks.crosscheck_bench.construction.drafts import LABELS, QuestionDraft, Shot, places
from benchmarks.crosscheck_bench.construction.template_data import TemplateData
from benchmarks.crosscheck_bench.sample import LONGEST_TEXT, LONGEST_WORDS, MOST_FRAMES, PLACE
from benchmarks.crosscheck_bench.sources.products import SOURCE, Product
from benchmarks.rows.files import RowProblem, SkippedRow, json_lines, text

FILE = "authored.jsonl"

FEWEST_CLUES = 2

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
OPTIONS: Mapping[str, tuple[str, ...]] = {"BI": BI_OPTIONS, "BI*": BI_CONTENT_OPTIONS, "PI": PI_OPTIONS}

_DETECTIONS = ("BI", "BI*", "PI")


@dataclass(frozen=True, slots=True)
class AuthoredQuestion:
    """A row of the file: a question about pictures of one product.

    ``at`` is the fact whose box the question is about (BI, BI*, PI), ``detected`` the brand that is said to be there (BI, BI*).
    """

    id: str
    task: str
    product: Product
    shots: tuple[Shot, ...]
    facts: tuple[Clue, ...]
    answer: str
    at: Clue | None
    detected: str
    question: str
    rationale: str


class RefusedQuestion(Exception):
    """Why a row is no sample, beginning with the check's name."""


def authored(folder: Path, material: TemplateData) -> Iterator[QuestionDraft | SkippedRow]:
    """The questions of the folder's file in its order; nothing where it has none. Raises SourceError where it cannot be read."""
    file = folder / FILE
    if not file.is_file():
        return
    taken: set[str] = set()
    for number, fields in json_lines(file):
        try:
            row = _row(fields, material)
            if row.id in taken:
                raise RowProblem("repeated: another row has this id")
            taken.add(row.id)
            _check(row)
            yield _draft(row)
        except (RowProblem, RefusedQuestion) as problem:
            yield SkippedRow(SOURCE, f"{FILE}:{number}", str(problem))


def follows(row: AuthoredQuestion) -> str | None:
    """The answer that the cited facts give by the task's rule, or None where they decide nothing."""
    return RULES[row.task](row)


# --- rules ---------------------------------------------------------------------------------------


def _circumvention(row: AuthoredQuestion) -> str | None:
    """BC, BC*: a brand mark is covered, and none of the product's brand can be read in what is shown."""
    seen = [shown for shot in row.shots for shown in shot.picture.shown]
    cited = {fact.attribute for fact in row.facts}
    if any(shown.attribute == "brand" for shown in seen):
        return "No" if "brand" in cited else None
    return "Yes" if "covered brand" in cited else None


def _brand_intent(row: AuthoredQuestion) -> str | None:
    """BI and BI*, whose answers B and C are each other's."""
    if row.at is None or row.at not in row.facts:
        return None
    if not same("brand", row.at.value, row.detected):
        return "D"
    own = same("brand", row.detected, row.product.brand)
    meant = {"brand": "own" if own else "", "minor brand": "minor", "other brand": "other"}.get(row.at.attribute, "")
    letters = {"own": "A", "other": "B", "minor": "C"} if row.task == "BI" else {"own": "A", "minor": "B", "other": "C"}
    return letters.get(meant)


def _product_intent(row: AuthoredQuestion) -> str | None:
    if row.at is None or row.at not in row.facts:
        return None
    return {"product": "A", "part": "B", "prop": "C"}.get(row.at.attribute)


RULES: Mapping[str, Callable[[AuthoredQuestion], str | None]] = {
    "BC": _circumvention,
    "BC*": _circumvention,
    "BI": _brand_intent,
    "PI": _product_intent,
    "BI*": _brand_intent,
}
"""How the answer follows, by task of L3."""


# --- reading and checking ------------------------------------------------------------------------


def _row(fields: Any, material: TemplateData) -> AuthoredQuestion:
    if not isinstance(fields, dict):
        raise RowProblem("the line is not a JSON object")
    task = text(fields, "task")
    if task not in RULES:
        raise RowProblem(f"the task is not one of {', '.join(RULES)}")
    graph = material.graphs.get(text(fields, "product"))
    if graph is None:
        raise RefusedQuestion("product: the product is not one that can be used")
    facts = _names(fields, "facts")
    unknown = [name for name in facts if name not in graph.by_id]
    if unknown:
        raise RefusedQuestion(f"facts: {unknown[0][:80]!r} is no fact of the product's graph")
    at = text(fields, "at")
    if (at not in graph.by_id or graph.by_id[at].box is None) if task in _DETECTIONS else at:
        raise RefusedQuestion("at: it is not the id of a fact with a box, or the task has no use for one")
    detected = _line(fields, "detected")
    if bool(detected) != (task in ("BI", "BI*")):
        raise RefusedQuestion("detected: the detected brand is missing, or the task has no use for one")
    return AuthoredQuestion(
        id=_line(fields, "id") or _missing("id"),
        task=task,
        product=graph.product,
        shots=_shots(graph.product, _names(fields, "images"), task),
        facts=tuple(graph.by_id[name] for name in facts),
        answer=_line(fields, "answer"),
        at=graph.by_id.get(at),
        detected=detected,
        question=_line(fields, "question", LONGEST_TEXT),
        rationale=_line(fields, "rationale", LONGEST_TEXT),
    )


def _missing(name: str) -> str:
    raise RowProblem(f"the row has no {name}")


def _names(fields: Mapping[str, Any], name: str) -> list[str]:
    value = fields.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise RowProblem(f"the {name} are not a list of names")
    if len(set(value)) < len(value):
        raise RowProblem(f"the {name} name one twice")
    return value


def _line(fields: Mapping[str, Any], name: str, longest: int = LONGEST_WORDS) -> str:
    value = text(fields, name)
    if len(value) > longest or len(value.splitlines()) > 1:
        raise RowProblem(f"the {name} is longer than {longest} characters or has more than one line")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise RowProblem("the text is not valid Unicode")
    return value


def _shots(product: Product, views: list[str], task: str) -> tuple[Shot, ...]:
    found = [product.view(name) for name in views]
    if None in found:
        raise RefusedQuestion(f"images: the product has no view {views[found.index(None)][:80]!r} that can be used")
    if len(found) > MOST_FRAMES or (len(found) > 1) != TASKS[task].multi_frame:
        raise RefusedQuestion(f"images: {task} shows {'several frames' if TASKS[task].multi_frame else 'one image'}")
    return tuple(Shot(product, picture) for picture in found if picture is not None)


def _check(row: AuthoredQuestion) -> None:
    """Raises Refused where the row cannot be asked or its answer is not the graph's."""
    views = {shot.picture.view for shot in row.shots}
    hidden = [
        fact
        for fact in (*row.facts, *([row.at] if row.at else []))
        if fact.modality == "image" and fact.place not in views
    ]
    if hidden:
        raise RefusedQuestion(f"shown: {hidden[0].id!r} is in none of the images that are shown")
    if len(row.facts) < FEWEST_CLUES:
        raise RefusedQuestion(f"clues: the row cites fewer than {FEWEST_CLUES} facts")
    allowed = LETTERS[: len(OPTIONS[row.task])] if row.task in OPTIONS else ("Yes", "No")
    if row.answer not in allowed:
        raise RefusedQuestion(f"answer-form: the answer is not one of {', '.join(allowed)}")
    if row.question and row.question.count(PLACE) not in (0, len(row.shots)):
        raise RefusedQuestion(f"question: it has {PLACE} more or less often than the row has images")
    if row.task in OPTIONS and stands_in(OPTIONS[row.task][LETTERS.index(row.answer)].rstrip("."), row.question):
        raise RefusedQuestion("leak: the question holds the answer")
    right = follows(row)
    if right is None:
        raise RefusedQuestion("answer: the cited facts decide no answer")
    if right != row.answer:
        raise RefusedQuestion(f"answer: by the cited facts it is {right}, the row says {row.answer}")


# --- questions -----------------------------------------------------------------------------------


def _draft(row: AuthoredQuestion) -> QuestionDraft:
    given, ask, form = _printed(row) if not row.question else _own(row)
    return QuestionDraft(
        task=row.task,
        given=given,
        ask=ask,
        form=form,
        answer=row.answer,
        shots=_marked(row) if row.task == "BI*" else row.shots,
        clues=row.facts,
        stratum=row.answer,
        options=OPTIONS.get(row.task, ()),
        conflict=_conflict(row),
        reasoning=row.rationale,
        titles=(row.product.title,),
        row_id=row.id,
        made="authored",
    )


def _own(row: AuthoredQuestion) -> tuple[str, str, str]:
    given = "" if PLACE in row.question else places(len(row.shots))
    return given, row.question, "" if row.task in OPTIONS else "Answer Yes or No."


def _printed(row: AuthoredQuestion) -> tuple[str, str, str]:
    """What Figure 8 prints for the task, with what it leaves out."""
    frames, title = places(len(row.shots)), row.product.title
    if row.task == "BC":
        return f"The product images is {frames} .", BC, BC_FORM
    if row.task == "BC*":
        # Figure 8's title names no brand, and one that did would identify what the slice hides.
        title = without(row.product.brand, title) or title
        listed = f"product: {title} with categories detected as {row.product.category}."
        selling = f"The selling list of the slice contains the following products: {listed}"
        return f"Here is a video slice of a live, with key frames {frames}. {selling}", BC_CONTENT, ""
    if row.task == "BI*":
        about = f"detected logos seems related to the brand {row.detected} are highlighted with red bounding boxes"
        return f"This is a live slice. The following images have been provided, where {about}: {frames}.", "", ""
    region = f"This is a normalized bounding box coordinate: {_normalized(row)},"
    if row.task == "BI":
        return (
            f"The product title is {title} The image is {PLACE} The detected brand is {row.detected}. {region}",
            "",
            "",
        )
    return f"Here is an image of a product: {PLACE} Its title is: {title} {region}", "", ""


def _normalized(row: AuthoredQuestion) -> str:
    assert row.at is not None
    assert row.at.box is not None
    picture = next(shot.picture for shot in row.shots if shot.picture.view == row.at.place)
    sides = (picture.width, picture.height) * 2
    return str([round(edge / side, 3) for edge, side in zip(row.at.box, sides, strict=True)])


def _marked(row: AuthoredQuestion) -> tuple[Shot, ...]:
    """The frames with the detected logo in a red box, as the question says."""
    at = row.at
    assert at is not None
    assert at.box is not None
    mark = Mark(LABELS.get(at.attribute, at.attribute), at.box)
    return tuple(Shot(s.product, s.picture, (mark,) if s.picture.view == at.place else ()) for s in row.shots)


def _conflict(row: AuthoredQuestion) -> str:
    """What of the answers says that something is amiss."""
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
