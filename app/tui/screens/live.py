"""Live run: one run as it goes on, or as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.render import cell_text
from app.report.running_accuracy import accuracy, overall
from app.store.rows import ConditionProgress
from app.store.tail import RunUpdate, Tail
from app.store.throughput import duration
from app.store.workspace import RunSummary
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens import SCREENS
from app.tui.screens.base import RashomonScreen
from app.tui.theme import DIM, state_look
from app.tui.widgets.answer import NewestAnswer
from app.tui.widgets.bars import Parts, gauge, label_bar, legend, progress_bar
from app.tui.widgets.virtual_table import Cell, Column, Row, VirtualTable
from app.tui.workspace_watcher import Snapshot, WatchedRun
from benchmarks.base import Benchmark, get_benchmark
from benchmarks.errors import RashomonError
from benchmarks.untrusted.safe_files import UnsafeFileError, open_read
from judges.base import HUMAN, OVERRIDE

_LOG_BYTES = 64 * 1024

_NARROW = (
    Column("condition", 15),
    Column("done", 11, right=True),
    Column("right so far [95%]", 20, right=True),
    Column("n", 5, right=True),
    Column("err", 3, right=True),
    Column("labels", 0),
)
_WIDE = (
    Column("condition", 18),
    Column("", 10),
    Column("done", 13, right=True),
    Column("right so far [95%]", 20, right=True),
    Column("n", 6, right=True),
    Column("errors", 6, right=True),
    Column("cut", 5, right=True),
    Column("labels", 0),
)


@dataclass(frozen=True, slots=True)
class _Seen:
    newest: RunUpdate
    memory_limit: int
    log: str


class LiveScreen(RashomonScreen):
    """One run: how far each condition is, its labels, speed, memory, judges, the newest answer; the worker's log on a key."""

    name_ = "live"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    LiveScreen #state { height: auto; padding: 0 1; background: $surface; }
    LiveScreen #conditions { height: auto; max-height: 50%; }
    LiveScreen #legend { height: auto; max-height: 2; padding: 0 1; }
    LiveScreen #log { height: 1fr; border-top: solid $panel; padding: 0 1; display: none; }
    LiveScreen.-log #log { display: block; }
    LiveScreen.-log NewestAnswer { display: none; }
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._tail = Tail(folder)
        self._run: WatchedRun | None = None
        self._seen: _Seen | None = None
        self._looking = False
        self._again = False
        self._height = 0

    @cached_property
    def _benchmark(self) -> Benchmark:
        assert self._run is not None
        return get_benchmark(self._run.summary.spec["benchmark"])

    def shown_runs(self) -> tuple[Path, ...]:
        return (self.folder,)

    def heading(self) -> Content:
        if self._run is None:
            return literal(f"Live run  {self.folder.name}")
        look = state_look(self._run.summary.state)
        return Content("Live run  ") + literal(f"{look}  ", look.colour) + literal(self.folder.name, "bold")

    def body(self) -> ComposeResult:
        yield Static(id="state")
        yield VirtualTable(_NARROW, empty="no condition", id="conditions")
        yield Static(id="legend")
        yield NewestAnswer()
        with VerticalScroll(id="log"):
            yield Static(id="log-text")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))

    # --- what is shown ---------------------------------------------------------------------------

    def changed(self, snapshot: Snapshot) -> None:
        run = snapshot.run(self.folder.name)
        if run is None and snapshot.looked:
            self._run = None
            self.put("#state", Content("this run is gone; Esc goes back"))
            return
        if run == self._run or run is None:
            return
        if self._run is None or self._run.summary.state != run.summary.state:
            self.refresh_bindings()
        self._run = run
        self._show()
        if run.summary.problem is None:
            self._look()

    def on_resize(self) -> None:
        if self.ready:
            self._show()

    def _look(self) -> None:
        """Read what is newest; while that is being read, remember that there is more."""
        if self._looking:
            self._again = True
            return
        self._looking = True
        self.in_thread(self._read, self._read_it, group="tail")

    def _read(self) -> _Seen | None:
        from mlx_backends.models.memory_estimate import fits

        try:
            return _Seen(self._tail.look(), fits(0).have, _log_tail(self.folder / "worker.log"))
        except RashomonError:  # it is being deleted, or its disk is full; the list of runs says which
            return self._seen
        finally:
            self._looking = False

    def _read_it(self, seen: _Seen | None) -> None:
        self._seen = seen
        self._show()
        if self._again:
            self._again = False
            self._look()

    def _show(self) -> None:
        run = self._run
        if run is None:
            return
        self.retitle()
        self.put("#state", Content("\n").join(self._state(run)))
        if run.summary.problem is not None:
            return
        columns = _NARROW if self.size.width < 100 else _WIDE
        rows = [self._row(p, run.summary, columns) for p in run.summary.progress]
        table = self.query_one(VirtualTable)
        table.show(len(rows), lambda first, count: rows[first : first + count], columns=columns)
        height = min(len(rows) + 1, max(4, self.size.height // 2 - 5))
        if self._height != height:
            self._height = table.styles.height = height
        seen = self._seen
        if seen is None:
            return
        counts: dict[str, int] = {}
        for labels in seen.newest.labels.values():
            for label, count in labels.items():
                counts[label] = counts.get(label, 0) + count
        self.put("#legend", _content(legend(counts, self._benchmark.labels)))
        self.query_one(NewestAnswer).show(seen.newest, self._benchmark)
        if self.has_class("-log"):
            self.put("#log-text", literal(seen.log or "the log is empty", limit=10**6, newlines=True))

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """The labels of each condition, and how often each was given."""
        return {} if self._seen is None else self._seen.newest.labels

    def _row(self, p: ConditionProgress, summary: RunSummary, columns: Sequence[Column]) -> Row:
        share = accuracy(p, summary)
        counts = self.counts().get(p.condition, {})
        width = max(8, self.size.width - sum(column.width + 1 for column in columns) - 2)
        cells: dict[str, Cell] = {
            "condition": p.condition,
            "": progress_bar(p.done, p.total, 10),
            "done": f"{p.done}/{p.total}",
            "right so far [95%]": cell_text(share),
            "n": str(share.n),
            "err": str(p.errors),
            "errors": str(p.errors),
            "cut": str(p.truncated),
            "labels": label_bar(counts, self._benchmark.labels, width),
        }
        return [cells[column.title] for column in columns]

    def _state(self, run: WatchedRun) -> list[Content]:
        """The lines over the conditions: what happens now, how far and how fast, memory, judges, remarks."""
        summary = run.summary
        if summary.problem is not None:
            return [literal(summary.problem)]
        lines = [literal(_situation(run), limit=400), _content(_far(run, 10 if self.size.width < 100 else 24))]
        memory = self._memory(summary)
        if memory:
            lines.append(_content(memory))
        lines += [literal(line) for line in _judges(summary)]
        if self._seen is not None:
            lines += [literal(line, DIM, limit=200) for line in self._remarks(self._seen.newest)]
        return lines

    def _memory(self, summary: RunSummary) -> Parts:
        peak = max((p.peak_memory for p in summary.progress), default=0)
        if not peak or self._seen is None:
            return []
        limit, now = self._seen.memory_limit, self._seen.newest.memory
        told = f" peak {peak / 1e9:.2f} of {limit / 1e9:.1f} GB"
        if now.active is not None:
            told += f", now {now.active / 1e9:.2f}"
        if now.cache is not None:
            told += f" and {now.cache / 1e9:.2f} kept"
        return [("memory ", ""), *gauge(peak, limit, 16), (told, "")]

    def _remarks(self, newest: RunUpdate) -> list[str]:
        told = list(newest.remarks)
        if newest.canary and newest.canary.get("way") != "one at a time":
            compared = f"{newest.canary.get('cases')} requests and {newest.canary.get('tokens')} tokens"
            told.append(f"asked {newest.canary.get('way')}: the same as one at a time on {compared}")
        return told[-2:]

    # --- what can be done ------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        run = self._run
        if run is None or run.summary.problem is not None:
            return action not in ("pause", "stop", "resume", "samples")
        if action == "pause":
            return run.active
        if action == "stop":
            return run.active
        if action == "resume":
            return run.resumable or run.summary.state == "paused"
        return True

    def action_pause(self) -> None:
        if self._run is not None:
            self.rashomon.pause_or_go_on(self._run)

    def action_stop(self) -> None:
        if self._run is not None:
            self.rashomon.stop_run(self._run)

    def action_resume(self) -> None:
        if self._run is not None:
            self.rashomon.resume(self._run)

    def action_log(self) -> None:
        self.toggle_class("-log")
        if self.has_class("-log"):
            self._show()
            self.set_focus(self.query_one("#log"))
            self.query_one("#log", VerticalScroll).scroll_end(animate=False)
        else:
            self.set_focus(self.query_one(VirtualTable))

    def action_samples(self) -> None:
        if "samples" in SCREENS:
            self.rashomon.go("samples", [self.folder])


def _content(parts: Parts) -> Content:
    return Content.assemble(*(literal(text, style) for text, style in parts))


def _situation(run: WatchedRun) -> str:
    """What happens now and what can be done about it, in a sentence."""
    state, note = run.summary.state, run.summary.note
    because = f": {note}" if note else ""
    told = {
        "planned": "planned, and not begun; R begins",
        "queued": f"queued{because}",
        "loading": f"loading the model{because}",
        "running": "answering",
        "judging": f"judging{because}",
        "paused": "paused, with the model in memory; R goes on, x stops",
        "interrupted": f"interrupted{because}; R goes on with it",
        "partial": "some conditions are done; R does the rest",
        "failed": f"failed{because} R goes on with it",
        "done": "done",
    }
    return told.get(state, state)


def _far(run: WatchedRun, width: int) -> Parts:
    """How far and how fast the run is."""
    summary = run.summary
    share = overall(summary)
    facts = [f" {summary.done}/{summary.total}", f"right so far {cell_text(share)} n={share.n}"]
    if run.answers_per_second is not None:
        facts.append(f"{60 * run.answers_per_second:.4g} answers/min")
    if run.tokens_per_second is not None:
        facts.append(f"{run.tokens_per_second:.0f} tokens/s")
    if run.seconds_left is not None and summary.done < summary.total:
        facts.append(f"{duration(run.seconds_left)} left")
    return [*progress_bar(summary.done, summary.total, width), ("  ".join(facts), "")]


def _judges(summary: RunSummary) -> list[str]:
    """A line for each judge that is behind the answers, or failed, or found answers unparsed."""
    found: dict[str, list[int]] = {}
    for p in summary.progress:
        for judge, judged in p.judged.items():
            sums = found.setdefault(judge, [0, 0, 0, 0])
            for place, count in enumerate((judged.labelled, judged.unparsed, judged.failed, p.done - p.errors)):
                sums[place] += count
    lines = []
    for judge, (labelled, unparsed, failed, answered) in found.items():
        waiting = answered - labelled - unparsed - failed
        if judge.startswith((HUMAN, OVERRIDE)):  # people label what they choose to
            continue
        told = [f"{labelled} labelled"]
        told += [f"{waiting} waiting"] * bool(waiting)
        told += [f"{unparsed} unparsed"] * bool(unparsed)
        told += [f"{failed} failed"] * bool(failed)
        lines.append(f"{judge}: {', '.join(told)}")
    return lines


def _log_tail(path: Path) -> str:
    """The end of a log."""
    try:
        with open_read(path.parent, path.name) as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(0, size - _LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except UnsafeFileError as error:
        return str(error)
    except OSError:
        return ""
    return "\n".join(lines[-200:])
