"""Constructed examples, and the candidates that became none."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.cmc_bench.cmc_constants import FOUND, PAPER_CONDITIONS, ConflictType
from benchmarks.cmc_bench.construction.candidate_file import CandidateFile
from benchmarks.cmc_bench.construction.cmc_candidates import Candidate
from benchmarks.lazy_sequence import LazySequence
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.record_file import RecordFile

NO_PASSAGE = "without a passage of their own"

NO_DONOR = 2**32 - 1
"""The number that stands for no candidate."""


@dataclass(frozen=True, slots=True)
class ConstructedExample:
    """A candidate with its contradicting value and the candidate that provides the wrong image.

    The gold, ``value`` and ``donor``'s answer are three different answers; the two images differ in their pixels.
    ``origin`` says where the value comes from. Of a user's own row the value, the donor or a third answer may be missing
    ("" or None): ``left_out`` then has the reason of each condition that cannot be shown. A row whose sources disagree by
    themselves has neither.
    """

    right: Candidate
    value: str = ""
    donor: Candidate | None = None
    origin: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.right.id

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that combine its sources, in the paper's order."""
        if self.right.is_conflict:
            return (self.right.condition,)
        return tuple(condition for condition in PAPER_CONDITIONS if condition not in self.left_out)

    @property
    def evidence(self) -> str:
        """The origin of the sources of a user's own row, as a phrase that is counted."""
        if self.right.is_conflict:
            return FOUND
        if not self.right.row.passage:
            return NO_PASSAGE
        return "passages with a contradicting twin" if self.value else "passages without a contradicting twin"


@dataclass(frozen=True, slots=True)
class Pair:
    """The contradicting value and the number of the donor of an example; see :class:`ConstructedExample`."""

    value: str
    donor: int
    origin: str
    left_out: Mapping[str, str] = field(default_factory=dict)


class ExampleList(LazySequence[ConstructedExample]):
    """Constructed examples in order of choice; memory holds 28 bytes of each.

    Attributes:
        rights: The numbers of the examples' candidates.
        donors: The numbers of the candidates that provide the wrong images, or ``NO_DONOR``.
    """

    def __init__(self, candidates: CandidateFile, values: RecordFile) -> None:
        self._candidates, self._values = candidates, values
        self.rights, self.donors, self._numbers = array("I"), array("I"), array("Q")

    def append(self, right: int, pair: Pair) -> None:
        """Add an example, with its candidates given as numbers."""
        self.rights.append(right)
        self.donors.append(pair.donor)
        self._numbers.append(self._values.append([pair.value, pair.origin, dict(pair.left_out)]))

    def __len__(self) -> int:
        return len(self.rights)

    def item(self, place: int) -> ConstructedExample:
        value, origin, left_out = self._values[self._numbers[place]]
        donor = None if self.donors[place] == NO_DONOR else self._candidates[self.donors[place]]
        return ConstructedExample(self._candidates[self.rights[place]], value, donor, origin, left_out)


class Unpaired:
    """The candidates that could not be paired, in the order of the attempts, with the reason."""

    def __init__(self, candidates: CandidateFile) -> None:
        self._candidates = candidates
        self._numbers = array("I")
        self._reasons: list[str] = []

    def append(self, number: int, reason: str) -> None:
        """Add a candidate by its number."""
        self._numbers.append(number)
        self._reasons.append(reason)  # one of a few strings

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[SkippedRow]:
        return (skipped for _, skipped in self.numbered())

    def numbered(self) -> Iterator[tuple[int, SkippedRow]]:
        """Yield each candidate's number, and its row as one that is left out."""
        for number, reason in zip(self._numbers, self._reasons, strict=True):
            row = self._candidates[number].row
            yield number, SkippedRow(row.source, row.row, reason)


@dataclass(frozen=True)
class ConstructedExamples:
    """The examples by type in order of choice, the rows left out, and the number that was not needed."""

    examples: Mapping[ConflictType, ExampleList]
    left_out: Unpaired
    unused: Mapping[ConflictType, int]

    @property
    def all(self) -> Iterator[ConstructedExample]:
        for examples in self.examples.values():
            yield from examples

    def example(self, number: int) -> ConstructedExample:
        """Return an example by its number in the order of :attr:`all`."""
        for examples in self.examples.values():
            if number < len(examples):
                return examples[number]
            number -= len(examples)
        raise IndexError(number)

    def rights(self) -> Iterator[int]:
        """Yield the number of each example's candidate, in the order of :attr:`all`."""
        for examples in self.examples.values():
            yield from examples.rights
