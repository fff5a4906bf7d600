"""Questions of a retrieval log with what was retrieved for them, as they are read, and as a build stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from benchmarks.rows.files import Loader, SkippedRow
from benchmarks.rows.record_file import RecordFile
from benchmarks.vocabulary import Media, digest


@dataclass(frozen=True, slots=True)
class LogRow:
    """A question with its retrieved passages and images.

    ``answer`` is the right answer, empty if the log has none. ``image_answer`` and ``text_answer`` are what the images alone and
    the passages alone answer, empty if a model has yet to read them. ``trust`` is what should win, a key of ``RULES``.
    """

    source: str
    row: str
    question: str
    passages: tuple[str, ...]
    images: tuple[Loader, ...]
    answer: str = ""
    group: str = ""
    image_answer: str = ""
    text_answer: str = ""
    document: str = ""
    trust: str = ""


Reader = Callable[[str], Iterator[LogRow | SkippedRow]]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A log's row, with its images named by their content."""

    source: str
    row: str
    question: str
    passages: tuple[str, ...]
    images: tuple[Media, ...]
    answer: str
    group: str
    image_answer: str
    text_answer: str
    document: str
    trust: str = ""

    @property
    def id(self) -> str:
        """The example's id, derived from its content."""
        content = [self.question, list(self.passages), [media.sha256 for media in self.images], self.answer]
        return f"log-{digest(content)[:16]}"

    @property
    def cells(self) -> dict[str, object]:
        """The filled values of the log's row by key, with the digests of its images."""
        values = asdict(self) | {"passages": list(self.passages), "images": [media.sha256 for media in self.images]}
        return {key: value for key, value in values.items() if value and key not in ("source", "row")}

    def read_before(self, source: str) -> str:
        """Return what the log says that a source alone answers; empty if it does not say."""
        return self.image_answer if source == "image" else self.text_answer


class StoredRows:
    """Rows in order; memory holds 12 bytes of each."""

    def __init__(self) -> None:
        self._records = RecordFile()

    def __len__(self) -> int:
        return len(self._records)

    def append(self, row: StoredRow) -> None:
        """Add a row."""
        self._records.append(asdict(row) | {"images": [[media.sha256, media.suffix] for media in row.images]})

    def __iter__(self) -> Iterator[StoredRow]:
        for number in range(len(self)):
            fields = self._records[number]
            images = tuple(Media(sha256, suffix) for sha256, suffix in fields.pop("images"))
            yield StoredRow(**fields | {"passages": tuple(fields["passages"]), "images": images})
