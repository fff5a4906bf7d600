"""The Live run screen: the progress of one run."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.engine.batch_runs import read_batch
from app.report.progress.remaining_time import duration
from app.report.progress.running_accuracy import accuracy
from app.report.runs.cluster_node_lines import node_lines
from app.report.runs.stored_run_checks import stored_check
from app.report.tables.table_rendering import short_value
from app.store.run_summary import RunSummary
from app.store.run_tail import RunUpdate, Tail
from app.store.store_types import ConditionProgress
from app.tui.hostile_text import literal, sanitize
from app.tui.key_commands import bindings
from app.tui.run_actions import pause_or_resume, resume_run, stop_run
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.live_lines import judge_lines, log_tail, progress_parts, result_so_far, situation
from app.tui.theme import DIM, HEADING, PARTIAL, state_appearance
from app.tui.widgets.newest_answer import NewestAnswer
from app.tui.widgets.table_columns import Cell, Column, Row
from app.tui.widgets.text_bars import Parts, gauge, label_bar, legend, progress_bar
from app.tui.widgets.titled_panel import panel
from app.tui.widgets.virtual_table import VirtualTable
from app.tui.workspace_watcher import WatchedRun, WorkspaceSnapshot
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark

_LABEL_BAR = 72
"""The largest width of a condition's bar of labels."""
_BAR_WIDTH = 10
_TALL = 30
"""The height from which the stored check of the batches is described."""
_SPEEDS = 24
"""The number of speeds that are displayed."""
_NEEDS_QUOTES = frozenset(' ,:"')


@dataclass(frozen=True, slots=True)
class _LiveData:
    newest: RunUpdate
    memory_limit: int
    log: str
    batch: tuple[str, ...]
    """The names of the runs of the batch; empty without one."""


