"""Words or Vision: VQAv2's questions about COCO's images, with texts that contradict the images (arXiv 2503.02199)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from benchmarks.plain.coco_ids import DIGITS, whole_id
from benchmarks.plain.plain_data_set import CONFLICT, PlainDataSet
from benchmarks.rows.reader_types import Fields, RowProblem
from benchmarks.vocabulary import CLOSED_BOOK, Decoding

if TYPE_CHECKING:
    from benchmarks.rows.files import RawRow

VQAV2 = "VQAv2"
NAMES_NO_IMAGE = "the row is one of DocVQA, which does not name its image"
_ASK = "{question} Please only output the answer with a single word or phrase."
_TEXT = (
    "Here are some additional information which are text descriptions based on the image to assist you for answering the later "
    "question. Note, the information could be irrelevant, missing some information or inaccurate, please use it with caution: "
    f"{{text}}\n----------\n{_ASK}"
)


class WordsOrVision(PlainDataSet):
    """1,000 questions of VQAv2, each with a text that leads to another answer: the paper's condition Corruption."""

    name = "words-or-vision"
    title = "Words or Vision: an image and a text that lead to different answers"
    in_plain_words = (
        "A model gets a photograph, a text that describes it wrongly, and a question. It is told that the text may be "
        "inaccurate; the paper measures how often it answers as it does to the text alone."
    )
    paper = "Words or Vision: Do Vision-Language Models Have Blind Faith in Text? (arXiv 2503.02199), VQAv2 under corruption"
    paper_rows = (
        "Table 2, from a copy of its HTML; two of its ratios were recomputed from the answers that the paper releases"
    )
    paper_judge = "VQA accuracy; for the ratio, equal texts"
    paper_prompts = "paper"
    paper_decoding = "greedy; 100 to 512 new tokens, depending on the model"
    decoding = Decoding(max_tokens=200)
    amount = "VQAv2/gpt-4o-2024-05-13/contradict_stat.jsonl of its repository, and COCO's val2014/ beside it"
    columns: Mapping[str, tuple[str, ...]] = {
        "question": ("question",),
        "image": ("question_id",),
        "image_answer": ("original_ans",),
        "text": ("response",),
        "text_answer": ("changed_ans",),
    }
    image_files = ("{}", "val2014/COCO_val2014_{}.jpg")
    types = (VQAV2,)
    metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {}
    own_metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {"TPR": ("TEXT", ("IMAGE", "TEXT"))}
    prompt_sets: Mapping[str, str] = {"paper": "the prompt of the paper's code, word for word (MIT)"}
    prompts: Mapping[str, Mapping[str, str]] = {
        "paper": {
            CONFLICT: f"{{image}}{_TEXT}",
            "image-only": f"{{image}}{_ASK}",
            "text-only": _TEXT,
            CLOSED_BOOK: _ASK,
        }
    }

    def compared(self, answer: str) -> str:
        """Return an answer without its last full stop, as ``clean_ans`` of the paper's code does; case counts."""
        return answer.removesuffix(".")

    def examples(self, row: RawRow) -> Iterator[Fields]:
        image = row.fields["image"]
        if "/[" in str(image):
            raise RowProblem(NAMES_NO_IMAGE)
        if question := whole_id(image):  # VQAv2 counts the questions of an image in the last three digits
            image = question[:-3].zfill(DIGITS)
        yield {**row.fields, "type": VQAV2, "image": image}
