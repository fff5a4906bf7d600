"""Checks of a spec before it runs, fast enough to follow typing."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from app.engine.model_judging import work_left
from app.engine.run_plan import check_scores, open_build, trained_examples
from app.engine.runs_to_resume import command_runs
from app.new_run.mac_warnings import mac_warnings
from app.new_run.run_choices import ModelChoice, model_choice
from app.new_run.run_estimate import BuildContents, RunEstimate, estimate_run, judge_costs, remote_usage
from app.run_spec import BatchSpec, RunSpec
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import AddressError, RashomonError
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.repeats import RepeatedInstances
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import digest
from judges.judge_registry import find_judges
from mlx_backends.engine_registry import check_kv_bits, engine_name, training_records
from mlx_backends.remote import check_ready, is_remote


@dataclass(frozen=True, slots=True)
class RunPreflight:
    """One run of a spec: its name, whether it exists or has even ``finished``, and the estimate of what is left of it."""

    run: RunSpec
    name: str
    exists: bool
    finished: bool
    contents: BuildContents
    estimate: RunEstimate


@dataclass(frozen=True, slots=True)
class Preflight:
    """The runs of a spec with their costs and warnings; ``problems`` explains by field why there are none.

    ``memory`` is what the largest of the local models needs, and what this machine has for it, in bytes.
    """

    runs: tuple[RunPreflight, ...] = ()
    costs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    memory: tuple[int, int] | None = None
    problems: Mapping[str, str] | None = None


class _KeyProblem(Exception):
    """A problem with the value of a key."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@contextmanager
def _problem_of(key: str) -> Iterator[None]:
    """Raise _KeyProblem with the ``key`` for a RashomonError."""
    try:
        yield
    except RashomonError as error:
        raise _KeyProblem(key, str(error)) from error


class PreflightChecker:
    """Checker of specs in one workspace, with a cache of the contents of builds. Thread-safe."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._cache: dict[tuple[Path, Prompts], tuple[object, BuildContents]] = {}
        self._trained: dict[str, str] = {}
        self._lock = threading.Lock()

    def contents(self, run: RunSpec) -> BuildContents:
        """Return the contents of a run's build. Raises SourceError, SpecError."""
        folder = Path(run.data) if run.data else self._workspace.build_folder(run.benchmark)
        with self._lock:
            stamp = _stamp(folder)
            cached = self._cache.get((folder, run.prompts))
            if cached is None or cached[0] != stamp or stamp is None:
                cached = (stamp, BuildContents.read(open_build(self._workspace, run), run.prompts).precomputed())
                self._cache[folder, run.prompts] = cached
            return cached[1]

    def check(self, spec: BatchSpec) -> Preflight:
        """Check the runs of ``spec``. This reads the build the first time, and the image headers of remote requests."""
        models = [model_choice(name) for name in spec.model]
        for model in models:
            if model.problem:
                return Preflight(problems={"model": f"{model.spec_name}: {model.problem}"})
        benchmark = get_benchmark(spec.benchmark)
        try:
            find_judges(spec.judge, benchmark, spec.undecided_by)
        except RashomonError as error:
            return Preflight(problems={"judge": str(error)})
        runs = []
        for run in command_runs(self._workspace, spec):
            try:
                runs.append(self._check_run(run))
            except _KeyProblem as problem:
                return Preflight(problems={problem.key: str(problem)})
        answering = {run.run.model for run in runs if run.estimate.left}
        models = [model for model in models if model.spec_name in answering]
        needs = [(model.needed_bytes, model.available_bytes or 0) for model in models if model.needed_bytes is not None]
        judges = spec.judge if not all(run.finished for run in runs) else ()
        warnings = (
            *self._excluded(runs),
            *self._trained_examples(runs, models),
            *self._warnings(spec, models, [*answering, *judges]),
        )
        return Preflight(tuple(runs), tuple(self._costs(runs)), warnings, max(needs, default=None))

    def _check_run(self, run: RunSpec) -> RunPreflight:
        """Check a run. Raises _KeyProblem."""
        with _problem_of("data"):
            contents = self.contents(run)
        with _problem_of("strata"):
            estimate = estimate_run(self._workspace, run, contents).precomputed()
        if run.score == "likelihood":
            with _problem_of("score"):
                check_scores(run, engine_name(run.model))
        with _problem_of("kv_bits"):
            check_kv_bits(run.model, run.kv_bits)
        name = run.run_name(contents.build.digest)
        folder = self._workspace.runs_folder / name
        exists, finished = (folder / DATABASE).is_file(), False
        if exists:
            # A damaged run is reported when it is started.
            with suppress(RashomonError), RunStore.read(folder) as store:
                left = work_left(store, run)
                estimate = replace(estimate, done=max(0, estimate.answers - left.answers))
                finished = not any(left)
        return RunPreflight(run, name, exists, finished, contents, estimate)

    def _costs(self, runs: list[RunPreflight]) -> list[str]:
        costs = []
        for run in runs:
            if run.exists:
                continue
            instances = RepeatedInstances(run.estimate.instances, run.run.repeats)
            if is_remote(run.run.model):
                costs.append(f"{run.run.model}: {remote_usage(run.run, instances, run.contents.build)}")
            costs += judge_costs(run.run, run.contents.benchmark, instances)
        return costs

    def _excluded(self, runs: list[RunPreflight]) -> list[str]:
        new = [run for run in runs if not run.exists and run.estimate.excluded.total]
        return [f"{run.run.model}: {run.estimate.excluded.sentence}" for run in new]

    def _trained_examples(self, runs: Sequence[RunPreflight], models: Sequence[ModelChoice]) -> list[str]:
        """Return a sentence on each model that was trained on its test data."""
        names = {model.spec_name: model.name for model in models}
        sentences = []
        for run in runs:
            records = None if run.exists else training_records(run.run.model)
            if records:
                model, build = run.run.model, run.contents.build
                key = digest([list(records), build.digest, run.run.identity()])
                with self._lock:
                    if key not in self._trained:
                        trained = trained_examples(model, names.get(model, model), build, run.estimate.instances)
                        self._trained[key] = trained.sentence
                    sentences.append(self._trained[key])
        return list(filter(None, sentences))

    def _warnings(self, spec: BatchSpec, models: Sequence[ModelChoice], needed: Collection[str]) -> list[str]:
        """Return what would end the runs of a valid spec: a missing API key or library, or too little memory.

        ``models`` are the models that answer; ``needed`` has their names and those of the judges.
        """
        options = spec.api.remote_options(self._workspace.replies)
        warnings = []
        for name in dict.fromkeys(name for name in (*spec.model, *spec.judge) if name in needed):
            if is_remote(name):
                try:
                    check_ready(name, options)
                except AddressError:  # the user confirms it before the run starts
                    continue
                except RashomonError as error:
                    warnings.append(f"{name}: {error}")
        # Only --force loads a model that does not fit.
        warnings += [f"{model.name}: {model.note}" for model in models if model.fits is False]
        return [*warnings, *mac_warnings((model.spec_name, spec.decoding.max_pixels) for model in models)]


def _stamp(folder: Path) -> object:
    try:
        stats = [(folder / name).stat() for name in ("manifest.json", "instances.jsonl")]
    except OSError:
        return None
    return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]
