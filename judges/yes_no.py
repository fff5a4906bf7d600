"""``yes-no``: whether an answer's yes or no is the right one (POPE)."""

from __future__ import annotations

from benchmarks.base import Record, Verdict
from benchmarks.pope.parse_answer import read_yes_no
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import structured_answer
from judges.base import FunctionJudge


class YesNo(FunctionJudge):
    """Labels CORRECT or WRONG by the yes or no that the answer says; docs/pope.md gives the rules in their order.

    An answer that says neither is WRONG, and its reason begins with "neither"; POPE's own evaluation would mostly read a yes.
    """

    name = "yes-no"
    version = "2"
    benchmarks = ("pope",)
    description = "CORRECT or WRONG by the yes or no at the beginning, or in the first sentence, of the answer"

    def judge(self, record: Record) -> Verdict:
        text = record.answer.text if record.answer else ""
        answer = visible_answer(text)
        if not answer:
            return self.empty(text)
        said, rule = read_yes_no(structured_answer(answer))
        label = "CORRECT" if (said,) == tuple(record.instance.references.get("answer", ())) else "WRONG"
        return Verdict(self.id, "labelled", label, f"{said or 'neither'}: {rule}")
