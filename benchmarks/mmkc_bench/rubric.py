"""The rubric for a judge that is a language model: an open answer next to the model's own and the evidence's (section 5.1)."""

from __future__ import annotations

from benchmarks.mmkc_bench.constants import CONFLICT_CONDITIONS, TEXT
from benchmarks.mmkc_bench.parse_answer import own_answer
from benchmarks.rubric import Rubric, one_line
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Choice, Record

_LABELS = ("ORIGINAL", "COUNTER", "IRRELEVANT")

INSTRUCTION = """\
A model was asked a question about an image twice: once with nothing but the image, and once after it was shown evidence that \
says otherwise. Compare its answer after the evidence with its original answer and with what the evidence says. Whether any \
of them is true does not matter.
ORIGINAL: the answer means the same as the original answer.
COUNTER: the answer means the same as one of the evidence's answers.
IRRELEVANT: the answer means neither, or both, or does not answer the question.
Ignore differences in wording, spelling, capital letters, and in how much is said, as long as the meaning is the same."""
"""The judge's instruction. Ours: the paper names the three kinds of answer, but not who sorts open answers or how."""


class MMKCRubric(Rubric):
    """ORIGINAL, COUNTER or IRRELEVANT for an open answer under conflict."""

    name = "mmkc-bench"
    version = "1"
    labels = _LABELS
    form = Choice(_LABELS)
    conditions = tuple(condition for condition in CONFLICT_CONDITIONS if condition.endswith("-open"))

    def label_by_rule(self, record: Record) -> tuple[str | None, str] | None:
        own_label, why = own_answer(record)
        return (None, why) if own_label is None else None

    def prompt(self, record: Record) -> str:
        assert record.answer is not None
        assert record.basis is not None
        counters = record.instance.references.get(TEXT, ())
        fields = [
            ("Question", record.instance.question),
            ("Original answer", visible_answer(record.basis.text)),
            *((f"Answer of the evidence {number}", counter) for number, counter in enumerate(counters, 1)),
            ("Answer after the evidence", visible_answer(record.answer.text)),
        ]
        lines = "\n".join(f"{name}: {one_line(text)}" for name, text in fields)
        return f"{INSTRUCTION}\n\n{lines}\n\nReply with one word: {', '.join(_LABELS[:-1])} or {_LABELS[-1]}."
