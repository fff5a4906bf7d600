"""``yes-no``: whether an answer's yes or no is the correct one (POPE)."""

from __future__ import annotations

from benchmarks.text.option_letter import structured_answer
from benchmarks.text.yes_no_answer import read_yes_no
from benchmarks.vocabulary import Record, Verdict
from judges.base import AnswerJudge


class YesNo(AnswerJudge):
    """CORRECT or WRONG by the yes or no in the answer; docs/pope.md gives the rules in order.

    An answer that says neither is WRONG, and its reason begins with "neither"; POPE's own evaluation would mostly read
    a yes.
    """

    name = "yes-no"
    version = "2"
    benchmarks = ("pope",)
    description = "CORRECT or WRONG by the yes or no at the beginning, or in the first sentence, of the answer"

    def label_answer(self, answer: str, record: Record) -> Verdict:
        word, rule = read_yes_no(structured_answer(answer))
        label = "CORRECT" if (word,) == tuple(record.instance.references.get("answer", ())) else "WRONG"
        return Verdict(self.id, "labelled", label, f"{word or 'neither'}: {rule}")
