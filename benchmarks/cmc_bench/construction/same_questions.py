"""Rows of a user's table that ask the same question about the same picture: repetitions and contradictions."""

from __future__ import annotations

from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.rows.record_file import RecordFile
from benchmarks.source_agreement import quoted
from benchmarks.values import compare
from benchmarks.vocabulary import digest

REPEATED_ROW = "repeated"
CONTRADICTORY = "another row contradicts it"
MAY_CONTRADICT = "unclear whether another row contradicts it"

_COMPARED = 64
"""The number of last rows of a question that another one is compared with."""

_MARKS = " \t\n.?!:;"


def same_question(row: SourceRow) -> str:
    """Return a digest of a row's question and options.

    It is equal where the options are, and the questions differ only in case, in spacing or in the mark at their end.
    """
    return digest([" ".join(row.question.casefold().split()).strip(_MARKS) or row.question, *row.options])


class SameQuestions:
    """The rows of a table by picture and :func:`same_question`, in a temporary file.

    Memory holds some 100 bytes of each question.
    """

    def __init__(self) -> None:
        self._records = RecordFile()
        self._groups: dict[int, int] = {}
        self._problems: dict[int, int] = {}

    def add(self, number: int, pixels: str, row: SourceRow) -> None:
        """Add a row by its number; ``pixels`` is the digest of its picture's pixels."""
        key = int(digest([pixels, same_question(row)])[:16], 16)
        group = self._records[self._groups[key]] if key in self._groups else []
        texts = digest([row.passage, row.conflict, row.image_answer, row.text_answer])
        for other, where, answer, image_answer, other_texts in group:
            if texts == other_texts and (answer, image_answer) == (row.answer, row.image_answer):
                self._set(number, f"{REPEATED_ROW}: {where} is the same row; remove one of them")
                return
            if number in self._problems and other in self._problems:
                continue  # a comparison takes far longer than all else, and neither row is used
            result = compare(answer, row.answer, row.question)
            if result.verdict == "same":
                shown = row.image_answer, image_answer
                if all(shown) and compare(*shown, row.question).verdict == "different":
                    reason = f"{CONTRADICTORY}: {where} has the image_answer {quoted(shown[1])}, {row.row} {quoted(shown[0])}"
                    for contradictory in (other, number):
                        self._set(contradictory, f"{reason} for the same picture and question; correct one of them")
                    continue
                if texts == other_texts:
                    self._set(number, f"{REPEATED_ROW}: {where} is the same row; remove one of them")
                    return
                continue
            says = (
                f"{where} says {quoted(answer)}, {row.row} says {quoted(row.answer)} for the same picture and question"
            )
            reason = f"{CONTRADICTORY}: {says}; remove the wrong one"
            if result.verdict == "unclear":
                reason = f"{MAY_CONTRADICT}: {says}, and {result.reason}; remove one, or write both answers alike"
            for contradictory in (other, number):
                self._set(contradictory, reason)
        self._groups[key] = self._records.append(
            [*group, [number, row.row, row.answer, row.image_answer, texts]][-_COMPARED:]
        )

    def problem(self, number: int) -> str | None:
        """Return why a row is left out, once all rows were added; None if it is used."""
        return self._records[self._problems[number]] if number in self._problems else None

    def _set(self, number: int, reason: str) -> None:
        if number not in self._problems:
            self._problems[number] = self._records.append(reason)
