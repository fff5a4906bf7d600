"""Displays of a batch's progress: ``full`` for a terminal, ``plain`` lines, ``json`` lines, or ``none``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

from app.engine.batch_progress import Display
from app.json_output.json_events import ProgressEvent, event_line, outcome
from app.json_output.json_only_output import print_own
from app.report.progress.remaining_time import Throughput, duration
from app.report.progress.running_accuracy import accuracy, judging_progress
from app.report.runs.cluster_node_lines import node_lines
from app.report.tables.table_rendering import cell_text, terminal_cell
from app.store.run_summary import RunSummary
from app.text.text_escaping import clean

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_BAR = 8  # characters


class SilentDisplay(Display):
    """A display of nothing."""

    def update(self, runs: Sequence[RunSummary]) -> None:
        return None

    def notice(self, message: str) -> None:
        return None


class PlainDisplay(Display):
    """A display that prints a line whenever a run's state changes, and every ten seconds if anything else did."""

    every_seconds = 10.0

    def __init__(self, write: Callable[[str], None] = print) -> None:
        self._write = write
        self._throughputs: dict[str, Throughput] = {}
        self._printed: dict[str, tuple[str, int, list[tuple[str, str]]]] = {}
        self._printed_at: dict[str, float] = {}

    def update(self, runs: Sequence[RunSummary]) -> None:
        for run in runs:
            throughput = _sampled(self._throughputs, run)
            now, before = time.monotonic(), self._printed.get(run.name)
            progress = run.state, run.done, [(node.state, node.note) for node in run.nodes]
            changed = before is None or before[0] != run.state
            due = now - self._printed_at.get(run.name, 0.0) >= self.every_seconds and before != progress
            if changed or due:
                self._printed[run.name], self._printed_at[run.name] = progress, now
                self._write(self.line(run, throughput))

    def line(self, run: RunSummary, throughput: Throughput) -> str:
        """Return a run's progress in one line."""
        facts = [f"{run.done}/{run.total} asked"]
        shares = [(p.condition, accuracy(p, run)) for p in run.progress if p.done]
        values = ["" if share.value is None and share.n else f"{cell_text(share)} " for _, share in shares]
        facts += [f"{name} {value}n={share.n}" for (name, share), value in zip(shares, values, strict=True)]
        if run.errors:
            facts.append(f"{run.errors} errors")
        if run.reused:
            facts.append(f"{run.reused} reused")
        facts += judging_progress(run)
        if run.state == "running" and throughput.per_second is not None:
            facts.append(f"{throughput.per_second:.3g} answers/s")
            facts.append(f"{duration(throughput.eta(run.total - run.done))} left")
        note = f" ({run.note})" if run.note else ""
        nodes = "".join(f"\n  {clean(line)}" for line in node_lines(run.nodes))
        return clean(f"{run.name}: {run.state}{note}: {', '.join(facts)}") + nodes


class JsonDisplay(PlainDisplay):
    """A display that prints an event on a line whenever a run's state changes, and every half second."""

    every_seconds = 0.5

    def notice(self, message: str) -> None:
        print(clean(message), file=sys.stderr, flush=True)

    def line(self, run: RunSummary, throughput: Throughput) -> str:
        return event_line(
            ProgressEvent(
                run=run.name,
                state=run.state,
                note=outcome.portable(run.note, run.spec),
                done=run.done,
                total=run.total,
                reused=run.reused,
                answers_per_second=throughput.per_second,
                seconds_left=throughput.eta(run.total - run.done) if run.state == "running" else None,
                conditions=run.progress,
                nodes=tuple(replace(node, note=outcome.portable(node.note, run.spec)) for node in run.nodes),
            )
        )


class FullDisplay(Display):
    """A display of tables that update in place."""

    def __init__(self) -> None:
        self._throughputs: dict[str, Throughput] = {}
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
            _sampled(self._throughputs, run)
        if self._live is not None:
            self._live.update(Group(*(progress_table(run, self._throughputs[run.name]) for run in runs)))


def _sampled(throughputs: dict[str, Throughput], run: RunSummary) -> Throughput:
    """Return a run's throughput with a new sample; the time before its answering, or in a pause of it, does not count."""
    if run.state in ("planned", "queued", "loading", "paused"):
        throughputs.pop(run.name, None)
    throughput = throughputs.setdefault(run.name, Throughput())
    throughput.sample(run.done - run.reused)
    return throughput


def progress_table(run: RunSummary, throughput: Throughput) -> Table:
    """Return a table of a run's conditions and running accuracy, with its speed, memory and time left below."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    note = f" ({run.note})" if run.note else ""
    remaining = duration(throughput.eta(run.total - run.done)) if run.state == "running" else "-"
    seconds = sum(p.seconds for p in run.progress)
    tokens = sum(p.tokens for p in run.progress)
    caption = [
        f"{throughput.per_second:.3g} answers/s" if throughput.per_second is not None else "- answers/s",
        f"{tokens / seconds:.0f} tokens/s" if seconds and tokens else "- tokens/s",
        f"{max((p.peak_memory for p in run.progress), default=0) / 1e9:.2f} GB peak",
        f"{remaining} left",
        *([f"{run.reused} reused"] if run.reused else []),
        *judging_progress(run),
    ]
    table = Table(
        title=Text(clean(f"{run.name}: {run.state}{note}"), overflow="fold"),
        caption=Text("\n".join([", ".join(caption), *map(clean, node_lines(run.nodes))])),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        expand=False,
    )
    for name in ("condition", "done", "", "running\naccuracy", "n", "errors", "trunc."):
        table.add_column(name, justify="left" if name in ("condition", "") else "right", no_wrap=True)
    for p in run.progress:
        bar_length = round(_BAR * p.done / p.total) if p.total else 0
        bar = Text("━" * bar_length, style="cyan") + Text("┄" * (_BAR - bar_length), style="dim")
        share = accuracy(p, run)
        facts = (terminal_cell(share).replace("\n", " "), str(share.n), str(p.errors), str(p.truncated))
        table.add_row(Text(clean(p.condition)), f"{p.done}/{p.total}", bar, *facts)
    return table


def make_display(kind: str | None) -> Display:
    """Return the display called ``kind``; None means ``full`` on a terminal and ``plain`` elsewhere."""
    if kind is None:
        kind = "full" if sys.stdout.isatty() else "plain"
    displays: dict[str, Callable[[], Display]] = {
        "full": FullDisplay,
        "plain": _plain,
        "json": _json,
        "none": SilentDisplay,
    }
    return displays[kind]()


def _flushed(line: str) -> None:
    print(line, flush=True)


def _plain() -> Display:
    return PlainDisplay(_flushed)


def _json() -> Display:
    return JsonDisplay(partial(print_own, flush=True))
