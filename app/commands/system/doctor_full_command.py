"""``rashomon doctor --full``: all that can be checked and measured on this machine, and a report to pass on."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from app.commands.running.run_execution import ExecutionOptions, execute_runs
from app.commands.system.demo_command import DEMOS, demo
from app.commands.terminal.progress_display import PlainDisplay
from app.commands.terminal.spinner import spinner
from app.doctor import CheckResult, examine
from app.doctor.machine_report import PILOT_FOLDER, check_file, measurements, report, run_line, write_report
from app.doctor.model_to_measure import PilotModel, choose_pilot_model
from app.doctor.plain_loop_agreement import Agreement, compare_with_loop
from app.engine.run_plan import check_spec, plan_run
from app.exit_codes import DONE, FAILURES, INTERRUPTED, EndedError
from app.report.progress.remaining_time import duration
from app.run_spec import BatchSpec
from app.store.run_summary import RunSummary, read_summary
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean
from benchmarks.build import BuildOptions
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.own_files import scratch_folder
from benchmarks.vocabulary import digest
from mlx_backends.core.error_text import one_line
from mlx_backends.engine_registry import describe

BENCHMARK = "cmc-bench"
_EXAMPLES = 20
OK, FAILED, SKIPPED = "ok", "failed", "skipped"
STEPS = ("checks", "measurements", "metal", "demo", "pilot", "tokens", "memory", "speed")
"""The steps before the report, each a method of :class:`FullCheck`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a step: its state, and a sentence why, without a full stop.

    ``is_private`` says that the sentence may name what is not for a report.
    """

    state: str
    message: str
    is_private: bool = False


class FullCheck:
    """The steps of ``rashomon doctor --full``, in order, and what they have found so far.

    A step that fails, with whatever error, does not stop the others.
    """

    def __init__(self, workspace: Workspace, model: PilotModel) -> None:
        self._workspace = workspace
        self._model = model
        self._results: list[CheckResult] = []
        self._measured: Mapping[str, Any] | str = "none: not measured"
        self._agreement: Agreement | str = "not compared"
        self.outcomes: dict[str, Outcome] = {}

    def run(self, names: Iterable[str] = STEPS) -> None:
        """Do the steps called ``names`` and print a line for each."""
        for name in names:
            self._do(name, getattr(self, f"_{name}"))

    def write(self, file: Path) -> None:
        """Write the report to ``file`` and print a line; steps that were not done are in it as interrupted."""
        self._do("report", lambda update: self._write(file))

    def _do(self, name: str, step: Callable[[Callable[[str], None]], Outcome]) -> None:
        started = perf_counter()
        try:
            with spinner(name) as update:
                outcome = step(update)
        except RashomonError as error:
            if isinstance(error, EndedError) and error.exit_code == INTERRUPTED:
                raise
            outcome = Outcome(FAILED, str(error), is_private=True)
        except Exception as error:  # whatever it is, the other steps still tell something
            outcome = Outcome(FAILED, one_line(error), is_private=True)
        self.outcomes[name] = outcome
        seconds = duration(perf_counter() - started)
        print(clean(f"{outcome.state:<8} {name:<13} {outcome.message} ({seconds})"), flush=True)

    def lines(self) -> Sequence[str]:
        """Return the lines of the report, which name no model that may be private."""
        lines = []
        for name in STEPS:
            outcome = self.outcomes.get(name, Outcome(SKIPPED, "interrupted before its end"))
            hidden = outcome.is_private and not self._model.is_public
            lines.append(f"{name}: {outcome.state}" + ("" if hidden or not outcome.message else f", {outcome.message}"))
        return lines

    def _checks(self, update: Callable[[str], None]) -> Outcome:
        self._results.extend(examine(self._workspace))  # one by one, so that Ctrl-C keeps those before it
        failed = [result.check for result in self._results if not result.ok]
        if not failed:
            return Outcome(OK, f"all {len(self._results)} checks")
        advice = "`rashomon doctor` has the fix of each"
        return Outcome(FAILED, f"{count_of(len(failed), 'check')} ({', '.join(failed)}); {advice}")

    def _measurements(self, update: Callable[[str], None]) -> Outcome:
        self._measured = measured = measurements()
        if isinstance(measured, str):
            return Outcome(FAILED, measured.removeprefix("none: "), is_private=True)
        problems = [name for name, value in measured.items() if isinstance(value, str) and name != "device"]
        sight = measured["sight"]
        if isinstance(sight, Mapping) and sight["problem"]:
            problems.append("sight")
        if problems:
            return Outcome(FAILED, f"with the demo's model: {', '.join(problems)}; the report has the reasons")
        return Outcome(OK, "speed, images, sight check and batch check of the demo's model")

    def _metal(self, update: Callable[[str], None]) -> Outcome:
        if isinstance(self._measured, str):
            return Outcome(FAILED, "unknown, because nothing was measured")
        device = self._measured["device"]
        if sys.platform != "darwin":
            return Outcome(SKIPPED, f"this is no Mac; MLX computed on {device}, so nothing here shows what Metal does")
        if "gpu" not in device:
            return Outcome(FAILED, f"MLX computed on {device}; nothing here shows what Metal does")
        return Outcome(OK, f"MLX computed on {self._measured['facts'].get('device_name', 'an unnamed device')}")

    def _demo(self, update: Callable[[str], None]) -> Outcome:
        with scratch_folder() as folder, redirect_stdout(io.StringIO()):
            demo(Workspace(folder), BENCHMARK, display="none")
        return Outcome(OK, f"{DEMOS[BENCHMARK].examples} examples, two models and the baselines, in a temporary folder")

    def _pilot(self, update: Callable[[str], None]) -> Outcome:
        if self._model.is_demo:
            advice = "`rashomon models get` fetches one; the next steps take the demo's model"
            return Outcome(SKIPPED, f"{self._model.why}; {advice}")
        home = Workspace(self._workspace.path / PILOT_FOLDER)
        home.make()
        run = _answer_pilot(home, self._model.name, update)
        return Outcome(
            FAILED if run.errors else OK, f"{run_line(self._model.public_name, run)}, for {_EXAMPLES} examples"
        )

    def _tokens(self, update: Callable[[str], None]) -> Outcome:
        self._agreement = agreement = compare_with_loop(self._model.name)
        if isinstance(agreement, str):
            return Outcome(FAILED, agreement, is_private=True)
        count, way = len(agreement.loop.tokens), agreement.way
        exact, batched = (agreement.differences(answers) for answers in (agreement.exact, agreement.batched))
        message = (
            f"{self._model.public_name}: of {count} answers, {count - len(exact)} one at a time and "
            f"{count - len(batched)} as in a run ({way}) are those of a loop around {agreement.engine}"
        )
        for name, differences in (("one at a time", exact), ("as in a run", batched)):
            if differences:
                message += f"; {name}, the first that differs is at {differences[0]}"
        if agreement.near_ties:
            message += f"; {agreement.near_ties} differ after near ties that rounding decides"
        return Outcome(OK if not exact and len(batched) == agreement.near_ties else FAILED, message)

    def _memory(self, update: Callable[[str], None]) -> Outcome:
        if isinstance(self._agreement, str):
            return Outcome(SKIPPED, "the step tokens has measured nothing")
        agreement = self._agreement
        is_enough = agreement.exact.peak <= agreement.need
        need, estimate, available = (_gb(size) for size in (agreement.need, agreement.estimate, agreement.available))
        exact, batched, loop = (_gb(way.peak) for way in (agreement.exact, agreement.batched, agreement.loop))
        message = (
            f"the peak of {exact} one at a time {'is within' if is_enough else 'exceeds'} the estimate of {need}; "
            f"for these prompts {estimate} were estimated; the peak is {batched} as in a run and {loop} in the loop, "
            f"and there are {available} for models"
        )
        return Outcome(OK if is_enough else FAILED, message)

    def _speed(self, update: Callable[[str], None]) -> Outcome:
        if isinstance(self._agreement, str):
            return Outcome(SKIPPED, "the step tokens has measured nothing")
        loop, *ways = (way.seconds for way in (self._agreement.loop, self._agreement.exact, self._agreement.batched))
        exact, batched = (f"{loop / seconds:.2f} times as fast as the loop ({seconds:.2f} s)" for seconds in ways)
        return Outcome(
            OK,
            f"as in a run {batched}, after a check of {self._agreement.check_s:.1f} s; one at a time {exact}; "
            f"the loop took {loop:.2f} s",
        )

    def _write(self, file: Path) -> Outcome:
        write_report(file, report(self._workspace, self._results, self._measured, self.lines()))
        return Outcome(OK, f"{file} names no user, machine, folder or run; read it before you pass it on")


def _gb(size: int) -> str:
    return f"{size / 1e9:.3f} GB"


class _StatusDisplay(PlainDisplay):
    """A display of a run's progress on the status line, without notices."""

    every_seconds = 1.0

    def notice(self, message: str) -> None:
        return None


