"""The value that a row's passage states: the row's answer, or another value that was right once or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.cmc_bench.construction.cmc_passages import answer_spans, states
from benchmarks.cmc_bench.construction.value_context import BOUND, doubt
from benchmarks.cmc_bench.construction.value_reader import ReadValue, is_readable, read_values
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.hash_collections import hash64
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.record_file import RecordFile
from benchmarks.source_agreement import quoted
from benchmarks.values import compare
from benchmarks.values.clean_text import clean, fold
from benchmarks.values.name_words import name_words
from benchmarks.values.parse_value import Amount, Listing, Polarity, Words, parse
from benchmarks.values.question_facts import read_question

_WRITE = "write what it states in its text_answer column"
SILENT = (
    f"the passage states neither the answer nor another value of its kind; {_WRITE}, or remove the passage if it is about "
    "something else"
)
UNREAD = f"the passage has numbers, but none that plainly answers the question; {_WRITE}"
UNTOLD = f"which value the passage states cannot be told, since it does not spell the answer; {_WRITE}"
NO_PASSAGE = "it has a text_answer, but no passage; write the passage, or leave its text_answer column empty"
SEVERAL = "the passage does not state the answer, but several other values"
CONTRADICTS_COLUMN = "its text_answer is not what the passage says"
EVERY_OPTION = "the passage names every option of the row"
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

    def __init__(self) -> None:
        self._answers = RecordFile()
        self._numbers: dict[int, int] = {}

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
        _check_column(row)
        return row.text_answer
    if _spells_answer(row, names):
        return row.answer
    if row.conflict and "" in _doubts(row, row.conflict).values():
        return row.conflict
    values = list({replace(value, start=0, end=0): value for value in _values(row, names)}.values())
    if _has_answer(values, row):
        return row.answer
    texts = _different(values, row.question)
    if len(texts) > 1:
        listed = ", ".join(map(quoted, texts[:_MOST_NAMED])) + (" ..." if len(texts) > _MOST_NAMED else "")
        raise RowProblem(f"{SEVERAL}: {listed}; {_WHICH}")
    if not texts:
        has_numbers = any(map(str.isdigit, row.passage))
        raise RowProblem((UNREAD if has_numbers else SILENT) if is_readable(parse(row.answer)) else UNTOLD)
    if all(value.doubt for value in values):
        raise _unclear(texts[0], values[0].doubt)
    return texts[0]


def _has_answer(values: Sequence[ReadValue], row: SourceRow) -> bool:
    """Return whether one of the values is the row's answer without a doubt. Raises RowProblem if none is, but one may be."""
    unclear = None
    for value in values:
        result = compare(value.text, row.answer, row.question)
        if result.verdict == "same" and not value.doubt:
            return True
        reason = result.reason if result.verdict == "unclear" else _may_be(value, row)
        if result.verdict == "same" or value.doubt == BOUND:
            reason = value.doubt
        if reason:
            unclear = unclear or _unclear(value.text, reason)
    if unclear:
        raise unclear
    return False


def _spells_answer(row: SourceRow, names: KnownNames) -> bool:
    """Return whether a row's passage plainly spells its answer. Raises RowProblem if it spells it, but may not state it."""
    if isinstance(parse(row.answer), Polarity):
        return False
    doubts = _doubts(row, row.answer)
    if len(row.options) > 1 and all(states(row.passage, option) for option in row.options):
        raise RowProblem(f"{EVERY_OPTION}; {_WRITE}")
    if doubts and "" not in doubts.values():
        raise _unclear(*next(iter(doubts.items())))
    return bool(doubts) and not _is_part_of_name(row, names)


def slip_warning(answer: str, stated: str) -> str:
    """Return a warning if what a passage states looks like the answer with a slip in its digits; "" otherwise."""
    first, second = parse(answer), parse(stated)
    if not (isinstance(first, Amount) and isinstance(second, Amount)):
        return ""
    a, b = abs(first.number.value), abs(second.number.value)
    digits = [sorted(c for c in text if c.isdigit()) for text in (answer, stated)]
    shifted = a and b and max(a, b) / min(a, b) in (10, 100, 1000)
    if a == b or not (shifted or (digits[0] == digits[1] and len(set(digits[0])) > 1)):
        return ""
    return f"the passage says {quoted(stated)}, the answer is {quoted(answer)}: check that it is no slip"


def _unclear(text: str, reason: str) -> RowProblem:
    return RowProblem(f"{UNCLEAR_STATED}: it says {quoted(text)}, {reason}; {_WRITE}")


def _doubts(row: SourceRow, value: str) -> dict[str, str]:
    """Return the spellings of a value in a row's passage, each with the reason why it may not state it, "" if it does."""
    doubts: dict[str, str] = {}
    for start, end in answer_spans(row.passage, value, row.question):
        reason = doubt(row.passage, start, end, value, row.question)
        doubts[row.passage[start:end]] = reason and doubts.get(row.passage[start:end], reason)
    return doubts


def _check_column(row: SourceRow) -> None:
    """Raise RowProblem if a row's passage plainly states one value, which its text_answer is not."""
    if not is_readable(parse(row.text_answer)) or states(row.passage, row.text_answer, row.question):
        return
    values = [value for value in read_values(row.passage, row.text_answer, row.question) if not value.doubt]
    texts = _different(values, row.question)
    own = replace(row, answer=row.text_answer)
    if (
        len(texts) == 1
        and compare(texts[0], own.answer, row.question).verdict == "different"
        and not _may_be(values[0], own)
    ):
        raise RowProblem(
            f"{CONTRADICTS_COLUMN}: the column has {quoted(own.answer)}, the passage {quoted(texts[0])}; correct one of them"
        )


def _values(row: SourceRow, names: KnownNames) -> Sequence[ReadValue]:
    """Return the values in a row's passage that could stand in the place of its answer."""
    answer = parse(row.answer)
    if is_readable(answer):
        return read_values(row.passage, row.answer, row.question)
    if isinstance(answer, Listing):
        parts = [text for text in answer.texts if states(row.passage, text, row.question)]
        if read_question(row.question).ordered:
            parts.sort(key=lambda part: next(answer_spans(row.passage, part, row.question)))
        joined = row.answer if parts == [*answer.texts] else ", ".join(parts)
        return [ReadValue(joined, 0, 0)] if parts else []
    known = _known(row, names)
    asked = set(known.inside(row.question))
    inside = (name for name in known.inside(row.passage) if name not in asked)
    return [ReadValue(name, 0, 0) for name in inside if "" in (_doubts(row, name).values() or [""])]


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
    if value.is_rounded and compare(value.text, row.answer, row.question, _NEAR).verdict == "same":
        return "which may be the answer, rounded"
    first, second = parse(value.text), parse(row.answer)
    if isinstance(first, Amount) and isinstance(second, Amount) and first.number.value == -second.number.value > 0:
        return "without a sign"
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
