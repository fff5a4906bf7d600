"""Candidates: the usable rows of the sources, with their conflict type."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from benchmarks.cmc_bench.constants import ConflictType
from benchmarks.cmc_bench.construction.passages import states
from benchmarks.cmc_bench.sources.base import Family, SourceRow
from benchmarks.cmc_bench.sources.mmmu import UNKNOWN_ANSWER
from benchmarks.errors import MediaError
from benchmarks.media import examine_image, image_suffix, pixel_digest
from benchmarks.rows.files import Loader, ShownImage, SkippedRow
from benchmarks.rows.record_file import RecordFile
from benchmarks.text.normal_form import CoarseType, coarse_type, normalise
from benchmarks.values import compare
from benchmarks.vocabulary import Media, digest

LONGEST_QUESTION = 20_000
LONGEST_ANSWER = 2_000
LONGEST_PASSAGE = 20_000
_SHORT_TEXT = 80
_PICTURES = 16_384
"""The number of images whose facts are kept, so that rows with the same image decode it once."""

_COMPARED = 64
"""The number of last answers to a question about a picture that another one is compared with."""

INVALID_UNICODE = "the text is not valid Unicode"
ANSWER_NOT_STATED = "the passage does not state the answer"
CONFLICT_IS_ANSWER = "the conflicting value is the answer"
CONFLICT_UNCLEAR = "it is unclear whether the conflicting value is the answer"
CONFLICT_STATED = "the passage states the conflicting value as well, or may do so"
REPEATED = "repeated: another row has this picture, question and answer"

_IMAGE_MARK = re.compile(r"<image ?[0-9]{1,3}>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CandidateImage:
    """An image's ``suffix``, with its dot, the digest of its pixels, and what a person should know about it."""

    suffix: str
    pixels: str
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A row that can become an example, or lend its image or its answer to one.

    ``sha256`` is of the image's bytes; ``image.pixels`` is equal where two images look the same.
    """

    row: SourceRow
    type: ConflictType
    sha256: str
    image: CandidateImage

    @property
    def media(self) -> Media:
        """The image as a build stores it."""
        return Media(self.sha256, self.image.suffix)

    @cached_property
    def id(self) -> str:
        """The example's id, derived from its content."""
        return f"{self.type}-{digest([self.row.family, self.sha256, *self.row.content])[:12]}"

    @cached_property
    def normal(self) -> str:
        return normalise(self.row.answer)

    @cached_property
    def coarse(self) -> CoarseType:
        return coarse_type(self.row.answer)


def conflict_type(family: Family, answer: str) -> ConflictType:
    """Return the conflict type of a row (section 3.2).

    ChartQA: temporal if the gold is a four-digit year in [1900, 2100], else factual. MMMU: entity if the gold is
    non-numeric and under 80 characters, else granularity.
    """
    coarse = coarse_type(answer)
    if family == "chartqa":
        return "temporal" if coarse == "year" else "factual"
    return "entity" if coarse in ("text", "yes/no") and len(answer) < _SHORT_TEXT else "granularity"


def candidates(rows: Iterable[SourceRow | SkippedRow]) -> Iterator[Candidate | SkippedRow]:
    """Yield the usable rows, and the others with the reason; of rows with the same content the first is used.

    Memory holds 192 bits of each row's content, and its number.
    """
    pictures: OrderedDict[str, CandidateImage] = OrderedDict()
    known = _KnownRows()
    for row in rows:
        if isinstance(row, SkippedRow):
            yield row
            continue
        problem = (
            text_problem(row.question, row.subject + row.subfield + row.document)
            or answer_problem(row.answer)
            or passage_problem(row)
        )
        if problem:
            yield SkippedRow(row.source, row.row, problem)
            continue
        try:
            data = row.image()
            sha256 = hashlib.sha256(data).hexdigest()
            if sha256 not in pictures:
                pictures[sha256] = inspect_image(data, row.image)
                if len(pictures) > _PICTURES:
                    pictures.popitem(last=False)
        except MediaError as error:
            yield SkippedRow(row.source, row.row, f"the image {error.reason}")
            continue
        image = pictures[sha256]
        if not known.add(image.pixels, row):
            yield SkippedRow(row.source, row.row, REPEATED)
            continue
        yield Candidate(row, conflict_type(row.family, row.answer), sha256, image)


class _KnownRows:
    """The content of the rows so far, and their answers by picture, question and own texts in a temporary file."""

    def __init__(self) -> None:
        self._contents: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._answers = RecordFile()

    def add(self, pixels: str, row: SourceRow) -> bool:
        """Add a row; return False if one with the same value as its answer is known."""
        content = int(digest([pixels, *row.content])[:32], 16)
        asked = int(digest([pixels, row.question, row.passage, row.conflict])[:16], 16)
        answers = self._answers[self._numbers[asked]] if asked in self._numbers else []
        if content in self._contents or any(compare(a, row.answer, row.question).verdict == "same" for a in answers):
            return False
        self._contents.add(content)
        self._numbers[asked] = self._answers.append([*answers, row.answer][-_COMPARED:])
        return True


def inspect_image(data: bytes, load: Loader) -> CandidateImage:
    """Return the facts of an image that ``load`` loads. Raises MediaError for an image that no model can be given."""
    shown = examine_image(data)
    notes, warnings = shown.notes, shown.warnings
    if isinstance(load, ShownImage) and (original := load.original()) != data:
        before = examine_image(original)
        notes, warnings = before.notes, tuple(dict.fromkeys((*before.warnings, *warnings)))
    return CandidateImage(image_suffix(data) or "", pixel_digest(shown.image), notes, warnings)


def answer_problem(answer: str) -> str | None:
    """Return why an answer cannot stand in a passage or be a reference; None if it can."""
    if not normalise(answer):
        return "the row has no answer"
    if answer.strip() == "?":
        return UNKNOWN_ANSWER
    if _IMAGE_MARK.search(answer):
        return "the answer is itself an image"
    if len(answer) > LONGEST_ANSWER:
        return f"the answer is longer than {LONGEST_ANSWER} characters"
    return None if _is_unicode(answer) else INVALID_UNICODE


def passage_problem(row: SourceRow) -> str | None:
    """Return why a row's own passage or conflicting value is unusable; None if it is usable or absent."""
    if len(row.passage) > LONGEST_PASSAGE:
        return f"the passage is longer than {LONGEST_PASSAGE} characters"
    if not _is_unicode(row.passage):
        return INVALID_UNICODE
    if row.passage and not states(row.passage, row.answer, row.question):
        return ANSWER_NOT_STATED
    if not row.conflict:
        return None
    if problem := answer_problem(row.conflict):
        return f"of the conflicting value: {problem}"
    result = compare(row.conflict, row.answer, row.question)
    if result.verdict == "same":
        return CONFLICT_IS_ANSWER
    if result.verdict == "unclear":
        return f"{CONFLICT_UNCLEAR}: {result.reason}; write both alike, or leave its conflict column empty"
    is_stated = row.passage and states(row.passage, row.conflict, row.question, ("same", "unclear"))
    return CONFLICT_STATED if is_stated else None


def text_problem(question: str, beside: str) -> str | None:
    """Return why a question, or its accompanying text, is unusable; None if it is usable."""
    if not question.strip():
        return "the row has no question"
    if len(question) > LONGEST_QUESTION:
        return f"the question is longer than {LONGEST_QUESTION} characters"
    return None if _is_unicode(question + beside) else INVALID_UNICODE


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
