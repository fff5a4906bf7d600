"""MC²: COCO's images against texts that state another answer ("Modality preference", arXiv 2505.20977)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.hash_collections import hash64
from benchmarks.plain.coco_ids import DIGITS, whole_id
from benchmarks.plain.plain_data_set import CONFLICT, PlainDataSet
from benchmarks.rows.reader_types import Fields
from benchmarks.vocabulary import CLOSED_BOOK, Decoding

if TYPE_CHECKING:
    from benchmarks.rows.files import RawRow

_SHORT = "Answer with a word or a short phrase, and nothing else."
_SOURCES = {
    CONFLICT: "{image}Text: {text}\n\n",
    "image-only": "{image}",
    "text-only": "Text: {text}\n\n",
    CLOSED_BOOK: "",
}


class MC2(PlainDataSet):
    """2,000 questions about COCO's images, each with a text that states another answer."""

    name = "mc2"
    title = "MC²: an image and a text that give different answers to a question"
    in_plain_words = (
        "A model gets a photograph, a text that contradicts it, and a question, in eight tasks from counting to sentiment. "
        "The paper measures which of the two it follows."
    )
    paper = "Evaluating and Steering Modality Preferences in Multimodal Large Language Model (arXiv 2505.20977), MC²"
    paper_rows = "its own rows; its tables and the definition of Vision Ratio could not be seen"
    paper_judge = "not seen"
    paper_prompts = "a choice of A or B, in both orders; not here, because its repository has no licence"
    paper_decoding = "not seen; its script allows 512 new tokens"
    decoding = Decoding(max_tokens=512)
    amount = "evaluate_final.json of its repository, and COCO's 2014 images in val2014/ and train2014/ beside it"
    columns: Mapping[str, tuple[str, ...]] = {
        "question": ("question",),
        "image": ("image_id",),
        "image_answer": ("answer_vision",),
        "text": ("context",),
        "text_answer": ("answer_text",),
        "type": ("task",),
    }
    optional_columns: Mapping[str, tuple[str, ...]] = {"option": ("answer_vision",), "other_option": ("answer_text",)}
    image_files = ("{}", "val2014/COCO_val2014_{}.jpg", "train2014/COCO_train2014_{}.jpg")
    types = (
        *("activity_recognition", "attribute", "color", "counting", "object_recognition", "positional_reasoning"),
        *("sentiment_understanding", "sport_recognition"),
    )
    metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {"Vision Ratio": ("IMAGE", ("IMAGE", "TEXT"))}
    prompt_sets: Mapping[str, str] = {
        "choice": "our wording: asks for one of the two answers, in an order that the row decides",
        "open": "our wording: asks for a short answer",
    }
    prompts: Mapping[str, Mapping[str, str]] = {
        "choice": {name: f"{shown}{{question}}\nOPTIONS" for name, shown in _SOURCES.items()},
        "open": {name: f"{shown}{{question}}\n{_SHORT}" for name, shown in _SOURCES.items()},
    }

    def examples(self, row: RawRow) -> Iterator[Fields]:
        image = row.fields["image"]
        number = whole_id(image)
        yield {**row.fields, "image": image if number is None else number.zfill(DIGITS)}

    def template(self, prompt_set: str, row: Mapping[str, Any]) -> str:
        options = [row["columns"][role].replace("{", "{{").replace("}", "}}") for role in row["columns"]]
        if options and hash64(row["id"].partition("/")[0]) % 2:
            options.reverse()
        asked = f"Answer with one of these two, and nothing else: {' | '.join(options)}" if options else _SHORT
        return self.prompts[prompt_set][row["condition"]].replace("OPTIONS", asked)
