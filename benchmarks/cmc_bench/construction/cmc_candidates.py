"""Candidates: the usable rows of the sources, with their conflict type."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property

from benchmarks.cmc_bench.cmc_constants import AS_FOUND, CONSTRUCTED, ConflictType
from benchmarks.cmc_bench.construction.cmc_passages import states, written_like
from benchmarks.cmc_bench.construction.same_questions import SameQuestions
from benchmarks.cmc_bench.construction.value_in_passage import KnownNames, slip_warning, stated_answer
from benchmarks.cmc_bench.sources.cmc_source_row import OWN_ROWS, Family, SourceRow
from benchmarks.cmc_bench.sources.mmmu import UNKNOWN_ANSWER
from benchmarks.errors import MediaError
from benchmarks.media import examine_image, image_suffix, pixel_digest
from benchmarks.rows.files import Loader, ShownImage, SkippedRow
from benchmarks.rows.reader_types import NOT_UNICODE, RowProblem, is_unicode
from benchmarks.rows.record_file import RecordFile
from benchmarks.source_agreement import condition_of, decide
from benchmarks.text.normal_form import CoarseType, coarse_type, normalise
from benchmarks.values import compare
from benchmarks.values.parse_value import Amount, parse
from benchmarks.vocabulary import Media, digest

LONGEST_QUESTION = 20_000
LONGEST_ANSWER = 2_000
LONGEST_PASSAGE = 20_000
_SHORT_TEXT = 80
_PICTURES = 16_384
"""The number of images whose facts are kept, so that rows with the same image decode it once."""

_COMPARED = 64
"""The number of last answers to a question about a picture that another one is compared with."""

CONFLICT_IS_ANSWER = "the conflicting value is the answer"
CONFLICT_UNCLEAR = "it is unclear whether the conflicting value is the answer"
CONFLICT_STATED = "the passage states the conflicting value as well, or may do so"
REPEATED = "repeated: another row has this picture, question and answer"

_SCALED = 1000
"""The number from which one is not meant in thousands or millions."""
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

    @property
    def is_conflict(self) -> bool:
        """True if the row's own sources disagree with its answer, or with each other."""
        return bool(self.row.image_answer or self.row.text_answer)

    @property
    def condition(self) -> str:
        """The condition that the row's own sources are in."""
        return condition_of(is_image=not self.row.image_answer, is_text=not self.row.text_answer)[0]

    @property
    def origin(self) -> str:
        """``AS_FOUND`` if the row's own sources disagree, else ``CONSTRUCTED``."""
        return AS_FOUND if self.is_conflict else CONSTRUCTED

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

    Rows are read twice, since one may contradict an earlier one of the same table; an iterator is copied to memory. Otherwise
    memory holds some 200 bits of each row's content, and its number.
    """
    rows = list(rows) if iter(rows) is rows else rows
    checked, same_questions, names = RecordFile(), SameQuestions(), KnownNames()
    known, images = _KnownRows(), _Images()
    for number, row in enumerate(rows):
        outcome = row if isinstance(row, SkippedRow) else images.examine(row)
        if isinstance(row, SourceRow) and not isinstance(outcome, SkippedRow):
            _, image = outcome
            if row.source == OWN_ROWS:
                same_questions.add(number, image.pixels, row)
                names.add(row.answer)
            elif not known.add(image.pixels, row):
                outcome = SkippedRow(row.source, row.row, REPEATED)
        checked.append([astuple(outcome)] if isinstance(outcome, SkippedRow) else [outcome[0], *astuple(outcome[1])])
    for number, row in enumerate(rows):
        first, *image_facts = checked[number]
        if isinstance(row, SkippedRow) or not image_facts:
            yield SkippedRow(*first)
            continue
        if row.source == OWN_ROWS:
            try:
                row = _with_evidence(row, same_questions.problem(number), names)
            except RowProblem as problem:
                yield SkippedRow(row.source, row.row, str(problem))
                continue
        suffix, pixels, notes, warnings = image_facts
        slip = slip_warning(row.answer, row.text_answer) if row.source == OWN_ROWS and row.text_answer else ""
        image = CandidateImage(suffix, pixels, tuple(notes), (*warnings, *filter(None, [slip])))
        yield Candidate(row, conflict_type(row.family, row.answer), first, image)


class _Images:
    """The digests and facts of rows' images; those of the last ones are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, CandidateImage] = OrderedDict()

    def examine(self, row: SourceRow) -> tuple[str, CandidateImage] | SkippedRow:
        """Return a row's image, with the digest of its bytes, or why the row's texts or its image are unusable."""
        problem = (
            text_problem(row.question, row.subject + row.subfield + row.document)
            or answer_problem(row.answer)
            or _own_text_problem(row)
        )
        if problem:
            return SkippedRow(row.source, row.row, problem)
        try:
            data = row.image()
            sha256 = hashlib.sha256(data).hexdigest()
            if sha256 not in self._kept:
                self._kept[sha256] = inspect_image(data, row.image)
                if len(self._kept) > _PICTURES:
                    self._kept.popitem(last=False)
        except MediaError as error:
            return SkippedRow(row.source, row.row, f"the image {error.reason}")
        return sha256, self._kept[sha256]