class LiveScreen(RashomonScreen):
    """One run: progress and labels by condition, speed, memory, judges, and the newest answer or the worker's log."""

    name_ = "live"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._tail = Tail(folder)
        self._run: WatchedRun | None = None
        self._data: _LiveData | None = None
        self._reading = False
        self._stale = False
        self._awaited = False
        """True while a process is about to start the run."""
        self._height = 0
        self._speeds: deque[float] = deque(maxlen=_SPEEDS)
        """The latest answers per second, one for each change."""

    @cached_property
    def _benchmark(self) -> Benchmark:
        assert self._run is not None
        return get_benchmark(self._run.summary.spec["benchmark"])

    def displayed_runs(self) -> tuple[Path, ...]:
        return (self.folder,)

    def page_at(self) -> str:
        record = self._data.newest.record if self._data is not None else None
        return record.instance.id if record is not None else ""

    def heading(self) -> Content:
        if self._run is None:
            return literal(f"Live run  {self.folder.name}")
        state = state_appearance(self._run.summary.state)
        return Content("Live run  ") + literal(f"{state}  ", state.colour) + literal(self.folder.name, "bold")

    def body(self) -> ComposeResult:
        yield panel(Static(id="state"), "Progress")
        table = VirtualTable(empty="no condition", id="conditions", frozen=1)
        yield panel(table, "Conditions: Enter lists the answers")
        yield Static(id="legend")
        yield panel(NewestAnswer(), "Newest answer")
        with panel(VerticalScroll(id="log"), "Log"):
            yield Static(id="log-text")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))

    # --- drawing ---------------------------------------------------------------------------------

    def workspace_changed(self, snapshot: WorkspaceSnapshot) -> None:
        run = snapshot.run(self.folder.name)
        if run is None and snapshot.complete:
            self._run = None
            self.update_static("#state", Content("this run no longer exists; Esc goes back"))
            return
        if run is None:
            return
        awaited = run.resumable and self.rashomon.processes.will_start(run.folder, run.summary.state)
        if (run, awaited) == (self._run, self._awaited):
            return
        if self._run is None or (self._run.summary.state, self._awaited) != (run.summary.state, awaited):
            self.refresh_bindings()
        self._run, self._awaited = run, awaited
        if run.answers_per_second is not None:
            self._speeds.append(run.answers_per_second)
        self._show()
        if run.summary.problem is None:
            self._refresh()

    def on_resize(self) -> None:
        if self.ready:
            self._show()

    def _refresh(self) -> None:
        """Read the newest data; if that is in progress, read once more afterwards."""
        if self._reading:
            self._stale = True
            return
        self._reading = True
        self.attempt(self._read, self._show_data, group="tail")

    def _read(self) -> _LiveData | None:
        from mlx_backends.models.memory_and_cache_sizes import memory_fit

        try:
            log = log_tail(self.folder / "worker.log")
            return _LiveData(self._tail.read(), memory_fit(0).available, log, read_batch(self.folder))
        except RashomonError:  # the run is being deleted or the disk is full; the list of runs shows which
            return self._data
        finally:
            self._reading = False

    def _show_data(self, data: _LiveData | None) -> None:
        self._data = data
        self._show()
        if self._stale:
            self._stale = False
            self._refresh()

    def _show(self) -> None:
        run = self._run
        if run is None:
            return
        self.update_title()
        self.update_static("#state", Content("\n").join(self._state(run)))
        if run.summary.problem is not None:
            return
        progress = run.summary.progress
        columns = self._columns(run.summary)
        rows = [self._row(p, run, columns) for p in progress]
        table = self.query_one(VirtualTable)
        keys = [p.condition for p in progress]
        table.show(len(rows), lambda first, count: rows[first : first + count], columns=columns, keys=keys)
        height = min(len(rows) + 3, max(6, self.size.height // 2 - 4))
        if self._height != height:
            self._height = table.styles.height = height
        data = self._data
        if data is None:
            return
        counts: dict[str, int] = {}
        for labels in data.newest.labels.values():
            for label, count in labels.items():
                counts[label] = counts.get(label, 0) + count
        marks: Parts = [("≠ ", HEADING), ("conflict  ", "")] if self._benchmark.conflicts else []
        self.update_static("#legend", _content([*marks, *legend(counts, self._benchmark.labels)]))
        self.query_one(NewestAnswer).show(data.newest, self._benchmark)
        if self.has_class("-log"):
            self.update_static("#log-text", literal(data.log or "the log is empty", limit=10**6, newlines=True))

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Return the label counts of each condition."""
        return {} if self._data is None else self._data.newest.labels

    def _row(self, p: ConditionProgress, run: WatchedRun, columns: Sequence[Column]) -> Row:
        share, is_conflict = accuracy(p, run.summary), p.condition in self._benchmark.conflicts
        counts = self.counts().get(p.condition, {})
        rest = self.size.width - sum(column.width + 1 for column in columns) - 4
        width = columns[-1].width or max(8, min(_LABEL_BAR, rest))
        cells: dict[str, Cell] = {
            "condition": [("≠ " if is_conflict else "  ", HEADING), (p.condition, "")],
            "": progress_bar(p.done, p.total, _BAR_WIDTH),
            "done": f"{p.done}/{p.total}",
            "acc.": short_value(share) if share.value is not None else "-",
            "n": str(share.n),
            "errors": str(p.errors),
            "truncated": str(p.truncated),
            "labels": label_bar(counts, self._benchmark.labels, width),
        }
        return [cells[column.title] for column in columns]

    def _columns(self, summary: RunSummary) -> tuple[Column, ...]:
        """Return the columns, as wide as their contents; the labels take the rest."""
        wide = self.size.width >= 100
        progress = summary.progress
        longest = max((cell_len(sanitize(p.condition)) for p in progress), default=0)
        digits = max((len(str(p.total)) for p in progress), default=1)
        count = max((len(str(accuracy(p, summary).n)) for p in progress), default=1)
        columns = [Column("condition", min(longest, 24) + 2 if longest > 7 else 9, tail=0.5)]
        columns += [Column("", _BAR_WIDTH)] * wide
        columns += [Column("done", max(4, 2 * digits + 1), right=True), Column("acc.", 5, right=True)]
        columns.append(Column("n", count, DIM, right=True))
        if wide or summary.errors:
            columns.append(Column("errors", 6, right=True))
        if wide or any(p.truncated for p in progress):
            columns.append(Column("truncated", 9, right=True))
        return (*columns, Column("labels", 0))

    def _state(self, run: WatchedRun) -> list[Content]:
        """Return the lines above the conditions: state, progress and speed, memory, judges, remarks."""
        summary = run.summary
        if summary.problem is not None:
            return [literal(summary.problem)]
        bar_width = 10 if self.size.width < 100 else 24
        lines = [
            literal(situation(run, self._awaited) + self._position(run), limit=400),
            _content(progress_parts(run, bar_width, self._speeds)),
            literal(result_so_far(run, self.rashomon.settings.rule)),
        ]
        memory = self._memory(summary)
        if memory:
            lines.append(_content(memory))
        lines += [literal(line, limit=200) for line in node_lines(summary.nodes)]
        lines += [literal(line) for line in judge_lines(summary)]
        if self._data is not None:
            lines += [literal(line, PARTIAL, limit=200) for line in self._data.newest.poor]
            lines += [literal(line, DIM, limit=200) for line in self._remarks(self._data.newest)]
        return lines

    def _position(self, run: WatchedRun) -> str:
        """Return the run's position in its batch, and how long the rest of the batch takes at the run's speed."""
        names = self._data.batch if self._data is not None else ()
        if run.name not in names:
            return ""
        place = names.index(run.name)
        if not run.active:
            return f"; run {place + 1} of {len(names)} of its batch"
        runs = [self.rashomon.snapshot.run(name) for name in names[place:]]
        left = sum(other.summary.total - other.summary.done for other in runs if other is not None)
        text = f"; run {place + 1} of {len(names)}"
        if not left:
            return text
        if run.answers_per_second is None:
            return f"{text}, {left:,} answers left in all"
        return f"{text}, {duration(left / run.answers_per_second)} left in all at this speed"

    def _memory(self, summary: RunSummary) -> Parts:
        peak = max((p.peak_memory for p in summary.progress), default=0)
        if not peak or self._data is None or summary.nodes:  # each of which has a memory of its own
            return []
        limit, now = self._data.memory_limit, self._data.newest.memory
        facts = f" peak {peak / 1e9:.2f} of {limit / 1e9:.1f} GB"
        if now.active is not None:
            facts += f", now {now.active / 1e9:.2f}"
        if now.cache is not None:
            facts += f", cache {now.cache / 1e9:.2f}"
        return [("memory ", ""), *gauge(peak, limit, 16), (facts, "")]

    def _remarks(self, newest: RunUpdate) -> list[str]:
        remarks = list(newest.remarks)
        if newest.canary and newest.canary.get("way") != "one at a time":
            compared = f"{newest.canary.get('cases')} requests and {newest.canary.get('tokens')} tokens"
            remarks.append(f"answered {newest.canary.get('way')}: same answers as one at a time on {compared}")
            if self.size.height >= _TALL:
                remarks[-1] += "".join(f" ({line})" for line in stored_check(newest.canary, "token"))
        return remarks[-2:]

    # --- actions ---------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        run = self._run
        if run is None or run.summary.problem is not None:
            return action not in ("pause", "stop", "resume", "samples")
        if action == "pause":
            return run.active
        if action == "stop":
            return run.active
        if action == "resume":
            return (run.resumable and not self._awaited) or run.summary.state == "paused"
        return True

    def action_pause(self) -> None:
        if self._run is not None:
            pause_or_resume(self.rashomon, self._run)

    def action_stop(self) -> None:
        if self._run is not None:
            stop_run(self.rashomon, self._run)

    def action_resume(self) -> None:
        if self._run is not None:
            resume_run(self.rashomon, self._run)

    def action_log(self) -> None:
        self.toggle_class("-log")
        if self.has_class("-log"):
            self._show()
            self.set_focus(self.query_one("#log"))
            self.query_one("#log", VerticalScroll).scroll_end(animate=False)
        else:
            self.set_focus(self.query_one(VirtualTable))

    @on(VirtualTable.Selected)
    def _open_condition(self, event: VirtualTable.Selected) -> None:
        name = str(event.key)
        value = f'"{name}"' if _NEEDS_QUOTES & set(name) else name
        self.rashomon.open_screen("samples", [self.folder], on_top=True, query=f"condition:{value}")

    def action_samples(self) -> None:
        self.rashomon.open_screen("samples", [self.folder])


def _content(parts: Parts) -> Content:
    return Content.assemble(*(literal(text, style) for text, style in parts))
