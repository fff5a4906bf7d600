"""``extracted`` and ``printed``: exact match after CrossCheck-Bench's normalisation (Appendix D)."""

from __future__ import annotations

from abc import abstractmethod

from benchmarks.crosscheck_bench.crosscheck_exact_match import LabelAndReason, match_final_answer, match_whole_reply
from benchmarks.vocabulary import Record, Verdict
from judges.base import AnswerJudge


class _Exact(AnswerJudge):
    """CORRECT or INCORRECT. An answer that is empty, or nothing but reasoning, is unparsed.

    Open answers are matched in the same way. The paper does more: it has a model compare their meaning.
    """

    version = "1"
    benchmarks = ("crosscheck-bench",)

    @abstractmethod
    def label(self, record: Record) -> LabelAndReason:
        """Return the label and reason of an answer that is not empty."""

    def label_answer(self, answer: str, record: Record) -> Verdict:
        return Verdict(self.id, "labelled", *self.label(record))


class ExtractedMatch(_Exact):
    """Exact match of the final answer, wherever it occurs in the reply."""

    name = "extracted"
    version = "2"
    description = "CrossCheck-Bench: the final answer in the reply, matched exactly"

    def label(self, record: Record) -> LabelAndReason:
        return match_final_answer(record)


class PrintedMatch(_Exact):
    """Exact match of the whole reply, as printed in the paper: a reply that reasons first is INCORRECT."""

    name = "printed"
    description = "CrossCheck-Bench: the whole reply, matched exactly"

    def label(self, record: Record) -> LabelAndReason:
        return match_whole_reply(record)
