"""Start of runs in processes of their own, and the wait for their end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from app.commands.running.batch_command import check_batch
from app.commands.running.run_execution import ExecutionOptions
from app.engine.run_plan import plan_run
from app.exit_codes import BUSY, FAILURES, STOPPED, WRONG
from app.new_run.spec_form import save_spec
from app.papers.paper_setups import setup_file
from app.run_name_patterns import is_pattern
from app.store.workspace import Workspace as Folders
from app.tui.tui_processes import Job, RunProcesses, allow_address_options
from benchmarks import number_ranges as ranges
from benchmarks.errors import BusyError, RashomonError, SpecError, did_you_mean
from benchmarks.number_ranges import shortened
from benchmarks.untrusted.typed_paths import typed_path
from rashomon._markup import heading
from rashomon.runs import Run, Runs

Names = str | Sequence[str]
_FLAGS = ("force", "accept_engine", "allow_open_cluster")


class ExecutionChoices(TypedDict, total=False):
    """Options of how runs are executed, which are no part of what a run is."""

    force: bool
    accept_engine: bool
    allow_open_cluster: bool
    allow_address: Names
    until_width: float
    restarts: int
    wait: float


class BatchOptions(ExecutionChoices, total=False):
    """The options of ``rashomon --batch``, which ``rashomon batch --help`` explains."""

    benchmark: str
    model: Names
    adapter: str | Path
    data: str | Path
    prompt_set: Names
    judge: Names
    conditions: Names
    strata: Mapping[str, Names]
    limit: int
    seed: int
    max_tokens: int
    temperature: float
    top_p: float
    max_pixels: int
    name: str
    exact: bool
    fresh: bool
    score: Literal["generate", "likelihood"]
    protocol: Literal["direct", "read-then-compare", "self-consistency", "verify"]
    samples: int
    repeats: int
    kv_bits: int
    token_ceiling: int
    cost_ceiling: float
    input_price: float
    output_price: float
    concurrency: int
    timeout: float
    attempts: int
    workers: str


class RunFailedError(RashomonError):
    """Runs that were interrupted or could not continue; every answer reported as done is stored."""

    exit_code = STOPPED


class Started:
    """Runs that a process of its own works on. It goes on if this process ends.

    Attributes:
        runs: The runs, which appear in the workspace as soon as they are planned.
    """

    def __init__(self, runs: Runs, job: Job) -> None:
        self.runs = runs
        self._job = job

    @property
    def running(self) -> bool:
        """True until the process has ended."""
        return self._job.code is None

    @property
    def log(self) -> Path:
        """The file with what the process prints."""
        return self._job.log

    def wait(self, timeout: float | None = None) -> Runs:
        """Wait for the end, at most ``timeout`` seconds, and return the runs. An interrupted wait does not stop them.

        Answers that failed are counted in the table "failures", and are no error here.

        Raises:
            TimeoutError: If the runs take longer.
            SpecError: If the command is wrong.
            BusyError: If another process works on the runs.
            RunFailedError: If the runs were stopped or could not continue.
        """
        try:
            code = self._job.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"the runs take longer than {timeout} s; wait again, or stop them.") from error
        if code == 0:
            return self.runs
        summaries = [run.summary() for run in self.runs]
        if code == FAILURES and all(run.problem is None and run.done == run.total for run in summaries):
            return self.runs
        lines = [line for line in self._job.output().splitlines() if line.strip()]
        message = (
            lines[-1].removeprefix("rashomon: ") if lines else f"the process ended with code {code}; see {self.log}."
        )
        raise {WRONG: SpecError, BUSY: BusyError}.get(code, RunFailedError)(message)

    def stop(self) -> Runs:
        """Stop after the answers in progress, which are stored, and return the runs; the same start resumes them."""
        self._job.stop()
        self._job.process.wait()
        return self.runs

    def _repr_html_(self) -> str:
        return heading("running" if self.running else "ended") + self.runs._repr_html_()

    def __repr__(self) -> str:
        return f"<Started: {'running' if self.running else 'ended'}, {self.runs!r}>"


def start(folders: Folders, spec: str | Path | None, options: BatchOptions) -> Started:
    """Start the runs of a spec and ``options``; see :meth:`rashomon.Workspace.start`."""
    _check(dict[str, Any](options), BatchOptions.__annotations__)
    values = dict[str, Any](options)
    chosen = {key: values.pop(key) for key in ExecutionChoices.__annotations__ if key in values}
    execution = ExecutionOptions(
        display="none",
        force=chosen.get("force", False),
        accept_engine=chosen.get("accept_engine", False),
        allow_open_cluster=chosen.get("allow_open_cluster", False),
        until_width=chosen.get("until_width"),
    )
    path = None if spec is None else Path(spec)
    batch, checked, _ = check_batch(folders, path if setup_file(path) else _typed(path), _overrides(values), execution)
    if is_pattern(batch.name):
        for run in checked:  # or the process would begin others, a second later
            plan_run(folders, run)
    file = folders.path / "jobs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns()}.toml"
    save_spec(batch, file)
    runs = Runs([Run(folders, run.folder) for run in checked])
    # A cluster that only a spec names must be allowed; this one was named by the caller.
    cluster = [f"--workers={values['workers']}"] if values.get("workers") else []
    return run_process(folders, runs, ["batch", str(file), *_execution_arguments(chosen), *cluster])


def run_process(folders: Folders, runs: Runs, arguments: Sequence[str]) -> Started:
    """Start ``rashomon`` with ``arguments`` for ``runs``."""
    return Started(runs, RunProcesses(folders).start_job([*arguments, "--display", "plain"]))


def execution_arguments(options: ExecutionChoices) -> list[str]:
    """Return the command-line options of ``options``. Raises SpecError for one that there is not."""
    _check(dict[str, Any](options), ExecutionChoices.__annotations__)
    return _execution_arguments(dict[str, Any](options))


def _check(options: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise SpecError for an option that is not among the ``known`` ones, and for wrong values of :class:`ExecutionChoices`."""
    unknown = next((key for key in options if key not in known), None)
    if unknown is not None:
        raise SpecError(f"there is no option {unknown!r}; {did_you_mean(unknown, known)}")
    ranges.UNTIL_WIDTH.check("until_width", options.get("until_width"))
    ranges.RESTARTS.check("restarts", options.get("restarts"))
    ranges.WAIT.check("wait", options.get("wait"))
    for key in _FLAGS:
        if not isinstance(options.get(key, False), bool):
            raise SpecError(f"{key} = {shortened(options[key])}: give True or False.")


def _execution_arguments(chosen: Mapping[str, Any]) -> list[str]:
    addresses = allow_address_options(_listed(chosen.get("allow_address", ())))
    flags = [f"--{key.replace('_', '-')}" for key in _FLAGS if chosen.get(key)]
    numbers = [
        f"--{key.replace('_', '-')}={chosen[key]}"
        for key in ("until_width", "restarts", "wait")
        if chosen.get(key) is not None
    ]
    return [*addresses, *flags, *numbers]


def _overrides(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the command line passes them on: lists for names, absolute folders, and no empty values."""
    overrides = dict(values)
    for key in ("model", "prompt_set", "judge", "conditions"):
        if key in overrides:
            overrides[key] = _listed(overrides[key])
    for key in ("data", "adapter"):
        if overrides.get(key) is not None:
            overrides[key] = str(typed_path(overrides[key]))
    if "strata" in overrides:
        overrides["strata"] = {key: _listed(names) for key, names in overrides["strata"].items()}
    return {key: value for key, value in overrides.items() if value not in (None, [], {})}


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _typed(path: Path | None) -> Path | None:
    return None if path is None else typed_path(path)
