"""Source rows and candidates in a temporary file: a construction holds numbers instead of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.cmc_bench.construction.cmc_candidates import Candidate, CandidateImage
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.hash_collections import hash64
from benchmarks.lazy_sequence import LazySequence
from benchmarks.rows.files import ImageBytes, ImageFile, Loader, ShownImage, SkippedRow
from benchmarks.rows.record_file import RecordFile

_LOADED = 1024
"""The number of candidates that are kept once they were loaded."""


@dataclass(frozen=True, slots=True)
class _StoredImage:
    """Loader of an image whose bytes are in a record file."""

    file: RecordFile
    offset: int
    size: int

    def __call__(self) -> bytes:
        return self.file.read_bytes(self.offset, self.size)


@dataclass(frozen=True, slots=True)
class _StoredPath:
    """Loader of an image by the text of its path."""

    path: str

    def __call__(self) -> bytes:
        return ImageFile(Path(self.path))()


class RowFile:
    """Source rows in a temporary file, in order."""

    def __init__(self) -> None:
        self.records = RecordFile()
        self._numbers = array("Q")
        self._loaders: list[Loader] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def append(self, row: SourceRow | SkippedRow) -> None:
        """Add a row."""
        record = [row.source, row.row, row.reason, row.place] if isinstance(row, SkippedRow) else self.encoded_row(row)
        self._numbers.append(self.records.append(record))

    def __iter__(self) -> Iterator[SourceRow | SkippedRow]:
        for number in self._numbers:
            record = self.records[number]
            yield SkippedRow(*record) if len(record) == len(fields(SkippedRow)) else self.decoded_row(record)

    def encoded_row(self, row: SourceRow) -> list[Any]:
        """Return a row as JSON; the bytes of an embedded image are added to the file."""
        return [
            *(row.source, row.row, row.family, row.question, row.answer, self._encoded_image(row.image)),
            *(list(row.options), row.subject, row.subfield, row.passage, row.conflict, row.document, row.trust),
            *(row.image_answer, row.text_answer),
        ]

    def decoded_row(self, record: Sequence[Any]) -> SourceRow:
        """Return the row of :meth:`encoded_row`."""
        source, row, family, question, answer, image, options, *texts = record
        return SourceRow(source, row, family, question, answer, self._decoded_image(image), tuple(options), *texts)

    def _encoded_image(self, load: Loader) -> list[Any]:
        if isinstance(load, ShownImage):
            return ["shown", self._encoded_image(load.original)]
        if isinstance(load, ImageFile | _StoredPath):
            return ["file", str(load.path)]
        if isinstance(load, ImageBytes):
            return ["bytes", *self.records.add_bytes(load.data)]
        if isinstance(load, _StoredImage) and load.file is self.records:
            return ["bytes", load.offset, load.size]
        self._loaders.append(load)
        return ["loader", len(self._loaders) - 1]

    def _decoded_image(self, image: Sequence[Any]) -> Loader:
        match image:
            case ["shown", original]:
                return ShownImage(self._decoded_image(original))
            case ["file", path]:
                return _StoredPath(path)
            case ["bytes", offset, size]:
                return _StoredImage(self.records, offset, size)
            case _:
                return self._loaders[int(image[1])]


class CandidateFile(LazySequence[Candidate]):
    """Candidates in a temporary file, in order; memory holds three hashes of each.

    Attributes:
        answers: The hash of each candidate's normalised answer.
        pictures: The hash of each candidate's pixels.
    """

    def __init__(self, rows: RowFile | None = None) -> None:
        self._rows = rows or RowFile()
        self._numbers = array("Q")
        self.answers = array("Q")
        self.pictures = array("Q")
        self._load = lru_cache(_LOADED)(self._decoded)

    def __len__(self) -> int:
        return len(self._numbers)

    def append(self, candidate: Candidate) -> None:
        """Add a candidate."""
        facts = [candidate.type, candidate.sha256, *astuple(candidate.image)]
        self._numbers.append(self._rows.records.append([*facts, *self._rows.encoded_row(candidate.row)]))
        self.answers.append(hash64(candidate.normal))
        self.pictures.append(hash64(candidate.image.pixels))

    def item(self, place: int) -> Candidate:
        return self._load(place)

    def __iter__(self) -> Iterator[Candidate]:
        return map(self._decoded, range(len(self)))

    def _decoded(self, number: int) -> Candidate:
        kind, sha256, suffix, pixels, notes, warnings, *row = self._rows.records[self._numbers[number]]
        image = CandidateImage(suffix, pixels, tuple(notes), tuple(warnings))
        return Candidate(self._rows.decoded_row(row), kind, sha256, image)
