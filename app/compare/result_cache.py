"""Cache of the tables, comparisons and recommendations computed from runs, valid until a run changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from app.compare.comparison_tables import Comparison, compare_views
from app.compare.decision.sample_size import planned_examples
from app.compare.decision.utility_metric import has_costs, parse_requirements
from app.compare.differences.instance_comparison import Change, text_changes
from app.compare.papers.paper_comparison import paper_columns, paper_models
from app.compare.recommend.recommendation import Recommendation, recommend_views
from app.compare.runs.run_view import RunViews
from app.compare.runs.view_reader import RunReading, load_views, read_views
from app.report.tables.judge_selection import present_judges
from app.report.tables.paper_rows import without_published
from app.report.tables.run_tables import tables_from
from app.report.tables.table_inputs import TableInputs, read_inputs
from app.store.run_store import RunStore
from benchmarks.answer_behaviour import names_sources
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Table

T = TypeVar("T")
_SIZE = 24


class ResultCache:
    """Tables and comparisons of runs; a repeated request for unchanged runs returns the same object.

    Thread-safe. One thread computes at a time, so that simultaneous requests compute a result once.
    """

    def __init__(self) -> None:
        self._results: dict[Any, Any] = {}
        self._lock = RLock()

    def judges(self, folders: Sequence[Path]) -> list[str]:
        """Return the sorted ids of the judges that have labelled anything in these runs."""
        return self._cached("judges", folders, (), lambda: _present(folders))

    def tables(self, folders: Sequence[Path], judge: str | None = None, rule: str | None = None) -> list[Table]:
        """Return the runs' tables with the paper's rows, as ``tables_of`` does; ``without_published`` removes those.

        ``rule`` is what should win where sources disagree, by the user's word.
        """
        return self._cached(
            "tables", folders, (judge, rule), lambda: tables_from(replace(self.inputs(folders, judge), trust=rule))
        )

    def inputs(self, folders: Sequence[Path], judge: str | None = None) -> TableInputs:
        """Return what the tables are computed from."""
        return self._cached("inputs", folders, (judge,), lambda: self._inputs(folders, judge))

    def comparison(self, folders: Sequence[Path], judge: str | None = None) -> Comparison:
        """Return the comparison of two or more runs, the first of which is the baseline.

        Raises:
            SpecError: If there is only one run.
        """
        if len(set(folders)) < 2:
            raise SpecError("one run cannot be compared; mark another run as well.")
        return self._cached(
            "comparison",
            folders,
            (judge,),
            lambda: compare_views(self._views(folders, judge), keep_first=True),
        )

    def text_changes(self, folders: Sequence[Path], judge: str | None, pair: int) -> list[Change]:
        """Return the instances of a pair of the comparison whose answers differ though their labels do not."""
        return self._cached(
            "texts", folders, (judge, pair), lambda: text_changes(self.comparison(folders, judge).pairs[pair])
        )

    def recommendation(
        self,
        folders: Sequence[Path],
        judge: str | None = None,
        margin: float = 0.03,
        requirements: str = "",
        rule: str | None = None,
    ) -> Recommendation:
        """Return the recommended run, at most ``margin`` below the best one; ``requirements`` are costs and limits as typed.

        On data of the user's own ``rule``, what should win, decides unless costs do.
        """
        user, limits = parse_requirements(requirements)

        def recommended() -> Recommendation:
            views = self._views(folders, judge)
            trust = None if has_costs(user) else _decisive_rule(views, rule)
            return recommend_views(views, margin=margin, user=user, limits=limits, trust=trust)

        return self._cached("recommendation", folders, (judge, margin, requirements, rule), recommended)

    def planned_examples(self, folders: Sequence[Path], judge: str | None, rule: str | None = None) -> str:
        """Return how many examples would decide between the runs, or give a single one a narrow interval.

        Raises:
            SpecError: No answers count.
        """

        def planned() -> str:
            views = self._views(folders, judge)
            return planned_examples(views, width=0.05, margin=0.03, trust=_decisive_rule(views, rule))

        return self._cached("planned", folders, (judge, rule), planned)

    def paper_models(self, folders: Sequence[Path], judge: str | None = None) -> list[str]:
        """Return the models of the paper to which the runs can be compared."""
        return paper_models(self._own_tables(folders, judge), self._views(folders, judge))

    def paper(self, folders: Sequence[Path], judge: str | None, rows: Sequence[str]) -> Table:
        """Return a table with the runs and ``rows`` of the paper as columns."""
        return paper_columns(self._own_tables(folders, judge), self._views(folders, judge), rows)

    def _own_tables(self, folders: Sequence[Path], judge: str | None) -> list[Table]:
        return [without_published(table) for table in self.tables(folders, judge)]

    def _views(self, folders: Sequence[Path], judge: str | None) -> RunViews:
        return self._cached("views", folders, (judge,), lambda: self._load_views(folders, judge))

    def _inputs(self, folders: Sequence[Path], judge: str | None) -> TableInputs:
        return read_inputs(folders, judge, answers=lambda: [reading.answers for reading in self._readings(folders)])

    def _load_views(self, folders: Sequence[Path], judge: str | None) -> RunViews:
        return load_views(folders, judge=judge, readings=self._readings(folders))

    def _readings(self, folders: Sequence[Path]) -> list[RunReading]:
        """Return the runs as they were read, which tables and comparisons by any judge are made from."""
        return self._cached("readings", folders, (), lambda: read_views(folders))

    def _cached(self, kind: str, folders: Sequence[Path], options: tuple[Any, ...], compute: Callable[[], T]) -> T:
        with self._lock:
            key, versions = (kind, tuple(folders), options), store_versions(folders)
            previous = self._results.pop(key, None)
            entry = previous if previous is not None and previous[0] == versions else (versions, compute())
            self._results[key] = entry  # last in the order, which makes the first one the least recently used
            while len(self._results) > _SIZE:
                del self._results[next(iter(self._results))]
            return cast(T, entry[1])


def _decisive_rule(views: RunViews, rule: str | None) -> str | None:
    """Return the rule on what should win where it decides: on data of the user's own."""
    return rule if views.own_rows_only and names_sources(views.benchmark) else None


def store_versions(folders: Sequence[Path]) -> tuple[tuple[int, ...], ...]:
    """Return numbers that change whenever an answer or a verdict of a run is added or set aside. Raises StoreError."""
    versions = []
    for folder in folders:
        with RunStore.read(folder) as store:
            versions.append(store.version())
    return tuple(versions)


def _present(folders: Sequence[Path]) -> list[str]:
    stores = [RunStore.read(folder) for folder in folders]
    try:
        return present_judges(stores)
    finally:
        for store in stores:
            store.close()
