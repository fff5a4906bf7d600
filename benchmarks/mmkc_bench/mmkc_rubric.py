"""The rubric for a judge that is a language model: an open answer next to the model's own and the evidence's (section 5.1)."""

from __future__ import annotations

from benchmarks.mmkc_bench.mmkc_constants import CONFLICT_CONDITIONS, TEXT
from benchmarks.mmkc_bench.mmkc_parse_answer import own_answer
from benchmarks.rubric import Rubric, one_line
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Choice, Record

_LABELS = ("ORIGINAL", "COUNTER", "IRRELEVANT")

_PROMPT = """\
A model was asked a question about an image twice: once with nothing but the image, and once after it was shown evidence that \
says otherwise. Compare its answer after the evidence with its original answer and with what the evidence says. Whether any \
of them is true does not matter.
{meanings}
IRRELEVANT: the answer means neither, or both, or does not answer the question.
Ignore differences in wording, spelling, capital letters, and in how much is said, as long as the meaning is the same.

Question: {question}
{references}
Answer after the evidence: {answer}

Reply with one word: {first}, {second} or IRRELEVANT."""
"""The judge's prompt. Ours: the paper names the three kinds of answer, but not who sorts open answers or how."""

_MEANINGS = {"ORIGINAL": "the original answer", "COUNTER": "one of the evidence's answers"}


class MMKCRubric(Rubric):
    """ORIGINAL, COUNTER or IRRELEVANT for an open answer under conflict.

    The original answer and the evidence's, with their labels, are listed in an order that is drawn for each instance.
    """

    name = "mmkc-bench"
    version = "2"
    labels = _LABELS
    form = Choice(_LABELS)
    conditions = tuple(condition for condition in CONFLICT_CONDITIONS if condition.endswith("-open"))

    def label_by_rule(self, record: Record) -> tuple[str | None, str] | None:
        own_label, why = own_answer(record)
        return (None, why) if own_label is None else None

    def prompt(self, record: Record) -> str:
        assert record.answer is not None
        assert record.basis is not None
        instance = record.instance
        evidence = enumerate(instance.references.get(TEXT, ()), 1)
        lines = {
            "ORIGINAL": [f"Original answer: {one_line(visible_answer(record.basis.text))}"],
            "COUNTER": [f"Answer of the evidence {number}: {one_line(answer)}" for number, answer in evidence],
        }
        first, second = order = self.in_drawn_order(instance, ("ORIGINAL", "COUNTER"))
        return _PROMPT.format(
            meanings="\n".join(f"{label}: the answer means the same as {_MEANINGS[label]}." for label in order),
            question=one_line(instance.question),
            references="\n".join(line for label in order for line in lines[label]),
            answer=one_line(visible_answer(record.answer.text)),
            first=first,
            second=second,
        )
