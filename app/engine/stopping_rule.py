"""Stopping a run when its figures are known well enough.

A run that may stop early asks whole examples in a random order, a window at a time, so that at the end of every window what is
answered is a random part of the run. Only then is it looked at how wide the intervals are: in between, what was quick to
answer would be in and the rest out.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.engine.request_order import WINDOW
from app.store.run import RunStore
from benchmarks.base import Benchmark, Estimate
from benchmarks.errors import SpecError
from benchmarks.stats.intervals import wilson_of_groups
from judges.base import find_judge
from judges.rubric import RubricJudge

_ORDER, _RANDOM = "order", "random"
_REACHED = "reached"


@dataclass(frozen=True, slots=True)
class Window:
    """The ordinals of the instances that are still to be asked in some whole examples; ``whole``: nothing of it was asked yet."""

    waiting: tuple[int, ...]
    whole: bool


def check_width(width: float, judge: str, benchmark: Benchmark) -> None:
    """Raise SpecError for a width that is no share, and a judge whose labels come only after the answering."""
    if not 0 < width < 1:
        raise SpecError(f"--until-width {width:g} is no share between 0 and 1; 0.1 is ten points in a hundred.")
    found = find_judge(judge, benchmark)
    if isinstance(found, RubricJudge) and found.info.needs_device:
        raise SpecError(
            f"{judge} labels when all is answered, so no run can be stopped by its labels; put a judge by rule or one behind "
            "an API first."
        )


def check_order(store: RunStore) -> None:
    """Raise SpecError where answers are there that were not asked in the random order."""
    done = sum(place.done for place in store.places())
    if done and not in_random_order(store):
        raise SpecError(
            f"{store.folder.name} has {done} answers in the build's order, whose first part is no random part; go on without "
            "--until-width, or give a new run another --name."
        )


def parts(
    store: RunStore,
    benchmark: Benchmark,
    judge: str,
    *,
    width: float | None,
    seed: int,
    conditions: Sequence[str] = (),
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda note: None,
) -> Iterator[Sequence[int] | None]:
    """The ordinals that are to be answered next, part after part; None is all there is, at once.

    With ``width`` until every interval by the labels of ``judge`` is that narrow, which is then noted. ``tell`` is told how wide
    the widest one is.
    """
    _note_reached(store, None)
    if width is not None:
        store.set_meta(_ORDER, _RANDOM)
    if not in_random_order(store):
        yield None
        return
    judge_id = find_judge(judge, benchmark).id
    for window in windows(store, seed, conditions):
        if stop():
            return
        if width is not None and window.whole:
            found = accuracies(store, benchmark, judge_id, conditions)
            condition, now = widest(found)
            if now <= width:
                _note_reached(store, width)
                return
            if any(each.n for each in found.values()):
                tell(f"the widest interval is {now:.3f}, of {condition}; {width:g} ends it")
        yield window.waiting


def in_random_order(store: RunStore) -> bool:
    """Whether a run's examples are asked in a random order; once they are, they always are."""
    return bool(store.meta(_ORDER) == _RANDOM)


def windows(store: RunStore, seed: int, conditions: Sequence[str] = ()) -> Iterator[Window]:
    """The windows in which something of ``conditions`` (all if empty) is still to be asked, in order.

    The order is that of sha256(seed, example), and the windows are made of the whole run, so both are the same every time.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    open_, asked = set[int](), set[int]()
    for place in store.places():
        groups[place.group].append(place.ordinal)
        if not conditions or place.condition in conditions:
            asked.add(place.ordinal)
            if not place.done:
                open_.add(place.ordinal)
    for window in _cut([groups[group] for group in sorted(groups, key=lambda group: _rank(seed, group))]):
        waiting = tuple(sorted(open_.intersection(window)))
        if waiting:
            yield Window(waiting, whole=len(waiting) == len(asked.intersection(window)))


def accuracies(
    store: RunStore, benchmark: Benchmark, judge: str, conditions: Sequence[str] = ()
) -> dict[str, Estimate]:
    """The share of right labels by the judge of the id ``judge`` under each condition still asked, with its 95% interval.

    A condition that is answered to the end is left out, for nothing can make it narrower. Answers with nothing to label
    count where the benchmark's tables count them.
    """
    figures = benchmark.figures()
    empty = None if figures is None else figures.unparsed
    told = store.labels(judge)
    hits: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    sizes: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    still = set[str]()
    for place in store.places():
        if conditions and place.condition not in conditions:
            continue
        if not place.done:
            still.add(place.condition)
        status, label = told.get(place.ordinal, (None, None))
        counted = label if status == "labelled" else empty if status == "unparsed" else None
        if counted is not None:
            hits[place.condition][place.group] += benchmark.correct(place.condition, counted)
            sizes[place.condition][place.group] += 1
    return {
        condition: wilson_of_groups(list(hits[condition].values()), list(sizes[condition].values()))
        for condition in benchmark.conditions
        if condition in still
    }


def widest(found: Mapping[str, Estimate]) -> tuple[str, float]:
    """The condition with the widest interval, and how wide it is: 1 where nothing is labelled."""
    return max(((condition, _width(each)) for condition, each in found.items()), key=lambda one: one[1])


def reached(store: RunStore) -> str | None:
    """That a run was stopped at a width, for a person; None where it was not."""
    width = store.meta(_REACHED)
    return None if width is None else f"every condition's 95% interval is {width:g} wide or less"


def _note_reached(store: RunStore, width: float | None) -> None:
    """Note the width at which a run was stopped; None: it goes on."""
    if width is not None or store.meta(_REACHED) is not None:
        store.set_meta(_REACHED, width)


def _width(found: Estimate) -> float:
    return 1.0 if found.low is None or found.high is None else found.high - found.low


def _cut(groups: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Whole groups together until there are ``WINDOW`` instances or more."""
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
