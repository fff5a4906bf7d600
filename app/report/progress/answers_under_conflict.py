"""Counts of what a run's answers under conflict do so far, for data of the user's own and for passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from app.papers.published_results import own_sources
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress
from app.store.verdict_counts import CountingStore, VerdictCounts, VerdictKind
from benchmarks.answer_behaviour import act_of, has_scorecard, names_sources
from benchmarks.answers import AnswerKind, InstanceKind
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Verdict

Acts = Mapping[tuple[str, str], int]
"""The number of answers by the rule of their row ("" for none) and their act."""


def is_own_data(benchmark: Benchmark, source: str) -> bool:
    """Return whether a data source is the user's own, of a benchmark whose accuracy takes an invention for right."""
    return names_sources(benchmark) and source in own_sources(benchmark)


class ConflictActs:
    """Reader of one run's acts under conflict; verdicts that were counted are not read again. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._verdicts = VerdictCounts()
        self._is_own: bool | None = None
        self._acts: Acts | None = None
        self._counted: tuple[int, tuple[ConditionProgress, ...]] | None = None

    def read(self, summary: RunSummary) -> Acts | None:
        """Return the acts so far; None for a run over a paper's data, or that cannot be read."""
        counted = summary.newest_verdict, summary.progress
        if self._is_own is not False and counted != self._counted:
            self._counted = counted
            try:
                benchmark = get_benchmark(str(summary.spec.get("benchmark", "")))
                is_asked = is_own_data(benchmark, summary.source) or not names_sources(benchmark)
                self._acts = self._read(benchmark) if has_scorecard(benchmark) and is_asked else None
            except RashomonError:
                self._acts = None
        return self._acts

    def _read(self, benchmark: Benchmark) -> Acts | None:
        with CountingStore.read(self._folder) as store:
            store.snapshot()
            if self._is_own is None:
                sources = store.sources()
                self._is_own = not names_sources(benchmark) or (bool(sources) and sources <= own_sources(benchmark))
            if not self._is_own:
                return None
            self._verdicts.read(store)
        acts = Counter[tuple[str, str]]()
        for kind, count in self._verdicts.counts.items():
            known = kind.label in benchmark.labels or not kind.label
            if known and kind.condition in benchmark.conflicts and (act := _act_of(kind, self._verdicts.judge or "")):
                acts[kind.rule, act] += count
        return acts


def _act_of(kind: VerdictKind, judge: str) -> str:
    verdict = Verdict(judge, kind.status, kind.label or None, behaviour=kind.behaviour or None)  # type: ignore[arg-type]
    answer = AnswerKind(InstanceKind(kind.condition), kind.finish_reason, verdicts={judge: verdict})  # type: ignore[arg-type]
    return act_of(answer, judge)
