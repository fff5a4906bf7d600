"""``extracted`` and ``printed``: exact match after CrossCheck-Bench's normalisation (Appendix D)."""

from __future__ import annotations

from abc import abstractmethod

from benchmarks.base import Record, Verdict
from benchmarks.crosscheck_bench.exact_match import Labelled, by_final_answer, by_whole_reply
from benchmarks.text.answer_text import visible_answer
from judges.base import FunctionJudge


class _Exact(FunctionJudge):
    """CORRECT or INCORRECT. An answer that is empty, or nothing but reasoning, is unparsed.

    Open answers are matched in the same way, which is less than the paper does: it has a model compare their meaning.
    """

    version = "1"
    benchmarks = ("crosscheck-bench",)

    @abstractmethod
    def label(self, record: Record) -> Labelled:
        """The label of an answer that is not empty."""

    def judge(self, record: Record) -> Verdict:
        text = record.answer.text if record.answer else ""
        if not visible_answer(text):
            return self.empty(text)
        return Verdict(self.id, "labelled", *self.label(record))


class ExtractedMatch(_Exact):
    """By the final answer, wherever in the reply it stands."""

    name = "extracted"
    version = "2"
    description = "CrossCheck-Bench: the final answer in the reply, matched exactly"

    def label(self, record: Record) -> Labelled:
        return by_final_answer(record)


class PrintedMatch(_Exact):
    """By the whole reply, as the paper's exact match reads: a reply that reasons first is INCORRECT."""

    name = "printed"
    description = "CrossCheck-Bench: the whole reply, matched exactly"

    def label(self, record: Record) -> Labelled:
        return by_whole_reply(record)
