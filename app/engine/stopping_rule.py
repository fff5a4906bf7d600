"""Stopping rule: ends a run once the accuracy of every condition is known precisely enough.

A run that may stop early asks whole examples in random order, one window at a time. At the end of each window the answered
examples are a random part of the run, and only then are the intervals looked at: within a window, the answers that happened
to be quick would be over-represented.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.engine.request_order import WINDOW
from app.store.run import RunStore
from app.store.run_facts import REACHED_KEY
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.vocabulary import Estimate
from judges.registry import find_judge
from judges.rubric import RubricJudge

_ORDER, _RANDOM = "order", "random"


@dataclass(frozen=True, slots=True)
class Window:
    """A number of whole examples: the ordinals still to be answered, and ``untouched`` if none is answered yet."""

    pending: tuple[int, ...]
    untouched: bool


def check_width(width: float, judge: str, benchmark: Benchmark) -> None:
    """Raise SpecError for a width that is not between 0 and 1, or a judge that labels only after the answering."""
    if not 0 < width < 1:
        raise SpecError(f"--until-width {width:g} is not between 0 and 1; 0.1 means ten percentage points.")
    resolved = find_judge(judge, benchmark)
    if isinstance(resolved, RubricJudge) and resolved.info.needs_device:
        raise SpecError(
            f"{judge} labels only after all answers are in, so it cannot stop a run early; put a judge by rule, or one behind "
            "an API, first."
        )


def check_order(store: RunStore) -> None:
    """Raise SpecError if the run has answers that were not asked in random order."""
    done = sum(position.done for position in store.positions())
    if done and not in_random_order(store):
        raise SpecError(
            f"{store.folder.name} has {done} answers in the build's order, which are not a random sample; resume it without "
            "--until-width, or give a new run another --name."
        )


def next_ordinals(
    store: RunStore,
    benchmark: Benchmark,
    judge: str,
    *,
    width: float | None,
    seed: int,
    conditions: Sequence[str] = (),
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[str], None] = lambda note: None,
) -> Iterator[Sequence[int] | None]:
    """Yield the ordinals to answer next, window by window; None stands for all pending instances at once.

    With ``width``, end and record it as soon as every interval by the labels of ``judge`` is that narrow. ``report`` receives
    the width of the widest one.
    """
    _save_reached_width(store, None)
    if width is not None:
        store.set_meta(_ORDER, _RANDOM)
    if not in_random_order(store):
        yield None
        return
    judge_id = find_judge(judge, benchmark).id
    for window in windows(store, seed, conditions):
        if stop():
            return
        if width is not None and window.untouched:
            estimates = accuracies(store, benchmark, judge_id, conditions)
            condition, current = widest(estimates)
            if current <= width:
                _save_reached_width(store, width)
                return
            if any(estimate.n for estimate in estimates.values()):
                report(f"the widest interval is {current:.3f}, of {condition}; {width:g} ends it")
        yield window.pending


def in_random_order(store: RunStore) -> bool:
    """Return whether the run's examples are asked in random order; once they are, that never changes."""
    return bool(store.meta(_ORDER) == _RANDOM)


def windows(store: RunStore, seed: int, conditions: Sequence[str] = ()) -> Iterator[Window]:
    """Yield the windows in which an instance of ``conditions`` (all if empty) is still to be answered, in order.

    Examples are ordered by sha256(seed, example), and windows are formed over the whole run, so both are reproducible.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    pending, selected = set[int](), set[int]()
    for position in store.positions():
        groups[position.group].append(position.ordinal)
        if not conditions or position.condition in conditions:
            selected.add(position.ordinal)
            if not position.done:
                pending.add(position.ordinal)
    for window in _fill_windows([groups[group] for group in sorted(groups, key=lambda group: _rank(seed, group))]):
        ordinals = tuple(sorted(pending.intersection(window)))
        if ordinals:
            yield Window(ordinals, untouched=len(ordinals) == len(selected.intersection(window)))


def accuracies(
    store: RunStore, benchmark: Benchmark, judge: str, conditions: Sequence[str] = ()
) -> dict[str, Estimate]:
    """Return the accuracy of each unfinished condition by the judge with the id ``judge``, with its 95% interval.

    A finished condition is left out, since no further answer can narrow its interval. Answers with nothing to label count as
    the benchmark's tables count them.
    """
    metrics = benchmark.label_metrics()
    unparsed_label = None if metrics is None else metrics.unparsed
    labels = store.labels(judge)
    hits: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    sizes: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    unfinished = set[str]()
    for position in store.positions():
        condition, group = position.condition, position.group
        if conditions and condition not in conditions:
            continue
        if not position.done:
            unfinished.add(condition)
        status, label = labels.get(position.ordinal, (None, None))
        counted_label = label if status == "labelled" else unparsed_label if status == "unparsed" else None
        if counted_label is not None:
            hits[condition][group] += benchmark.correct(condition, counted_label)
            sizes[condition][group] += 1
    return {
        condition: clustered_wilson(list(hits[condition].values()), list(sizes[condition].values()))
        for condition in benchmark.conditions
        if condition in unfinished
    }


def widest(estimates: Mapping[str, Estimate]) -> tuple[str, float]:
    """Return the condition with the widest interval, and its width: 1 if nothing is labelled."""
    widths = {condition: _width(estimate) for condition, estimate in estimates.items()}
    return max(widths.items(), key=lambda item: item[1])


def _save_reached_width(store: RunStore, width: float | None) -> None:
    """Record the width at which the run stopped; None as it resumes."""
    if width is not None or store.meta(REACHED_KEY) is not None:
        store.set_meta(REACHED_KEY, width)


def _width(estimate: Estimate) -> float:
    return 1.0 if estimate.low is None or estimate.high is None else estimate.high - estimate.low


def _fill_windows(groups: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield whole groups joined into windows of at least ``WINDOW`` instances; the last may be smaller."""
    window: list[int] = []
    for group in groups:
        window += group
        if len(window) >= WINDOW:
            yield window
            window = []
    if window:
        yield window


def _rank(seed: int, group: str) -> str:
    return hashlib.sha256(f"{seed}|order|{group}".encode("utf-8", "surrogatepass")).hexdigest()
