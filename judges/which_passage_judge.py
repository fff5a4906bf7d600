"""``which-passage``: whose value an answer gives among k passages, by the rules of ``match``."""

from __future__ import annotations

from benchmarks.k_passages.k_passages_constants import DISTRACTOR, RIGHT, WRONG
from benchmarks.vocabulary import Record, Verdict
from judges.base import AnswerJudge
from judges.cmc_rules.rules_preparation import prepare, wait_until_prepared

_LABELS = {"IMAGE": "RIGHT", "TEXT": "WRONG", "BOTH": "BOTH", "NEITHER": "NEITHER", "ABSTAIN": "ABSTAIN"}


class WhichPassage(AnswerJudge):
    """The right passage's value, the wrong ones', a distractor's, another or none; undecided where ``match`` is."""

    name = "which-passage"
    version = "2"
    benchmarks = ("k-passages",)
    caveat = "an approximation by rule"
    description = (
        "RIGHT, WRONG, BOTH, DISTRACTOR, NEITHER or ABSTAIN: whose value an answer commits to, by the rules of match"
    )

    def prepare(self) -> None:
        prepare()

    def label_answer(self, answer: str, record: Record) -> Verdict:
        from judges.cmc_rules.answer_decision import UNDECIDED
        from judges.cmc_rules.decision_rules import decide

        wait_until_prepared()
        question, references = record.instance.question, record.instance.references
        cut_off = record.is_cut_off
        values = {"image": references.get(RIGHT, ()), "text": references.get(WRONG, ())}
        decision = decide(answer, question, values, cut_off=cut_off)
        if decision.label == "NEITHER" and references.get(DISTRACTOR):
            other = decide(answer, question, {"image": references[DISTRACTOR]}, cut_off=cut_off)
            if other.label == "IMAGE":
                return Verdict(self.id, "labelled", "DISTRACTOR", other.reason)
            decision = other if other.behaviour == UNDECIDED else decision
        if decision.behaviour == UNDECIDED:
            return Verdict(self.id, "undecided", reason=decision.reason)
        return Verdict(self.id, "labelled", _LABELS[decision.label], decision.reason)
