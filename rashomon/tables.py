"""Result tables: their cells, their data and their figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.exports.html_markup import notes_markup, table_markup
from app.exports.tabular_export import tables_to_arrow
from app.report.tables.paper_rows import without_published
from app.report.tables.run_tables import tables_of
from app.report.tables.table_rendering import print_table
from app.text.console import Terminal
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.vocabulary import Cell, Table
from rashomon._data_frames import ArrowData
from rashomon._markup import grid, heading

_SCREEN_DPI = 150

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ResultTable(ArrowData):
    """A table of results, as ``rashomon show`` prints it. A cell of a metric is an ``Estimate``: a value with its interval.

    As data it has a row for each cell, with the columns ``row``, ``column``, ``value``, ``low``, ``high``, ``sd``, ``n``,
    ``reason`` and ``text``. Values are fractions, also where the table shows percent.

    Attributes:
        table: The cells, the notes and the kind of figure.
    """

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def name(self) -> str:
        """The table's name, as in ``rashomon show --table``."""
        return self.table.name

    @property
    def title(self) -> str:
        """The title above the table."""
        return self.table.title

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.table.columns

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the rows, such as ``RUN / CONDITION``."""
        return tuple(name for name, _ in self.table.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes under the table: whose labels it shows, and what limits them."""
        return self.table.notes

    def cell(self, row: str, column: str) -> Cell:
        """Return a cell: an ``Estimate``, a count, a text, or None for an empty one. Raises SpecError for an unknown name."""
        for name, known in ((row, self.rows), (column, self.columns)):
            if name not in known:
                raise SpecError(f"the table {self.name} has no {name!r}; {did_you_mean(name, known)}")
        cells = dict(self.table.rows)[row]
        return cells[self.columns.index(column)]

    def plot(self, width: str = "column") -> Plot:
        """Draw the table's figure; ``width`` is "column" (3.3 inches) or "page" (6.9).

        Raises SpecError if the table has no figure, or there is nothing to draw.
        """
        from app.figures.table_figures import draw_table

        figure = draw_table(without_published(self.table), width=width)
        if figure is None:
            raise SpecError(f"the table {self.name} has no figure; see docs/export.md for those that have one.")
        return Plot(figure)

    def _build(self) -> Any:
        return tables_to_arrow([self.table])

    def __str__(self) -> str:
        """Return the table and its notes as ``rashomon show`` prints them."""
        text = StringIO()
        print_table(self.table, Terminal(file=text, color_system=None))
        return text.getvalue().rstrip()

    def _repr_html_(self) -> str:
        return heading(self.title) + table_markup(self.table) + notes_markup(self.table)

    def __repr__(self) -> str:
        return f"<ResultTable {self.name}: {len(self.rows)} rows, {len(self.columns)} columns>"


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawn figure, which a notebook displays."""

    figure: Figure

    @property
    def axes(self) -> list[Axes]:
        """The matplotlib axes, to change or to add to."""
        return self.figure.axes

    def save(self, file: str | Path) -> None:
        """Write the figure to a file whose name ends in .png, .svg or .pdf. Raises SpecError for another ending."""
        from app.figures.figure_style import FIGURE_FORMATS, to_bytes

        path = Path(file)
        form = path.suffix.removeprefix(".")
        if form not in FIGURE_FORMATS:
            raise SpecError(f"{path} does not end in one of {', '.join(f'.{name}' for name in FIGURE_FORMATS)}.")
        try:
            path.write_bytes(to_bytes(self.figure, form))
        except OSError as error:
            raise SpecError(f"cannot write {path}: {error.strerror}; name another file.") from error

    def _repr_png_(self) -> bytes:
        from app.figures.figure_style import to_bytes

        return to_bytes(self.figure, "png", dpi=_SCREEN_DPI)


class UnknownTableError(SpecError, KeyError):
    """A table that these runs do not have."""

    __str__ = Exception.__str__


class Tables(Mapping[str, ResultTable], ArrowData):
    """The tables of one or more runs, by name; the first is "main". As data it has the cells of all tables."""

    def __init__(self, tables: Sequence[ResultTable]) -> None:
        self._tables = {table.name: table for table in tables}

    def __getitem__(self, name: str) -> ResultTable:
        """Return the table of that name. Raises UnknownTableError with the nearest right name."""
        if name not in self._tables:
            raise UnknownTableError(f"there is no table {name!r} here; {did_you_mean(name, self._tables)}")
        return self._tables[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    @cached_property
    def main(self) -> ResultTable:
        """The first table, with the paper's main metrics."""
        return next(iter(self._tables.values()))

    def _build(self) -> Any:
        return tables_to_arrow(table.table for table in self._tables.values())

    def _repr_html_(self) -> str:
        rows = [(table.name, table.title, table.table.chart or "") for table in self._tables.values()]
        return grid(("table", "title", "figure"), rows)

    def __repr__(self) -> str:
        return f"<Tables {', '.join(self._tables)}>"


def read_tables(folders: Sequence[Path], judge: str | None, *, published: bool, only: str | None = None) -> Tables:
    """Return the tables of the runs in ``folders``, or the one called ``only``; see :meth:`rashomon.Run.tables`."""
    return Tables([ResultTable(table) for table in tables_of(folders, judge=judge, only=only, published=published)])
