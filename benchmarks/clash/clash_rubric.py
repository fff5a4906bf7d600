"""CLASH's LLM judge: with the prompt of Appendix B.3, or with that of the official code."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.clash.clash_constants import IMAGE, OPEN_ENDED, TEXT, WITHOUT_SOURCES, is_multiple_choice
from benchmarks.rubric import OFFICIAL, Rubric, one_line
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Choice, Record

_LABELS = ("IMAGE", "TEXT", "CONFLICT", "NONE")

INSTRUCTION = """\
You are an evaluator. Given two reference answers (image_only and text_only) and a model prediction, decide which category the \
prediction belongs to:
1. IMAGE — if the prediction semantically matches the image_only answer.
2. TEXT — if the prediction semantically matches the text_only answer.
3. CONFLICT — if the prediction explicitly refers to a contradiction, conflict, or states that both cannot be true.
4. NONE — if the prediction matches neither answer and does not indicate a conflict.
Ignore minor differences in phrasing, synonyms, plural/singular forms, or capitalization. Return only one label: IMAGE, TEXT, \
CONFLICT, or NONE.
Examples:
Image-only answer: polar bear
Text-only answer: brown bear
Prediction: Brown bear
Output: TEXT

Image-only answer: Black
Text-only answer: Blue
Prediction: Conflicting information.
Output: CONFLICT

Image-only answer: dog
Text-only answer: cat
Prediction: dog
Output: IMAGE

Image-only answer: red
Text-only answer: green
Prediction: yellow
Output: NONE"""
"""The instruction as printed; the line breaks before the examples are ours, since the printed text runs on."""


class ClashRubric(Rubric):
    """IMAGE, TEXT, CONFLICT or NONE for an open answer; NONE is the benchmark's INCORRECT.

    The four lines after the examples are ours in nothing but their place: they repeat the examples' form.
    """

    name = "clash"
    version = "1"
    labels = _LABELS
    form = Choice(_LABELS)
    conditions = (*OPEN_ENDED, *(name for name in WITHOUT_SOURCES if not is_multiple_choice(name)))

    def prompt(self, record: Record) -> str:
        image, text, prediction = self._inputs(record)
        query = f"Image-only answer: {image}\nText-only answer: {text}\nPrediction: {prediction}\nOutput:"
        return f"{INSTRUCTION}\n\n{query}"

    def benchmark_label(self, label: str) -> str:
        return "INCORRECT" if label == "NONE" else label

    def _inputs(self, record: Record) -> tuple[str, str, str]:
        """Return the image's answer, the caption's answer and the prediction, a line each."""
        assert record.answer is not None
        references = record.instance.references
        image, text = (one_line("; ".join(references.get(role, ()))) for role in (IMAGE, TEXT))
        return image, text, one_line(visible_answer(record.answer.text))


class OfficialClashRubric(ClashRubric):
    """The judge of the official code: its prompt, put together and read as ``src/evaluation.py`` does.

    Ours: line breaks in a prediction become spaces, so that it cannot add a line to the prompt.
    """

    name = f"{ClashRubric.name}{OFFICIAL}"

    def __init__(self, prompts: Mapping[str, str]) -> None:
        self._instruction = prompts["JUDGE_PROMPT"]

    def prompt(self, record: Record) -> str:
        image, text, prediction = self._inputs(record)
        lines = (
            f"{self._instruction} Now classify: ",
            f" Image-only answer: {image} ",
            f" Text-only answer: {text} ",
            f" Prediction: {prediction}  ",
            "    ",
        )
        return "\n".join(lines)

    def read(self, reply: str) -> str | None:
        label = visible_answer(reply).strip().upper()
        return self.benchmark_label(label) if label in self.labels else None
