"""How a batch shows itself: ``full`` on a terminal, ``plain`` lines, ``json`` lines, or ``none``."""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from app.report.render import cell_text, terminal_cell
from app.report.running_accuracy import accuracy, judging
from app.store.rows import progress_to_json
from app.store.throughput import Throughput, duration
from app.store.workspace import RunSummary
from app.text.escape import clean
from benchmarks.errors import SpecError

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

KINDS = ("full", "plain", "json", "none")
_BAR = 8  # characters


class Display(ABC):
    """What a supervisor tells: the state of its runs, again and again, and the problems it meets."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @abstractmethod
    def update(self, runs: Sequence[RunSummary]) -> None:
        """The runs of the present worker as they are now."""

    def problem(self, message: str) -> None:
        """One sentence for the user, to standard error."""
        print(f"rashomon: {clean(message)}", file=sys.stderr)


class SilentDisplay(Display):
    """Shows problems alone."""

    def update(self, runs: Sequence[RunSummary]) -> None:
        return None


class PlainDisplay(Display):
    """A line whenever a run's state changes, and every ten seconds."""

    every_seconds = 10.0

    def __init__(self, write: Callable[[str], None] = print) -> None:
        self._write = write
        self._paces: dict[str, Throughput] = {}
        self._told: dict[str, tuple[str, int]] = {}
        self._when: dict[str, float] = {}

    def update(self, runs: Sequence[RunSummary]) -> None:
        for run in runs:
            pace = self._paces.setdefault(run.name, Throughput())
            pace.sample(run.done)
            now, before = time.monotonic(), self._told.get(run.name)
            news = before is None or before[0] != run.state
            due = now - self._when.get(run.name, 0.0) >= self.every_seconds and before != (run.state, run.done)
            if news or due:
                self._told[run.name], self._when[run.name] = (run.state, run.done), now
                self._write(self.line(run, pace))

    def line(self, run: RunSummary, pace: Throughput) -> str:
        """One line that says all about a run."""
        facts = [f"{run.done}/{run.total} answered"]
        shares = [(p.condition, accuracy(p, run)) for p in run.progress if p.done]
        facts += [f"{condition} {cell_text(share)} n={share.n}" for condition, share in shares]
        failures = sum(p.errors for p in run.progress)
        if failures:
            facts.append(f"{failures} errors")
        facts += judging(run)
        if run.state == "running" and pace.per_second is not None:
            facts.append(f"{pace.per_second:.3g} answers/s")
            facts.append(f"{duration(pace.eta(run.total - run.done))} left")
        note = f" ({run.note})" if run.note else ""
        return clean(f"{run.name}: {run.state}{note}: {', '.join(facts)}")


class JsonDisplay(PlainDisplay):
    """One JSON object a line, whenever a run's state changes and every half second."""

    every_seconds = 0.5

    def line(self, run: RunSummary, pace: Throughput) -> str:
        return json.dumps(
            {
                "run": run.name,
                "state": run.state,
                "note": run.note,
                "done": run.done,
                "total": run.total,
                "answers_per_second": pace.per_second,
                "seconds_left": pace.eta(run.total - run.done),
                "conditions": [progress_to_json(p) for p in run.progress],
            }
        )


class FullDisplay(Display):
    """A table that is kept up to date in place."""

    def __init__(self) -> None:
        self._paces: dict[str, Throughput] = {}
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.live import Live

        from app.text.console import Terminal

        self._live = Live(console=Terminal(), refresh_per_second=4, transient=False)
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def update(self, runs: Sequence[RunSummary]) -> None:
        from rich.console import Group

        for run in runs:
            self._paces.setdefault(run.name, Throughput()).sample(run.done)
        if self._live is not None:
            self._live.update(Group(*(progress_table(run, self._paces[run.name]) for run in runs)))


def progress_table(run: RunSummary, pace: Throughput) -> Table:
    """A run's conditions with their accuracy so far, and under them its speed, memory and what is left."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    note = f" ({run.note})" if run.note else ""
    left = duration(pace.eta(run.total - run.done)) if run.state == "running" else "-"
    seconds = sum(p.seconds for p in run.progress)
    tokens = sum(p.tokens for p in run.progress)
    caption = [
        f"{pace.per_second:.3g} answers/s" if pace.per_second is not None else "- answers/s",
        f"{tokens / seconds:.0f} tokens/s" if seconds and tokens else "- tokens/s",
        f"{max((p.peak_memory for p in run.progress), default=0) / 1e9:.2f} GB peak",
        f"{left} left",
        *judging(run),
    ]
    table = Table(
        title=Text(clean(f"{run.name}: {run.state}{note}"), overflow="fold"),
        caption=Text(", ".join(caption)),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        expand=False,
    )
    for name in ("condition", "done", "", "accuracy\nso far", "n", "errors", "cut"):
        table.add_column(name, justify="left" if name in ("condition", "") else "right", no_wrap=True)
    for p in run.progress:
        filled = round(_BAR * p.done / p.total) if p.total else 0
        bar = Text("━" * filled, style="cyan") + Text("┄" * (_BAR - filled), style="dim")
        share = accuracy(p, run)
        facts = (terminal_cell(share).replace("\n", " "), str(share.n), str(p.errors), str(p.truncated))
        table.add_row(Text(clean(p.condition)), f"{p.done}/{p.total}", bar, *facts)
    return table


def make_display(kind: str | None) -> Display:
    """The display called ``kind``; None is ``full`` on a terminal and ``plain`` elsewhere. Raises SpecError."""
    if kind is None:
        kind = "full" if sys.stdout.isatty() else "plain"
    made: dict[str, Callable[[], Display]] = {
        "full": FullDisplay,
        "plain": _plain,
        "json": _json,
        "none": SilentDisplay,
    }
    if kind not in made:
        raise SpecError(f"there is no display {kind!r}; known are {', '.join(KINDS)}.")
    return made[kind]()


def _flushed(line: str) -> None:
    print(line, flush=True)


def _plain() -> Display:
    return PlainDisplay(_flushed)


def _json() -> Display:
    return JsonDisplay(_flushed)
