"""What is computed of runs, once: tables, comparisons and recommendations, kept as long as the runs stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from app.compare.published import paper_columns, paper_models
from app.compare.recommend import Recommendation, recommend_of
from app.compare.run_view import RunViews, load
from app.compare.tables import Comparison, compare_sides
from app.report.judge_selection import present
from app.report.tables import own_rows, tables_of
from app.store.run import RunStore
from benchmarks.base import Table
from benchmarks.errors import SpecError

Made = TypeVar("Made")
_KEPT = 24


class ResultCache:
    """Tables and comparisons of runs. Whoever asks twice for the same of unchanged runs gets the same object.

    For threads: one computes at a time, so that two who ask for the same compute it once.
    """

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self._lock = RLock()

    def judges(self, folders: Sequence[Path]) -> list[str]:
        """The ids of the judges that have labelled anything in these runs, sorted."""
        return self._once("judges", folders, (), lambda: _present(folders))

    def tables(self, folders: Sequence[Path], judge: str | None = None) -> list[Table]:
        """The runs' tables with the paper's rows, as ``tables_of`` makes them; ``own_rows`` takes those out."""
        return self._once("tables", folders, (judge,), lambda: tables_of(folders, judge=judge))

    def comparison(self, folders: Sequence[Path], judge: str | None = None) -> Comparison:
        """Two runs or more beside each other, the first of them the baseline. Raises SpecError for one alone."""
        if len(set(folders)) < 2:
            raise SpecError("one run cannot be compared; mark another beside it.")
        return self._once(
            "comparison",
            folders,
            (judge,),
            lambda: compare_sides(self._sides(folders, judge), keep_first=True, instances=True),
        )

    def recommendation(self, folders: Sequence[Path], judge: str | None = None, margin: float = 0.03) -> Recommendation:
        """Which of the runs to take, at a cost of ``margin`` at most in the share of right labels."""
        return self._once(
            "recommendation", folders, (judge, margin), lambda: recommend_of(self._sides(folders, judge), margin=margin)
        )

    def paper_models(self, folders: Sequence[Path], judge: str | None = None) -> list[str]:
        """The models of the paper that the runs can stand beside."""
        return paper_models(self._own(folders, judge), self._sides(folders, judge).benchmark.name)

    def paper(self, folders: Sequence[Path], judge: str | None, rows: Sequence[str]) -> Table:
        """The runs and ``rows`` of the paper's as columns."""
        return paper_columns(self._own(folders, judge), self._sides(folders, judge), rows)

    def _own(self, folders: Sequence[Path], judge: str | None) -> list[Table]:
        benchmark = self._sides(folders, judge).benchmark.name
        return [own_rows(table, benchmark) for table in self.tables(folders, judge)]

    def _sides(self, folders: Sequence[Path], judge: str | None) -> RunViews:
        return self._once("sides", folders, (judge,), lambda: load(folders, judge=judge))

    def _once(self, what: str, folders: Sequence[Path], more: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        with self._lock:
            key, now = (what, tuple(folders), more), version(folders)
            before = self._made.pop(key, None)
            made = before if before is not None and before[0] == now else (now, make())
            self._made[key] = made
            while len(self._made) > _KEPT:
                del self._made[next(iter(self._made))]
            return cast(Made, made[1])


def version(folders: Sequence[Path]) -> tuple[tuple[int, ...], ...]:
    """Other numbers whenever an answer or a verdict of one of the runs was added or set aside. Raises StoreError."""
    found = []
    for folder in folders:
        with RunStore.read(folder) as store:
            found.append(store.version())
    return tuple(found)


def _present(folders: Sequence[Path]) -> list[str]:
    stores = [RunStore.read(folder) for folder in folders]
    try:
        return present(stores)
    finally:
        for store in stores:
            store.close()
