"""The ``match`` judge: CMC-Bench's five labels by rule, offline."""

from __future__ import annotations

from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Record, Verdict
from judges.base import FunctionJudge

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
"""The labels of CMC-Bench, section 4.2."""


class Match(FunctionJudge):
    """A documented approximation of CMC-Bench's LLM judge (section 4.2), which needs no model.

    It finds the last commitment of the answer and compares its value with the references. ``docs/match.md`` gives the
    rules in order, the measured agreement with human labels, and the known errors.
    """

    name = "match"
    version = "2"
    benchmarks = ("cmc-bench",)
    caveat = "an approximation by rule, which labels about nine answers in ten as people do"
    description = "five labels by rule: finds the answer's final commitment and compares it with the references"

    def prepare(self) -> None:
        import judges.cmc_rules.decision  # noqa: F401

    def judge(self, record: Record) -> Verdict:
        # Imported here because the rules' patterns take 0.15 s to compile, and most commands judge nothing.
        from judges.cmc_rules.decision import label_answer

        text = record.answer.text if record.answer else ""
        answer = visible_answer(text)
        if not answer:
            return self.empty(text)
        label, reason = label_answer(answer, record.instance.question, record.instance.references)
        return Verdict(self.id, "labelled", label, reason)
