"""The ``match`` judge: CMC-Bench's five labels by rule, offline."""

from __future__ import annotations

from collections.abc import Collection

from benchmarks.stats.intervals import span, wilson
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Record, Verdict
from judges.base import FunctionJudge

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
"""The labels of CMC-Bench, section 4.2."""


OWN_ROWS = "own rows"
KINDS = {"chartqa": "charts", "mmmu": "diagrams"}
"""The kind of question that each source asks; all other sources are a user's own rows."""

MEASURED_VERSION = "3"
HELD_OUT = {"charts": (46, 58), "diagrams": (26, 33), OWN_ROWS: (19, 31)}
"""For each kind, the equal labels and the answers of the half of the newest set that was not seen while this version was
written: docs/match.md.
"""


class Match(FunctionJudge):
    """A documented approximation of CMC-Bench's LLM judge (section 4.2), which needs no model.

    It finds the last commitment of the answer and compares its value with the references. ``docs/match-rules.md`` gives
    the rules in order, ``docs/match.md`` the measured agreement with human labels and the known errors.
    """

    name = "match"
    version = "3"
    benchmarks = ("cmc-bench", "retrieval")
    caveat = "an approximation by rule"
    description = "five labels by rule: finds the answer's final commitment and compares it with the references"

    def measured_agreement(self, sources: Collection[str]) -> str:
        if self.version != MEASURED_VERSION:
            return ""
        kinds = dict.fromkeys(KINDS.get(source, OWN_ROWS) for source in sorted(sources) or [""])
        shares = []
        for kind in kinds:
            agreed, count = HELD_OUT[kind]
            share = wilson(agreed, count)
            shares.append(f"{agreed} of {count} on {kind} ({span(f'{share.low:.0%}', f'{share.high:.0%}')})")
        return (
            "On the half of a set of answers in the manner of small models, written and labelled by language models, that was "
            f"not seen while its rules were written, {self.id} gave the same label for {', '.join(shares)}."
        )

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
