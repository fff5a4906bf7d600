"""Readings: what the images alone and the passages alone answer, by the models of a build."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.cmc_bench.construction.cmc_passages import states
from benchmarks.errors import NoAnswerError
from benchmarks.retrieval.retrieval_log_row import StoredRow, StoredRows
from benchmarks.retrieval.retrieval_prompts import parts
from benchmarks.rows.record_file import RecordFile
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.normal_form import normalise
from benchmarks.text_model import TextModel, common_failure
from benchmarks.values import compare
from benchmarks.vocabulary import Decoding, Message, Request

SOURCES = ("image", "text")
READING = Decoding(max_tokens=64)
"""The decoding of a reading."""

_LONGEST_VALUE = 120
_MOST_WORDS = 12
_REFUSAL = re.compile(
    r"\b(?:cannot|can't|can not|could not|unable|unknown|unclear|not (?:contain|provide|mention|give|state|specif|show|include"
    r"|clear|possible|available)\w*|no (?:information|mention|data|answer)|n/a|insufficient|impossible to)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(r"[*_\"']*(yes|no)[*_\"']*(?:[,.;:!]|$)", re.IGNORECASE)
_NAMED = re.compile(r"[^:\n]{1,80}:\s+(\S.*)")
_STATED = re.compile(
    r"\b(?:is|was|are|were|equals|reached|totall?ed|stands at|amounts to)\s+"
    r"(?:about |around |approximately |roughly )?(\S.*?)\s*\.?",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"(?<![\w.,])[-−+]?(?:[$€£¥] ?)?\d[\d,]*(?:\.\d+)?(?: ?%)?(?![\w]|[.,]\d)")


def answer_of(reply: str, question: str) -> str:
    """Return the short answer that a reply gives; empty if it gives none, or none that can be told from the rest.

    A few words are the answer. Of a sentence it is what stands behind a colon or the verb, or its only number that is not in the
    question.
    """
    text = visible_answer(reply)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not line or line.endswith(":") or _REFUSAL.search(line):
        return ""
    if yes_no := _YES_NO.match(line):
        return yes_no[1].capitalize()
    if (named := _NAMED.fullmatch(line)) and _is_short(named[1]):
        return _bare(named[1])
    stated = list(_STATED.finditer(line))
    if stated:
        rest = _bare(line[stated[0].start(1) :])
        if _is_short(rest):
            return rest
    elif _is_short(line):
        return _bare(line)
    figures = {figure for figure in _FIGURE.findall(line) if not states(question, figure)}
    return figures.pop() if len(figures) == 1 else ""


def _bare(text: str) -> str:
    """Return a value without the marks of emphasis around it and the full stop behind it."""
    return text.lstrip(" *_`").rstrip(" .*_`")


def _is_short(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_VALUE and len(text.split()) <= _MOST_WORDS and bool(normalise(text))


@dataclass(frozen=True, slots=True)
class Reading:
    """A model's answer from one source alone; ``problem`` is the reason if there is none."""

    answer: str = ""
    problem: str = ""


class Readings:
    """The readings of all rows by several models, in a temporary file; memory holds 8 bytes of each."""

    def __init__(self, rows: StoredRows, models: Sequence[TextModel]) -> None:
        """Read every source whose answer the log lacks. Raises NoAnswerError if a model answers none of many requests."""
        self._rows, self._models = rows, models
        self._replies = RecordFile()
        self._numbers = [array("q", [-1]) * (len(SOURCES) * len(rows)) for _ in models]
        for model, numbers in zip(models, self._numbers, strict=True):
            self._read(model, numbers)

    def _read(self, model: TextModel, numbers: array[int]) -> None:
        requested = failed = 0
        failure = ""
        for reply in model.generate(self._requests()):
            requested += 1
            error = common_failure([reply] * 8, 8)
            failed, failure = failed + bool(error), failure or error
            place = int(reply.request_id.partition("#")[0])
            numbers[place] = self._replies.append([reply.text, error])
        if requested == failed >= 8:
            raise NoAnswerError(
                f"{model.name} answered none of {requested} requests ({failure}). Fix this and build again; earlier answers are "
                "reused."
            )

    def _requests(self) -> Iterator[Request]:
        """Yield a request for each source that the log has no answer of: the instance that shows it alone."""
        for number, row in enumerate(self._rows):
            for offset, source in enumerate(SOURCES):
                if row.read_before(source):
                    continue
                shown = (row.images, ()) if source == "image" else ((), row.passages)
                message = Message("user", parts("paper", row.question, *shown))
                yield Request(str(len(SOURCES) * number + offset), 0, (message,), READING)

    def reading(self, number: int, row: StoredRow, source: str) -> Reading:
        """Return what the models read in a source of a row; the first one's answer if all agree."""
        noun = {"image": "images", "text": "passages"}[source]
        if known := row.read_before(source):
            return Reading(known)
        if not self._models:
            return Reading(problem="its sources were not read; name a model with --reader")
        answers: list[str] = []
        for numbers in self._numbers:
            place = numbers[len(SOURCES) * number + SOURCES.index(source)]
            text, error = self._replies[place] if place >= 0 else ("", "no reply")
            if error:
                return Reading(problem=f"the {noun} alone could not be read: {error}")
            answers.append(answer_of(text, row.question))
        if not all(answers):
            return Reading(problem=f"the {noun} alone give no short answer")
        results = {result.verdict: result for other in answers if (result := compare(answers[0], other, row.question))}
        if "different" in results:
            return Reading(problem=f"the readers differ on what the {noun} say")
        if "unclear" in results:
            return Reading(
                problem=f"unclear whether the readers agree on what the {noun} say: {results['unclear'].reason}"
            )
        return Reading(answers[0])
