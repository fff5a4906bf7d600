"""What a row's passage states: the row's answer, or another value that was right once or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks.cmc_bench.construction.passages import states
from benchmarks.cmc_bench.construction.value_reader import ReadValue, is_readable, read_values
from benchmarks.cmc_bench.evidence import quoted
from benchmarks.cmc_bench.sources.base import SourceRow
from benchmarks.hashed import hash64
from benchmarks.rows.base import RowProblem
from benchmarks.rows.record_file import RecordFile
from benchmarks.values import compare
from benchmarks.values.clean_text import clean, fold
from benchmarks.values.parse import Amount, Listing, Words, parse
from benchmarks.values.words import name_words

SILENT = (
    "the passage states neither the answer nor another value of its kind; write what it states in its text_answer column, or "
    "remove the passage if it is about something else"
)
UNTOLD = (
    "which value the passage states cannot be told, since it does not spell the answer; write what it states in its text_answer "
    "column"
)
NO_PASSAGE = "it has a text_answer, but no passage; write the passage, or leave its text_answer column empty"
SEVERAL = "the passage does not state the answer, but several other values"
UNCLEAR_STATED = "it is unclear whether the passage states the answer"

_WHICH = "write the one that answers the question in its text_answer column"
_MOST_NAMED = 5
_LONGEST_NAME = 6
"""The words of a name that is looked for in passages."""

_NEAR = 0.1
"""The share within which "about 40" may be the answer."""
_NUMERAL = re.compile(r"[0-9]+(?:[.,' ][0-9]+)*")


class KnownNames:
    """The names among the answers of a table, in a temporary file; memory holds some 100 bytes of each."""

    def __init__(self, rows: Iterable[SourceRow] = ()) -> None:
        self._answers = RecordFile()
        self._numbers: dict[int, int] = {}
        for row in rows:
            self.add(row.answer)

    def add(self, answer: str) -> None:
        """Add an answer if it is a name."""
        value = parse(answer)
        if isinstance(value, Words) and 0 < len(value.words) <= _LONGEST_NAME:
            key = hash64(" ".join(value.words))
            if key not in self._numbers:
                self._numbers[key] = self._answers.append(answer)

    def inside(self, text: str) -> Iterator[str]:
        """Yield the known names that ``text`` has, each once; a part of a longer one counts for itself only elsewhere."""
        words, seen, place = name_words(fold(clean(text))), set(), 0
        while place < len(words):
            for size in range(_LONGEST_NAME, 0, -1):
                number = self._numbers.get(hash64(" ".join(words[place : place + size])))
                if number is not None and place + size <= len(words):
                    if number not in seen:
                        seen.add(number)
                        yield str(self._answers[number])
                    place += size - 1
                    break
            place += 1


def stated_answer(row: SourceRow, names: KnownNames) -> str:
    """Return what a row's passage states: its answer, or the value in its place; "" without a passage.

    Raises RowProblem if that cannot be told, with the values that come into question.
    """
    if not row.passage:
        if row.text_answer:
            raise RowProblem(NO_PASSAGE)
        return ""
    if row.text_answer:
        return row.text_answer
    if states(row.passage, row.answer, row.question) and not _is_part_of_name(row, names):
        return row.answer
    if row.conflict and states(row.passage, row.conflict, row.question):
        return row.conflict
    values = list({replace(value, start=0, end=0): value for value in _values(row, names)}.values())
    unclear = None
    for value in values:
        result = compare(value.text, row.answer, row.question)
        if result.verdict == "same":
            return row.answer
        if reason := result.reason if result.verdict == "unclear" else _may_be(value, row):
            unclear = unclear or f"{UNCLEAR_STATED}: it says {quoted(value.text)}, {reason}"
    if unclear:
        raise RowProblem(f"{unclear}; write both alike, or what it states in its text_answer column")
    texts = _different(values, row.question)
    if len(texts) > 1:
        listed = ", ".join(map(quoted, texts[:_MOST_NAMED])) + (" ..." if len(texts) > _MOST_NAMED else "")
        raise RowProblem(f"{SEVERAL}: {listed}; {_WHICH}")
    if not texts:
        raise RowProblem(SILENT if is_readable(parse(row.answer)) else UNTOLD)
    return texts[0]


def _values(row: SourceRow, names: KnownNames) -> Sequence[ReadValue]:
    """Return the values in a row's passage that could stand in the place of its answer."""
    answer = parse(row.answer)
    if is_readable(answer):
        return read_values(row.passage, answer, row.question)
    if isinstance(answer, Listing):
        parts = [text for text in answer.texts if states(row.passage, text, row.question)]
        joined = row.answer if len(parts) == len(answer.texts) else ", ".join(parts)
        return [ReadValue(joined, 0, 0)] if parts else []
    known = _known(row, names)
    asked = set(known.inside(row.question))
    return [ReadValue(name, 0, 0) for name in known.inside(row.passage) if name not in asked]


def _known(row: SourceRow, names: KnownNames) -> KnownNames:
    """Return the names that a row's passage may state: its options if it has any, else the answers of the table."""
    if not row.options:
        return names
    own = KnownNames()
    for option in row.options:
        own.add(option)
    return own


def _is_part_of_name(row: SourceRow, names: KnownNames) -> bool:
    """Return whether a passage spells the answer only in a longer name, such as the blue of dark blue."""
    answer = parse(row.answer)
    if not isinstance(answer, Words):
        return False
    inside = list(_known(row, names).inside(row.passage))
    longer = [name for name in inside if set(answer.words) < set(name_words(fold(clean(name))))]
    return bool(longer) and all(compare(name, row.answer).verdict != "same" for name in inside)


def _may_be(value: ReadValue, row: SourceRow) -> str:
    """Return why a value that differs from the answer may be it nevertheless; "" if it is another."""
    if value.is_bound:
        return "which is only a bound"
    if value.is_rounded and compare(value.text, row.answer, row.question, _NEAR).verdict == "same":
        return "which may be the answer, rounded"
    first, second = parse(value.text), parse(row.answer)
    if not (isinstance(first, Amount) and isinstance(second, Amount)) or first.number.scaled == second.number.scaled:
        return ""
    # 32 Mio. EUR and 32,1: the table may leave out what its header says.
    numerals = [match[0] for text in (value.text, row.answer) if (match := _NUMERAL.search(text))]
    if len(numerals) == 2 and compare(numerals[0], numerals[1]).verdict != "different":
        return "and only one of them says thousands or millions"
    return ""


def _different(values: Sequence[ReadValue], question: str) -> list[str]:
    """Return the texts of values without those that are the same as an earlier one."""
    texts: list[str] = []
    for value in values:
        if len(texts) <= _MOST_NAMED and all(compare(value.text, t, question).verdict != "same" for t in texts):
            texts.append(value.text)
    return texts
