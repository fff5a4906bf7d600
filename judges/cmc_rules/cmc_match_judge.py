"""The ``match`` judge, whose rules are loaded with the first verdict."""

from __future__ import annotations

from benchmarks.protocols.without_sources import judged_references
from benchmarks.vocabulary import RIGHT_VALUE, Record, Verdict
from judges.base import AnswerJudge
from judges.cmc_rules.rules_preparation import prepare, wait_until_prepared


class Match(AnswerJudge):
    """A documented approximation of CMC-Bench's LLM judge (section 4.2), which needs no model.

    It labels an answer only in the forms that its rules recognise, and leaves every other undecided.
    """

    name = "match"
    version = "4"
    benchmarks = ("cmc-bench", "retrieval")
    caveat = "an approximation by rule"
    description = "five labels by rule, or undecided where the rules cannot show one"

    def prepare(self) -> None:
        prepare()

    def label_answer(self, answer: str, record: Record) -> Verdict:
        # Imported here because the rules' patterns take 0.15 s to compile, and most commands judge nothing.
        from judges.cmc_rules.answer_decision import UNDECIDED, Decision
        from judges.cmc_rules.decision_rules import decide

        wait_until_prepared()
        instance, cut_off = record.instance, record.is_cut_off
        decision = decide(answer, instance.question, judged_references(instance), cut_off=cut_off)
        if decision.behaviour == UNDECIDED:
            return Verdict(self.id, "undecided", reason=decision.reason)
        if decision.behaviour == "invents" and (right := instance.references.get(RIGHT_VALUE)):
            alone = decide(answer, instance.question, {"image": right}, cut_off=cut_off)
            if alone.behaviour == "image":
                decision = Decision("right", "gives the right value, which no source has")
        return Verdict(self.id, "labelled", decision.label, decision.reason, behaviour=decision.behaviour)