def _answer_pilot(home: Workspace, model: str, update: Callable[[str], None]) -> RunSummary:
    """Run or resume the pilot of ``model`` and return its summary; raises as :func:`execute_runs`."""
    folder = home.build_folder(BENCHMARK)
    if not folder.exists():
        source, place = DEMOS[BENCHMARK].source
        get_benchmark(BENCHMARK).build([(source, str(place))], folder, BuildOptions())
    info = describe(model)
    # A pilot with other weights, libraries or device is another run.
    engine = digest({"model": info.model, "weights": info.weights, "versions": dict(info.versions), "on": info.device})
    (spec,) = BatchSpec(benchmark=BENCHMARK, model=(model,), name=f"pilot-{engine[:12]}", limit=_EXAMPLES).runs()
    plan = plan_run(home, check_spec(home, spec))
    try:
        execute_runs(home, [plan], _StatusDisplay(update), ExecutionOptions(display="none"))
    except EndedError as end:
        if end.exit_code != FAILURES:  # the summary counts the errors
            raise
    return read_summary(plan.folder)


def doctor_full(workspace: Workspace, *, model: str | None, file: Path) -> int:
    """Do all steps, print a line for each, write the report to ``file`` and return 0.

    Raises EndedError if a step failed, or if the command was interrupted, with a report on what was done.
    Raises SpecError, StoreError or ModelError before the first step if ``file`` is no report or cannot be written, or
    ``model`` cannot be measured.
    """
    check_file(file)
    check = FullCheck(workspace, choose_pilot_model(model))
    interruption: BaseException | None = None
    try:
        check.run()
    except BaseException as error:  # Ctrl-C comes as different exceptions
        interruption = error
    check.write(file)
    if interruption is not None:
        is_written = check.outcomes["report"].state == OK
        raise EndedError(
            INTERRUPTED,
            f"interrupted; {'the report has what was done' if is_written else 'no report was written'}. "
            "The same command resumes the pilot and repeats the other steps.",
        ) from interruption
    failed = [name for name, step in check.outcomes.items() if step.state == FAILED]
    if failed:
        raise EndedError(
            FAILURES, f"{count_of(len(failed), 'step')} failed ({', '.join(failed)}); each says why above."
        )
    return DONE
