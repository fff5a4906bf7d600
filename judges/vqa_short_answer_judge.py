"""``vqa-accuracy`` and ``gqa-match``: the published scoring of OK-VQA and GQA."""

from __future__ import annotations

from benchmarks.text.option_letter import structured_answer
from benchmarks.vocabulary import Record, Verdict
from benchmarks.vqa.vqa_score import gqa_equal, vqa_label
from judges.base import AnswerJudge


class VqaAccuracy(AnswerJudge):
    """The label of an answer's VQA accuracy: how many people gave it; docs/vqa.md gives the rule."""

    name = "vqa-accuracy"
    version = "2"
    benchmarks = ("okvqa",)
    description = "CORRECT to WRONG by how many of ten people gave the answer (VQA accuracy)"

    def label_answer(self, answer: str, record: Record) -> Verdict:
        label, score = vqa_label(structured_answer(answer), record.instance.references.get("answer", ()))
        return Verdict(self.id, "labelled", label, f"VQA accuracy {score:.1f}")


class GqaMatch(AnswerJudge):
    """CORRECT if the answer is GQA's one answer, ignoring case and a final full stop."""

    name = "gqa-match"
    version = "1"
    benchmarks = ("gqa",)
    description = "CORRECT or WRONG: the answer equals the published one, ignoring case and a final full stop"

    def label_answer(self, answer: str, record: Record) -> Verdict:
        gold = (*record.instance.references.get("answer", ()), "")[0]
        right = gqa_equal(structured_answer(answer), gold)
        return Verdict(self.id, "labelled", "CORRECT" if right else "WRONG", "equal" if right else "another answer")
