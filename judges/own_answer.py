"""``own-answer``: whether a model keeps to its own answer or takes the evidence's, and whether it detects a conflict."""

from __future__ import annotations

from benchmarks.base import Record, Verdict
from benchmarks.mmkc_bench.constants import ANSWER, DETECTION, ORIGINAL, form_of
from benchmarks.mmkc_bench.parse_answer import label, letter, own_answer, question_of
from benchmarks.pope.parse_answer import read_yes_no
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import structured_answer
from judges.base import FunctionJudge


class OwnAnswer(FunctionJudge):
    """MMKC-Bench by rule; docs/mmkc-bench.md gives the rules in their order.

    Under conflict ORIGINAL, COUNTER or IRRELEVANT, beside the model's answer without conflict: multiple choice by one letter,
    open answers by their words. In the original setting every answer that can be compared is ORIGINAL. Detection is CORRECT
    or WRONG; an answer that says neither yes nor no is WRONG. Unparsed, each with its reason: an answer that is empty, a
    multiple choice without one letter, and whatever has no answer of the model's own to stand beside.

    Version 2 compares sentences by what they assert, and reads more forms of a chosen letter.
    """

    name = "own-answer"
    version = "2"
    benchmarks = ("mmkc-bench",)
    description = "ORIGINAL, COUNTER or IRRELEVANT by letter or words; yes or no for detection"

    def judge(self, record: Record) -> Verdict:
        text = record.answer.text if record.answer else ""
        answer = visible_answer(text)
        if not answer:
            return self.empty(text)
        condition, references = record.instance.condition, record.instance.references
        if condition in DETECTION:
            said, rule = read_yes_no(structured_answer(answer))
            right = said is not None and said.capitalize() in references.get(ANSWER, ())
            return Verdict(self.id, "labelled", "CORRECT" if right else "WRONG", f"{said or 'neither'}: {rule}")
        if condition in ORIGINAL:
            own, why = letter(answer) if form_of(condition) == "mc" else (answer, "its words")
            return self._unparsed(why) if own is None else Verdict(self.id, "labelled", "ORIGINAL", why)
        own, why = own_answer(record)
        if own is None:
            return self._unparsed(why)
        found, rule = label(answer, own, condition, references, question_of(record))
        return self._unparsed(rule) if found is None else Verdict(self.id, "labelled", found, rule)

    def _unparsed(self, reason: str) -> Verdict:
        return Verdict(self.id, "unparsed", reason=reason)
