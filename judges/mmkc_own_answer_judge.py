"""``own-answer``: whether a model keeps to its own answer or adopts the evidence's, and whether it detects a conflict."""

from __future__ import annotations

from benchmarks.mmkc_bench.mmkc_constants import (
    ANSWER,
    ORIGINAL_CONDITIONS,
    WITHOUT_SOURCES,
    asks_for_agreement,
    form_of,
)
from benchmarks.mmkc_bench.mmkc_parse_answer import (
    chosen_letter,
    is_true,
    label_answer,
    own_answer,
    question_and_subject,
)
from benchmarks.text.option_letter import structured_answer
from benchmarks.text.yes_no_answer import read_yes_no
from benchmarks.vocabulary import Record, Verdict
from judges.base import AnswerJudge


class OwnAnswer(AnswerJudge):
    """MMKC-Bench by rule; docs/mmkc-bench.md gives the rules in order.

    Under conflict the label is ORIGINAL, COUNTER or IRRELEVANT, compared with the model's answer without conflict:
    multiple choice by its letter, open answers by their words. In the original setting every comparable answer is
    ORIGINAL. Without sources an answer is CORRECT if it is true of the image, else WRONG. Detection is CORRECT or
    WRONG, too; an answer that says neither yes nor no is WRONG. Unparsed, each with its reason, are an empty answer, a
    multiple choice without exactly one letter, and an answer for which the model's own answer is missing.

    Version 2 compares sentences by their assertions, and reads more forms of a chosen letter. Version 3 compares values, such
    as ``12 500`` and ``12,500``, or ``4 July 1776`` and ``July 4, 1776``.
    """

    name = "own-answer"
    version = "3"
    benchmarks = ("mmkc-bench",)
    description = "ORIGINAL, COUNTER or IRRELEVANT by letter or words; yes or no for detection"

    def label_answer(self, answer: str, record: Record) -> Verdict:
        condition, references = record.instance.condition, record.instance.references
        if asks_for_agreement(condition):
            word, rule = read_yes_no(structured_answer(answer))
            is_right = word is not None and word.capitalize() in references.get(ANSWER, ())
            return Verdict(self.id, "labelled", "CORRECT" if is_right else "WRONG", f"{word or 'neither'}: {rule}")
        if condition in WITHOUT_SOURCES:
            verdict_label, rule = is_true(answer, record)
            return self._unparsed(rule) if verdict_label is None else Verdict(self.id, "labelled", verdict_label, rule)
        if condition in ORIGINAL_CONDITIONS:
            own_text, why = chosen_letter(answer) if form_of(condition) == "mc" else (answer, "its words")
            return self._unparsed(why) if own_text is None else Verdict(self.id, "labelled", "ORIGINAL", why)
        own_text, why = own_answer(record)
        if own_text is None:
            return self._unparsed(why)
        verdict_label, rule = label_answer(answer, own_text, condition, references, question_and_subject(record))
        return self._unparsed(rule) if verdict_label is None else Verdict(self.id, "labelled", verdict_label, rule)

    def _unparsed(self, reason: str) -> Verdict:
        return Verdict(self.id, "unparsed", reason=reason)
