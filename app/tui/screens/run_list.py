"""Rows, columns, orders and groups of the list of runs, apart from its screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.cells import cell_len

from app.report.progress.remaining_time import duration
from app.report.progress.running_accuracy import ConflictResult, conflict_result
from app.report.runs.short_names import short_benchmark, short_model, short_quantisation
from app.report.tables.table_rendering import short_value
from app.tui.hostile_text import sanitize
from app.tui.theme import DIM, HEADING, STATES, state_appearance
from app.tui.widgets.table_columns import Cell, Column, Row
from app.tui.widgets.text_bars import progress_bar
from app.tui.workspace_watcher import WatchedRun

_BAR_WIDTH = 8
_LEAST_NAME, _MOST_NAME, _MOST_TITLE = 16, 60, 24
"""The cells of the columns of names and of titles, as far as there is room."""
_WIDE = 100
"""The cells from which on titles are written out."""
_CONFLICT = "conflict"
_PREFIXES = {"all": "all ", "rule": "rule "}
"""Prefixes of numbers other than the paper's accuracy under conflict."""
NEWEST = "started"
"""The order in which the list begins, the newest run first."""
_STATES = list(STATES)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with what its row shows, computed once for each change of the run."""

    run: WatchedRun
    title: str
    """The title that the user gave the run, sanitized; "" if there is none."""
    model: str
    quantisation: str
    benchmark: str
    conflict: ConflictResult
    rule: str | None
    """The rule on what should win, if the user has said it."""

    @classmethod
    def of(cls, run: WatchedRun, rule: str | None) -> RunRow:
        """Return the row of a run."""
        summary, spec = run.summary, run.summary.spec
        model, benchmark = str(spec.get("model", "")), str(spec.get("benchmark", ""))
        return cls(
            run,
            sanitize(summary.title),
            short_model(model, summary.quantisation),
            short_quantisation(summary.quantisation),
            short_benchmark(benchmark),
            conflict_result(summary, run.acts, rule),
            rule,
        )

    @property
    def words(self) -> str:
        """The text in which the filter looks, in lower case."""
        run, spec = self.run, self.run.summary.spec
        values = (str(spec.get(key, "")) for key in ("benchmark", "model", "prompt_set"))
        return " ".join([run.name, run.summary.title, run.summary.state, self.quantisation, *values]).lower()

    @property
    def peak(self) -> int:
        """The peak memory in bytes; 0 if it is unknown."""
        return max((p.known_peak for p in self.run.summary.progress), default=0)


@dataclass(frozen=True, slots=True)
class Group:
    """A heading over the runs of a benchmark."""

    benchmark: str
    runs: int
    folded: bool

    @property
    def key(self) -> tuple[str, str]:
        """The key of its row, which no run can have."""
        return ("group", self.benchmark)


Entry = RunRow | Group


class _Field(NamedTuple):
    """A column of the list; ``rank`` of None orders nothing, ``least`` is the width of its cells where that is fixed."""

    title: str
    cell: Callable[[RunRow], Cell]
    rank: Callable[[RunRow], Any] | None = None
    descending: bool = False
    right: bool = False
    style: str = ""
    least: int = 0


def _state_cell(row: RunRow) -> Cell:
    state = state_appearance(row.run.summary.state)
    return [(str(state), state.colour)]


def _bar_cell(row: RunRow) -> Cell:
    """Return a bar in the colour of the run's state; a finished run has none, so that the others stand out."""
    summary = row.run.summary
    if summary.problem is not None or summary.done == summary.total:
        return ""
    return progress_bar(summary.done, summary.total, _BAR_WIDTH, state_appearance(summary.state).colour)


def _done_cell(row: RunRow) -> Cell:
    summary = row.run.summary
    return "" if summary.problem is not None else f"{summary.done}/{summary.total}"


def _conflict_cell(row: RunRow) -> Cell:
    if row.run.summary.problem is not None:
        return ""
    value = short_value(row.conflict.estimate) if row.conflict.estimate.value is not None else "-"
    prefix = "" if value == "-" else _PREFIXES.get(row.conflict.measure, "")
    return [(prefix, DIM), (value, "")] if prefix else value


def _count_cell(row: RunRow) -> Cell:
    return row.conflict.counted if row.run.summary.problem is None else ""


def _rate_cell(row: RunRow) -> Cell:
    rate = row.run.answers_per_second
    return "" if rate is None else f"{60 * rate:.3g}"


def _left_cell(row: RunRow) -> Cell:
    return duration(row.run.seconds_left) if row.run.seconds_left else ""


def _started_cell(row: RunRow) -> Cell:
    from time import localtime, strftime

    created = row.run.summary.created
    return "" if created is None else strftime("%Y-%m-%d %H:%M", localtime(created))


