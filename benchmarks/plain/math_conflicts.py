"""Math conflicts: an image and a text that pose different problems ("Which Source Wins?", arXiv 2608.17205)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.plain.plain_data_set import CONFLICT, PlainDataSet
from benchmarks.rows.reader_types import Fields
from benchmarks.vocabulary import DOCUMENT, Decoding

if TYPE_CHECKING:
    from benchmarks.rows.files import RawRow

_QUESTION = "Solve the problem step by step. End with '#### <answer>'."
_ASKED = "Problem: "
_BOTH = (
    "{{image}}You are given two sources describing a math problem. Source {image} is the attached image. Source {text} is the "
    "text below.\n\nSource {text}: {{text}}\n\n{{question}}"
)


class MathConflicts(PlainDataSet):
    """Problems of GSM8K and SVAMP, each rendered as an image beside the text of the next one, clean and degraded."""

    name = "math-conflicts"
    title = "Math conflicts: an image and a text that pose different problems"
    in_plain_words = (
        "A model gets a math problem as an image and another as a text, as two sources of one problem, and is asked to solve it. "
        "The paper measures which of the two it solves, and how that changes as one of them becomes hard to read."
    )
    paper = "Which Source Wins? (arXiv 2608.17205), GSM8K and SVAMP"
    paper_rows = (
        "the answers that the paper's artifact releases, over GSM8K and SVAMP (its printed tables could not be seen)"
    )
    paper_judge = "its numeric match of the value behind ####"
    paper_prompts = "neutral"
    paper_decoding = "greedy, at most 256 new tokens"
    decoding = Decoding(max_tokens=256)
    hub_id = "vlm-modality-research/modality-conflict-arbitration-v2"
    hub_files = ("data/train-",)
    amount = "the 12,952 rows with their images (parquet)"
    columns: Mapping[str, tuple[str, ...]] = {
        "question": ("text_question",),
        "image": ("image",),
        "image_answer": ("image_answer",),
        "text": ("prompt",),
        "text_answer": ("text_answer",),
        "type": ("degradation_name",),
    }
    optional_columns: Mapping[str, tuple[str, ...]] = {"problems": ("source",), "number": ("image_problem_id",)}
    types = (
        *("clean", "blur_light", "blur_noise", "heavy_degradation"),
        *("light_corruption", "medium_corruption", "heavy_corruption"),
    )
    states_values = False
    right = ""
    conditions = (CONFLICT, "image-only", "text-only")
    without_sources: Mapping[str, tuple[str, ...]] = {}
    metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {"Text preference": ("TEXT", ("IMAGE", "TEXT"))}
    prompt_sets: Mapping[str, str] = {
        "neutral": "the role-neutral prompt of the paper's artifact, word for word (MIT); alone, each problem with its last line"
    }
    prompts: Mapping[str, Mapping[str, str]] = {
        "neutral": {
            CONFLICT: _BOTH.format(image="A", text="B"),
            "text first": _BOTH.format(image="B", text="A"),
            "image-only": "{image}{question}",
            "text-only": "{text}\n\n{question}",
        }
    }

    def examples(self, row: RawRow) -> Iterator[Fields]:
        text = row.fields["text"]
        shown = text.partition(_ASKED)[2] or text if isinstance(text, str) else text
        problems, number = row.fields["problems"], row.fields["number"]
        repeated = None if None in (problems, number) else f"{problems} {number}"  # by every level
        yield {**row.fields, "question": _QUESTION, "text": shown, DOCUMENT: repeated}

    def template(self, prompt_set: str, row: Mapping[str, Any]) -> str:
        is_odd = row["condition"] == CONFLICT and row["columns"].get("number", "0")[-1] in "13579"
        return self.prompts[prompt_set]["text first" if is_odd else row["condition"]]
