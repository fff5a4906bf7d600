"""``which-passage``: whose value an answer gives among k passages, by the rules of ``match``."""

from __future__ import annotations

from benchmarks.k_passages.constants import DISTRACTOR, RIGHT, WRONG
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Record, Verdict
from judges.base import FunctionJudge

_LABELS = {"IMAGE": "RIGHT", "TEXT": "WRONG", "BOTH": "BOTH", "NEITHER": "NEITHER", "ABSTAIN": "ABSTAIN"}


class WhichPassage(FunctionJudge):
    """The right passage's value, the wrong ones', a distractor's, another or none."""

    name = "which-passage"
    version = "1"
    benchmarks = ("k-passages",)
    caveat = "an approximation by rule"
    description = (
        "RIGHT, WRONG, BOTH, DISTRACTOR, NEITHER or ABSTAIN: whose value an answer commits to, by the rules of match"
    )

    def prepare(self) -> None:
        import judges.cmc_rules.decision  # noqa: F401

    def judge(self, record: Record) -> Verdict:
        from judges.cmc_rules.decision import label_answer

        text = record.answer.text if record.answer else ""
        answer = visible_answer(text)
        if not answer:
            return self.empty(text)
        question, references = record.instance.question, record.instance.references
        values = {"image": references.get(RIGHT, ()), "text": references.get(WRONG, ())}
        label, reason = label_answer(answer, question, values)
        if label == "NEITHER" and references.get(DISTRACTOR):
            other, other_reason = label_answer(answer, question, {"image": references[DISTRACTOR]})
            if other == "IMAGE":
                return Verdict(self.id, "labelled", "DISTRACTOR", other_reason.replace("image", "distractor"))
        return Verdict(self.id, "labelled", _LABELS[label], _renamed(reason))


def _renamed(reason: str) -> str:
    return reason.replace("the image's value", "the right value").replace("the text's value", "the wrong value")