def _with_evidence(row: SourceRow, problem: str | None, names: KnownNames) -> SourceRow:
    """Return a row of a user's own with what its sources say where that is not its answer. Raises RowProblem."""
    if problem:
        raise RowProblem(problem)
    if not (row.passage or row.conflict or row.image_answer or row.text_answer):
        return row
    row = replace(row, conflict=_with_unit(row.conflict, row.answer))
    decision = decide(row.answer, row.image_answer or row.answer, stated_answer(row, names) or row.answer, row.question)
    if isinstance(decision, str):
        raise RowProblem(decision)
    image, text = (
        "" if decision.references[source] == row.answer else decision.references[source] for source in ("image", "text")
    )
    if not (image or text) and (reason := _conflict_problem(row)):
        raise RowProblem(reason)
    return replace(row, image_answer=image, text_answer=text)


def _with_unit(conflict: str, answer: str) -> str:
    """Return a conflicting value that is a bare number with the unit of the answer."""
    first, second = parse(conflict), parse(answer)
    if not (conflict and isinstance(first, Amount) and isinstance(second, Amount)):
        return conflict
    is_bare = first.number.unit is None and not first.noun and not first.number.scaled and first.number.form != "share"
    is_whole = bool(second.number.scaled) and first.number.value >= _SCALED  # 3,900,000 beside $4.1 million
    return written_like(answer, answer, conflict) if is_bare and second.number.unit and not is_whole else conflict


class _KnownRows:
    """The content of the rows so far, and their answers by picture and question in a temporary file."""

    def __init__(self) -> None:
        self._contents: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._answers = RecordFile()

    def add(self, pixels: str, row: SourceRow) -> bool:
        """Add a row; return False if one with the same value as its answer is known."""
        content = int(digest([pixels, *row.content])[:32], 16)
        asked = int(digest([pixels, row.question])[:16], 16)
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
    return None if is_unicode(answer) else NOT_UNICODE


def _own_text_problem(row: SourceRow) -> str | None:
    """Return why a row's own passage, or a value that it gives, is unusable; None if they are usable or absent."""
    if len(row.passage) > LONGEST_PASSAGE:
        return f"the passage is longer than {LONGEST_PASSAGE} characters"
    if not is_unicode(row.passage):
        return NOT_UNICODE
    values = {"conflict": row.conflict, "image_answer": row.image_answer, "text_answer": row.text_answer}
    problems = ((name, answer_problem(value)) for name, value in values.items() if value)
    return next((f"{problem}, of its {name}" for name, problem in problems if problem), None)


def _conflict_problem(row: SourceRow) -> str | None:
    """Return why the conflicting value that a row wants cannot contradict its answer; None if it can or is absent."""
    if not row.conflict:
        return None
    result = compare(row.conflict, row.answer, row.question)
    if result.verdict == "same":
        return CONFLICT_IS_ANSWER
    if result.verdict == "unclear":
        return f"{CONFLICT_UNCLEAR}: {result.reason}; write both alike, or leave its conflict column empty"
    is_stated = row.passage and states(row.passage, row.conflict, row.question, ("same", "unclear"))
    return CONFLICT_STATED if is_stated and not row.text_answer else None


def text_problem(question: str, beside: str) -> str | None:
    """Return why a question, or its accompanying text, is unusable; None if it is usable."""
    if not question.strip():
        return "the row has no question"
    if len(question) > LONGEST_QUESTION:
        return f"the question is longer than {LONGEST_QUESTION} characters"
    return None if is_unicode(question + beside) else NOT_UNICODE