def _share(row: RunRow) -> float | None:
    summary = row.run.summary
    return summary.done / summary.total if summary.total else None


_FIELDS = (
    _Field("state", _state_cell, lambda row: _place(row.run.summary.state)),
    _Field("run", lambda row: row.run.name, lambda row: row.run.name.lower()),
    _Field("title", lambda row: row.title, lambda row: row.title.lower() or None),
    _Field("model", lambda row: row.model, lambda row: row.model or None),
    _Field("quant", lambda row: row.quantisation, lambda row: row.quantisation or None),
    _Field("benchmark", lambda row: row.benchmark, lambda row: row.benchmark or None),
    _Field("", _bar_cell, least=_BAR_WIDTH),
    _Field("done", _done_cell, _share, right=True),
    _Field("left", _left_cell, lambda row: row.run.seconds_left, right=True, least=6),
    _Field(_CONFLICT, _conflict_cell, lambda row: row.conflict.estimate.value, descending=True, right=True),
    _Field("n", _count_cell, lambda row: row.conflict.estimate.n, descending=True, right=True, style=DIM),
    _Field("/min", _rate_cell, lambda row: row.run.answers_per_second, descending=True, right=True, least=5),
    _Field(
        "peak GB", lambda row: f"{row.peak / 1e9:.2f}" if row.peak else "", lambda row: row.peak or None, right=True
    ),
    _Field(NEWEST, _started_cell, lambda row: row.run.summary.created, descending=True, style=DIM),
)
_BY_TITLE = {item.title: item for item in _FIELDS}
_ALWAYS = ("state", "run", "done", _CONFLICT, "n")
_IF_ROOM = (("title",), ("",), ("left",), ("model", "quant", "benchmark"), (NEWEST,), ("peak GB",), ("/min",))
"""The columns that are added as far as there is room, in this order."""


def _place(state: str) -> int:
    return _STATES.index(state) if state in _STATES else len(_STATES)


