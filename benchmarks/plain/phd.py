"""PhD: yes-no questions about a COCO image, with a context that contradicts it (arXiv 2403.11116)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.answers import Answers
from benchmarks.plain.coco_ids import DIGITS, whole_id
from benchmarks.plain.plain_data_set import CONFLICT, PlainDataSet
from benchmarks.rows.reader_types import Fields, RowProblem
from benchmarks.vocabulary import CLOSED_BOOK, Table

if TYPE_CHECKING:
    from benchmarks.rows.files import RawRow

COUNTER_COMMON_SENSE = "a counter-common-sense image (PhD-ccs), which has no context"


class Phd(PlainDataSet):
    """PhD-icc: two questions a row, one whose answer by the image is yes and one whose answer is no."""

    name = "phd"
    title = "PhD: an image, and a context that contradicts it"
    in_plain_words = (
        "A model gets a photo, a text that contradicts it, and a question to answer with yes or no. It is told to follow the "
        "photo."
    )
    paper = "PhD: A ChatGPT-Prompted Visual hallucination Evaluation Dataset (arXiv 2403.11116), PhD-icc"
    paper_rows = "nothing: the paper's tables could not be seen"
    paper_prompts = "paper"
    hub_id = "AIMClab-RUC/PhD"
    hub_files = ("data.json", "images/train2014/", "images/val2014/")
    amount = "data.json and its 14,000 COCO images"
    columns: Mapping[str, tuple[str, ...]] = {
        "question": ("yes_question",),
        "no_question": ("no_question",),
        "image": ("image", "image_id"),
        "text": ("context.icc",),
        "type": ("task",),
    }
    optional_columns: Mapping[str, tuple[str, ...]] = {"ccs": ("ccs_description",)}
    types = ("object", "attribute", "sentiment", "positional", "counting")
    table_strata = ("type", "asked")
    metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {}
    prompt_sets: Mapping[str, str] = {
        "paper": "the context, the instruction and the question of the data set's card (MIT)"
    }
    prompts: Mapping[str, Mapping[str, str]] = {
        "paper": {
            CONFLICT: (
                "{image}{text} In case there is an inconsistency between the context and the image content, you should follow "
                "the image. {question}"
            ),
            "image-only": "{image}{question}",
            "text-only": "{text} {question}",
            CLOSED_BOOK: "{question}",
        }
    }

    def examples(self, row: RawRow) -> Iterator[Fields]:
        if row.fields["ccs"]:
            raise RowProblem(COUNTER_COMMON_SENSE)
        image = _image(row.fields["image"], row.folders)
        for asked, other, role in (("yes", "no", "question"), ("no", "yes", "no_question")):
            asks = {"question": row.fields[role], "image": image, "asked": asked}
            yield {**row.fields, **asks, "image_answer": asked, "text_answer": other}

    def tables(self, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
        from benchmarks.plain.phd_index import phd_index

        main, *others = super().tables(runs, judge, resamples=resamples, seed=seed)
        return [main, phd_index(self, runs, judge, resamples=resamples, seed=seed), *others]


def _image(value: object, folders: Sequence[Path]) -> object:
    """Return the path of the COCO image with the id ``value``; a value that is no id as it is."""
    if (number := whole_id(value)) is None:
        return value
    paths = [f"images/{part}/COCO_{part}_{number.zfill(DIGITS)}.jpg" for part in ("train2014", "val2014")]
    return next((path for path in paths if any((folder / path).is_file() for folder in folders)), paths[0])
