"""The parts of a report, without any markup: sections of paragraphs, tables and figures.

All texts are plain and may be hostile; the writers of HTML and LaTeX escape every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.vocabulary import Estimate, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image as PILImage


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer that a reader looks for first, and the sentences that support it."""

    headline: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; each item is its first words, which are set off and may be empty, and its text."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares drawn as bars: ``rows`` are a label, a remark that may be empty, and a share for each column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Estimate | None, ...]], ...]
    note: str = ""
    further: int = 0
    """The number of rows that only the tables have."""

    @property
    def remarks(self) -> str:
        """The note, and how many rows only the tables have."""
        more = (
            f"The tables further down have {self.further} more run{'s' * (self.further != 1)}." if self.further else ""
        )
        return f"{self.note} {more}".strip()

    def first(self, count: int) -> Shares:
        """Return the shares of the first ``count`` rows."""
        left_out = max(0, len(self.rows) - count)
        return replace(self, rows=self.rows[:count], further=self.further + left_out)


@dataclass(frozen=True, slots=True)
class Example:
    """One answer, with the picture of its prompt if there is one; ``lines`` are names with texts.

    ``link`` is the address, relative to the report, where the instance is displayed with every answer; empty without one.
    """

    lines: tuple[tuple[str, str], ...]
    picture: PILImage | None = None
    facts: str = ""
    instance: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with texts."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure, with a name that is safe in a file name, and its caption."""

    name: str
    caption: str
    figure: Figure


Block = Verdict | Paragraph | Bullets | Shares | Example | Facts | Plot | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A section: ``numbered`` ones count from 1, appendices from A. ``blocks`` may hold titles as strings."""

    title: str
    blocks: Sequence[Block | str]
    appendix: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A report: its ``first_page`` stands alone, ``sections`` follow, ``references`` end it."""

    title: str
    subtitle: str
    first_page: Sequence[Block | str]
    sections: Sequence[Section]
    references: Sequence[str]
