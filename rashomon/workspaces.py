"""Workspaces: folders of builds and runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from app.store.run_references import run_folder
from app.store.workspace import Workspace as Folders
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import typed_path
from rashomon._markup import heading
from rashomon.runs import Run, Runs
from rashomon.starting import BatchOptions, ExecutionChoices, Started, execution_arguments, run_process, start
from rashomon.tables import Tables


class Workspace:
    """A folder of builds and runs, which is created when something is first written.

    ``Workspace()`` is the command line's: ``RASHOMON_WORKSPACE``, or else your user data folder.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._folders = Folders.find(None if path is None else Path(path))

    @property
    def path(self) -> Path:
        """The workspace's folder."""
        return self._folders.path

    @property
    def runs(self) -> Runs:
        """All runs, oldest first; a damaged one says what is wrong when it is read."""
        return Runs([self._run(summary.name) for summary in self._folders.summaries()])

    def run(self, name: str | Run) -> Run:
        """Return the run that ``name`` stands for, as on the command line: "latest:MODEL", for example.

        Raises StoreError or SpecError.
        """
        return Run(self._folders, name.folder if isinstance(name, Run) else run_folder(self._folders, name))

    def tables(self, *names: str | Run, judge: str | None = None, published: bool = False) -> Tables:
        """Return the tables of the runs of these names together, a row for each run.

        Raises SpecError if they are of several benchmarks, StoreError if there is no such run.
        """
        return Runs([self.run(name) for name in names]).tables(judge, published=published)

    def build(self, benchmark: str, sources: Mapping[str, str | Path], *, replace: bool = False) -> Path:
        """Build a benchmark in the workspace from its sources, by name, and return the build's folder.

        ``rashomon benchmarks`` lists the sources. Constructions that need a model are for ``rashomon build``. With ``replace``,
        another build of it is replaced. Raises SourceError, SpecError.
        """
        if not isinstance(sources, Mapping):
            known = ", ".join(repr(source.name) for source in get_benchmark(benchmark).sources)
            raise SpecError(f"give the sources as a dict of name and place; the names of {benchmark} are {known}.")
        for place in sources.values():
            typed_path(place)
        pairs = [(name, str(place)) for name, place in sources.items()]
        folder = self._folders.build_folder(benchmark)
        return get_benchmark(benchmark).build(pairs, folder, BuildOptions(replace=replace)).path

    def start(self, spec: str | Path | None = None, **options: Unpack[BatchOptions]) -> Started:
        """Start the runs of a spec file, of a paper's setup such as "paper:cmc-bench", or of ``options`` alone.

        The options are those of ``rashomon --batch`` and override the spec's. The runs are checked here, so what is wrong raises
        SpecError, SourceError, ModelError or StoreError. A process of its own then answers, under the device's lock like any
        other run. The same start resumes runs that were stopped.
        """
        return start(self._folders, spec, options)

    def resume(self, name: str | Run, **options: Unpack[ExecutionChoices]) -> Started:
        """Resume a run in a process of its own. Raises StoreError."""
        run = self.run(name)
        return run_process(self._folders, Runs([run]), ["resume", str(run.folder), *execution_arguments(options)])

    def judge(self, name: str | Run, *judges: str, **options: Unpack[ExecutionChoices]) -> Started:
        """Judge a run's answers with further judges or models, by name, in a process of its own. Raises SpecError, StoreError."""
        if not judges:
            raise SpecError("name a judge; `rashomon judges` lists them.")
        run = self.run(name)
        names = [f"--judge={judge}" for judge in judges]
        return run_process(
            self._folders, Runs([run]), ["judge", str(run.folder), *names, *execution_arguments(options)]
        )

    def _run(self, name: str) -> Run:
        return Run(self._folders, self._folders.runs_folder / name)

    def _repr_html_(self) -> str:
        return heading(f"Workspace {self.path}") + self.runs._repr_html_()

    def __repr__(self) -> str:
        return f"<Workspace {str(self.path)!a}: {len(self._folders.run_names())} runs>"