@dataclass
class RunList:
    """The list of runs: filtered, ordered, and in groups if the user wants them."""

    rule: str | None = None
    """The rule on what should win, if the user has said it."""
    order: str = NEWEST
    reverse: bool = False
    """True to invert the order's usual direction."""
    grouped: bool = False
    folded: set[str] = field(default_factory=set)
    """The benchmarks whose runs are hidden while grouped."""
    entries: list[Entry] = field(default_factory=list)
    columns: tuple[Column, ...] = ()
    _fields: tuple[_Field, ...] = ()
    """The fields of the columns."""
    _long_titles: bool = False
    _rows: dict[str, RunRow] = field(default_factory=dict)

    def update(self, runs: Sequence[WatchedRun], words: Sequence[str], width: int) -> None:
        """List ``runs``, of which every one of ``words`` is in the text, in ``width`` cells."""
        rows = {run.name: self._row(run) for run in runs}
        self._rows = rows
        listed = (
            [row for row in rows.values() if all(word in row.words for word in words)] if words else [*rows.values()]
        )
        listed = self._ordered(listed)
        self._long_titles = width >= _WIDE
        self.columns = self._fitted(listed, width)
        self.entries = list(self._in_groups(listed)) if self.grouped else [*listed]

    def _row(self, run: WatchedRun) -> RunRow:
        row = self._rows.get(run.name)
        return row if row is not None and row.rule == self.rule and _same(row.run, run) else RunRow.of(run, self.rule)

    @property
    def descending(self) -> bool:
        """True if the list begins with the largest value."""
        return _BY_TITLE[self.order].descending != self.reverse

    def _ordered(self, rows: list[RunRow]) -> list[RunRow]:
        """Return the rows in order; those without a value are last, and equal ones have the newest first."""
        rows = rows[::-1]  # the workspace has the oldest first
        rank = _BY_TITLE[self.order].rank
        assert rank is not None
        ranked = [(value, row) for row in rows if (value := rank(row)) is not None]
        ranked.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [row for _, row in ranked] + [row for row in rows if rank(row) is None]

    def _in_groups(self, rows: Sequence[RunRow]) -> list[Entry]:
        groups: dict[str, list[RunRow]] = {}
        for row in rows:
            groups.setdefault(row.benchmark, []).append(row)
        entries: list[Entry] = []
        for benchmark in sorted(groups):
            entries.append(Group(benchmark, len(groups[benchmark]), benchmark in self.folded))
            entries += [] if benchmark in self.folded else groups[benchmark]
        return entries

    def next_order(self) -> None:
        """Order by the next column on display, or by the time of the start after the last one."""
        titles = list(dict.fromkeys([*(item.title for item in self._fields if item.rank is not None), NEWEST]))
        place = titles.index(self.order) if self.order in titles else -1
        self.order, self.reverse = titles[(place + 1) % len(titles)], False

    def order_by(self, column: int) -> None:
        """Order by a column on display; if the list is in this order already, reverse it."""
        item = self._fields[column]
        if item.title == self.order:
            self.reverse = not self.reverse
        elif item.rank is not None:
            self.order, self.reverse = item.title, False

    # --- columns ---------------------------------------------------------------------------------

    def _fitted(self, rows: Sequence[RunRow], width: int) -> tuple[Column, ...]:
        """Return the columns, as wide as their contents; the name's is narrower if there is too little room."""
        widths = {title: self._width(title, rows) for title in _BY_TITLE}
        room = width - 1 - sum(widths[title] + 1 for title in _ALWAYS)
        titles = set(_ALWAYS)
        for group in _IF_ROOM:
            needed = sum(widths[title] + 1 for title in group)
            if needed <= room and self._tells(group[0], rows):
                titles |= set(group)
                room -= needed
        self._fields = tuple(item for item in _FIELDS if item.title in titles) if rows else ()
        if room < 0:
            widths["run"] = max(_LEAST_NAME, widths["run"] + room)
        gap = 1 if room >= len(self._fields) else 0
        return tuple(
            Column(
                self._headed(item),
                widths[item.title] + gap,
                item.style,
                item.right,
                tail=0.5,
                distinct=item.title == "run",
            )
            for item in self._fields
        )

    def _headed(self, item: _Field) -> str:
        """Return a column's title, with an arrow if it orders the list."""
        title = item.title
        if title == _CONFLICT and self._long_titles:
            measures = {row.conflict.measure for row in self._rows.values()}
            metrics = {row.conflict.metric for row in self._rows.values() if row.conflict.answered}
            title = "follows rule" if measures and measures <= {"rule", "acts"} else "conflict acc."
            title = metrics.pop() or title if len(metrics) == 1 else title
        return f"{title} {'▾' if self.descending else '▴'}" if item.title == self.order else title

    def _width(self, title: str, rows: Sequence[RunRow]) -> int:
        widest: Mapping[str, Callable[[], int]] = {
            "state": lambda: max(
                cell_len(str(state_appearance(state))) for state in {r.run.summary.state for r in rows}
            ),
            "run": lambda: min(_MOST_NAME, max(cell_len(row.run.name) for row in rows)),
            "title": lambda: min(_MOST_TITLE, max(cell_len(row.title) for row in rows)),
            "model": lambda: min(24, max(cell_len(row.model) for row in rows)),
            "quant": lambda: min(10, max(cell_len(row.quantisation) for row in rows)),
            "benchmark": lambda: min(16, max(cell_len(row.benchmark) for row in rows)),
            "done": lambda: 2 * len(str(max(row.run.summary.total for row in rows))) + 1,
            _CONFLICT: lambda: 5 + max(len(_PREFIXES.get(row.conflict.measure, "")) for row in rows),
            "n": lambda: max(len(row.conflict.counted) for row in rows),
            NEWEST: lambda: 16,
        }
        item = _BY_TITLE[title]
        content = widest[title]() if rows and title in widest else item.least
        return max(content, cell_len(self._headed(item)))

    def _tells(self, title: str, rows: Sequence[RunRow]) -> bool:
        """Return whether a column says something: the model's, only beside names that do not contain it."""
        if title == "model":
            return any(row.model not in row.run.name.lower() for row in rows)
        if title == "title":
            return any(row.title for row in rows)
        if title == "":
            return any(row.run.summary.done < row.run.summary.total for row in rows)
        if title == "left":
            return any(row.run.seconds_left for row in rows)
        if title == "/min":
            return any(row.run.answers_per_second for row in rows)
        return True

    # --- rows ------------------------------------------------------------------------------------

    def keys(self) -> list[Any]:
        """Return the key of each entry: the name of a run's folder, or the group's key."""
        return [entry.key if isinstance(entry, Group) else entry.run.name for entry in self.entries]

    def cells(self, entry: Entry) -> Row:
        """Return the cells of a run or of a group's heading."""
        if isinstance(entry, Group):
            heading = {
                "state": [("▸" if entry.folded else "▾", HEADING)],
                "run": [(f"{entry.benchmark or 'no benchmark'}", f"bold {HEADING}"), (f"  {entry.runs:,}", DIM)],
            }
            return [heading.get(item.title, "") for item in self._fields]
        return [item.cell(entry) for item in self._fields]


def _same(before: WatchedRun, now: WatchedRun) -> bool:
    """Return whether a run's row stays as it is; the folder is not compared, which takes long for thousands of runs."""
    return (before.summary, before.answers_per_second, before.seconds_left, before.acts) == (
        now.summary,
        now.answers_per_second,
        now.seconds_left,
        now.acts,
    )
