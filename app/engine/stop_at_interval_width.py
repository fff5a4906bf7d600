"""Stopping rule: ends a run once the accuracy of every condition is known precisely enough.

A run that may stop early asks whole examples in random order, one window at a time. At the end of each window the answered
examples are a random part of the run, and only then are the intervals looked at: within a window, the answers that happened
to be quick would be over-represented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.engine.request_order import WINDOW
from app.store.parsed_texts import ParsedTexts
from app.store.run_facts import REACHED_KEY
from app.store.run_store import RunStore
from benchmarks import number_ranges as ranges
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.hash_collections import HashOrder, hash64
from benchmarks.protocols.repeats import split_repeat
from benchmarks.vocabulary import Estimate
from judges.judge_registry import find_judge
from judges.rubric_judge import RubricJudge

if TYPE_CHECKING:
    from app.store.stored_answers import KnownInstance

_ORDER, _RANDOM = "order", "random"
_PENDING, _SELECTED, _FLAGS = 1, 2, 2
"""Flags of an instance, and their number of bits, by which its ordinal is shifted."""


@dataclass(frozen=True, slots=True)
class Window:
    """A number of whole examples.

    Attributes:
        ordinals: The ordinals of all their instances.
        pending: The ordinals still to be answered.
        untouched: True if none is answered yet.
    """

    ordinals: tuple[int, ...]
    pending: tuple[int, ...]
    untouched: bool


def check_width(width: float, judge: str, benchmark: Benchmark) -> None:
    """Raise SpecError for a width that is out of range, or a judge that labels only after the answering."""
    ranges.UNTIL_WIDTH.check("--until-width", width)
    resolved = find_judge(judge, benchmark)
    if isinstance(resolved, RubricJudge) and resolved.info.needs_device:
        raise SpecError(
            f"{judge} labels only after all answers are in, so it cannot stop a run early; put a judge by rule, or one behind "
            "an API, first."
        )


def check_order(store: RunStore) -> None:
    """Raise SpecError if the run has answers that were not asked in random order."""
    done = sum(condition.done for condition in store.progress())
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
    judge = find_judge(judge, benchmark).id
    known: ParsedTexts[KnownInstance] = ParsedTexts()
    for window in windows(store, seed, conditions):
        if stop():
            return
        if width is not None and window.untouched:
            estimates = running_accuracies(store, benchmark, judge, conditions, known)
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

    Examples, each with all its repeats, are ordered by sha256(seed, example), and windows are formed over the whole run, so
    both are reproducible.
    """
    order = HashOrder()
    for position in store.positions():
        selected = not conditions or position.condition in conditions
        flags = selected * _SELECTED | (selected and not position.done) * _PENDING
        order.add(hash64(f"{seed}|order|{split_repeat(position.group)[0]}"), position.ordinal << _FLAGS | flags)
    for window in _fill_windows(order):
        pending = tuple(sorted(number >> _FLAGS for number in window if number & _PENDING))
        if pending:
            ordinals = tuple(number >> _FLAGS for number in window)
            untouched = len(pending) == sum(bool(number & _SELECTED) for number in window)
            yield Window(ordinals, pending, untouched)


def running_accuracies(
    store: RunStore,
    benchmark: Benchmark,
    judge: str,
    conditions: Sequence[str] = (),
    known: ParsedTexts[KnownInstance] | None = None,
) -> dict[str, Estimate]:
    """Return the accuracy of each unfinished condition by ``judge``, with the interval that the tables would have.

    A finished condition is left out, since no further answer can narrow its interval, and so are those without sources, unless
    no other is unfinished. ``known`` keeps the parsed instances for the next look.
    """
    from app.store.stored_answers import read_answers  # which few runs need, and a tenth of a second

    answers = read_answers(store, benchmark, known)

    def accuracy(condition: str) -> Estimate:
        return answers.mean_score(
            lambda kind: benchmark.counted_score(kind, judge) if kind.condition == condition else None
        )[0]

    unfinished = {progress.condition for progress in store.progress() if progress.done < progress.total}
    asked = [name for name in benchmark.conditions if name in unfinished and (not conditions or name in conditions)]
    return {name: accuracy(name) for name in [n for n in asked if n not in benchmark.without_sources] or asked}


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


def _fill_windows(order: HashOrder) -> Iterator[list[int]]:
    """Yield the numbers of whole groups, joined into windows of at least ``WINDOW`` instances; the last may be smaller."""
    window: list[int] = []
    group = None
    for rank, number in order:
        if rank != group and len(window) >= WINDOW:
            yield window
            window = []
        group = rank
        window.append(number)
    if window:
        yield window
