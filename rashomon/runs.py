"""Runs and their records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

from app.engine.answer_loop import judge_pending
from app.exports.export_input import ExportedRun, load_runs
from app.exports.tabular_export import samples_to_arrow
from app.report.samples.sample_rows import sample_to_row
from app.report.tables.run_labels import model_label
from app.store.file_locks import FileLock, busy_message
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary, read_summary
from app.store.workspace import Workspace as Folders
from app.text.text_escaping import clean
from benchmarks.errors import SpecError, StoreError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Record
from judges.base import FunctionJudge, OwnJudge, as_function_judge
from judges.judge_registry import check_own_name, is_made_for
from rashomon._data_frames import ArrowData
from rashomon._markup import grid, heading
from rashomon.tables import ResultTable, Tables, read_tables

_DISPLAYED = 5
"""The number of records that a notebook displays."""


class Run:
    """A run of a workspace: its state, its records and its tables. It is read anew whenever it is asked, so it is never stale.

    Attributes:
        folder: The run's folder.
    """

    def __init__(self, folders: Folders, folder: Path) -> None:
        self._folders = folders
        self.folder = folder

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.name

    @property
    def state(self) -> str:
        """The state, such as "planned", "running", "judging", "interrupted", "failed" or "done"."""
        return self._readable().state

    @property
    def done(self) -> int:
        """The number of instances that are answered."""
        return self._readable().done

    @property
    def total(self) -> int:
        """The number of instances."""
        return self._readable().total

    @property
    def spec(self) -> Mapping[str, Any]:
        """The run's spec: benchmark, model, prompt set, judges, conditions, decoding ..."""
        return self._readable().spec

    def summary(self) -> RunSummary:
        """Return the state and the progress of every condition; ``problem`` says why a damaged run could not be read."""
        return read_summary(self.folder)

    def records(self, judge: str | None = None) -> Records:
        """Return the answers with their prompts, references and verdicts.

        ``judge`` is whose labels count; by default the run's first judge. Raises SpecError for an unknown judge, StoreError for a
        damaged run.
        """
        (run,) = load_runs(self._folders, [self.folder], judge)
        return Records(run)

    def tables(self, judge: str | None = None, *, published: bool = False) -> Tables:
        """Return every table; with ``published``, the paper's rows below the run's. Raises as :meth:`records`."""
        return read_tables([self.folder], judge, published=published)

    def table(self, name: str = "main", judge: str | None = None, *, published: bool = False) -> ResultTable:
        """Return one table; the others are not computed. Raises as :meth:`tables`, and SpecError if there is no such table."""
        return read_tables([self.folder], judge, published=published, only=name).main

    def judge(self, judge: FunctionJudge | OwnJudge) -> int:
        """Label every answer that ``judge`` has not labelled, in this process; return their number.

        This is for judges that need no model, such as a class of a notebook; ``Workspace.judge`` runs any judge by its name.
        Answers on which it failed before are judged again. Tables by its labels are ``run.tables(judge.name)``. Raises SpecError
        if it is not made for the run's benchmark, has another judge's name or fails on every answer, StoreError if the run is in
        use or not this machine's own.
        """
        if isinstance(judge, str):
            raise SpecError(f"{judge!r} is a name; `workspace.judge(run, {judge!r})` runs a judge by its name.")
        function, benchmark = as_function_judge(judge), get_benchmark(self.spec["benchmark"])
        check_own_name(judge)
        if not is_made_for(function, benchmark):
            raise SpecError(f"the judge {function.name} is not made for {benchmark.name}; add that to its benchmarks.")
        RunStore.require_own(self.folder)
        with FileLock(self.folder / "lock") as lock:
            if not lock.acquire("a notebook"):
                raise StoreError(f"{busy_message(lock)}; wait for it to end.")
            with RunStore.open(self.folder) as store:
                store.retract(function.id, status="judge-failed")
                count = judge_pending(store, function, benchmark)
                judged = [p.judged[function.id] for p in store.progress() if function.id in p.judged]
                if count and all(counts.total == counts.failed for counts in judged):
                    verdicts = (record.verdicts.get(function.id) for record in store.records())
                    reason = next((verdict.reason for verdict in verdicts if verdict is not None), "")
                    raise SpecError(
                        f"the judge {function.name} failed on all {count} answers ({clean(reason)}); correct it and judge again."
                    )
                return count

    def _readable(self) -> RunSummary:
        summary = self.summary()
        if summary.problem is not None:
            raise StoreError(summary.problem)
        return summary

    def _repr_html_(self) -> str:
        summary = self.summary()
        if summary.problem is not None:
            return heading(f"{self.name}: {summary.problem}")
        columns = ("condition", "done", "total", "errors")
        rows = [(p.condition, p.done, p.total, p.errors) for p in summary.progress]
        facts = f"{self.name}: {summary.state}, {summary.spec.get('benchmark')}, {_model(summary)}"
        return heading(facts) + grid(columns, rows)

    def __repr__(self) -> str:
        summary = self.summary()
        return f"<Run {self.name!a}: {summary.state}, {summary.done} of {summary.total} answered>"


class Records(ArrowData):
    """The answers of a run. Iterating yields a ``Record`` each, read page by page; as data there is a row for each.

    The columns are those of ``samples.parquet`` (``rashomon export --format parquet``): id, group, condition, question, prompt,
    references, answer, steps, verdicts, label, status ...
    """

    def __init__(self, run: ExportedRun) -> None:
        self._run = run

    @property
    def judge(self) -> str:
        """The judge whose labels count, with its version."""
        return self._run.judge

    def __len__(self) -> int:
        return len(self._run.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._run.records)

    def __getitem__(self, index: int) -> Record:
        """Return one record. The ones before it are read as well, so iterate where you need many."""
        place = range(len(self))[index]
        return next(islice(self, place, None))

    def _build(self) -> Any:
        return samples_to_arrow([self._run])

    def _repr_html_(self) -> str:
        columns = ("id", "condition", "question", "answer", "outcome", "label")
        first = [sample_to_row(record, self.judge) for _, record in zip(range(_DISPLAYED), self, strict=False)]
        rows = [[row.get(column) for column in columns] for row in first]
        return heading(f"{len(self)} records of {self._run.name}, labels by {self.judge}") + grid(columns, rows)

    def __repr__(self) -> str:
        return f"<Records: {len(self)} of {self._run.name!a}, labels by {self.judge!a}>"


class Runs(Sequence[Run]):
    """Runs, oldest first."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = list(runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def tables(self, judge: str | None = None, *, published: bool = False) -> Tables:
        """Return the tables of these runs together, a row for each run. Raises SpecError if they are of several benchmarks."""
        if not self._runs:
            raise SpecError("there are no runs here; start one first.")
        return read_tables([run.folder for run in self._runs], judge, published=published)

    def _repr_html_(self) -> str:
        columns = ("run", "benchmark", "model", "state", "answered", "created")
        return grid(columns, (_line(run.summary()) for run in self._runs))

    def __repr__(self) -> str:
        return clean(f"<Runs {', '.join(run.name for run in self._runs)}>")


def _line(run: RunSummary) -> tuple[object, ...]:
    created = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created)) if run.created else ""
    answered = f"{run.done}/{run.total}"
    return run.name, run.spec.get("benchmark"), _model(run), run.problem or run.state, answered, created


def _model(run: RunSummary) -> str:
    """Return the name of a run's model in tables."""
    return model_label(str(run.spec.get("model", "")))
