"""``rashomon doctor --full``: all that can be checked and measured on this machine, and a report to pass on."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from app.commands.batch import ExecutionOptions, execute_runs
from app.commands.demo import DEMOS, demo
from app.commands.progress_display import PlainDisplay
from app.commands.spinner import spinner
from app.doctor import CheckResult, examine
from app.doctor.agreement import Agreement, compare_with_loop
from app.doctor.pilot_model import PilotModel, choose_pilot_model
from app.doctor.report import PILOT_FOLDER, check_file, measurements, report, write_report
from app.engine.plan import check_spec, plan_run
from app.exit_codes import DONE, FAILURES, INTERRUPTED, EndedError
from app.report.throughput import duration
from app.run_spec import BatchSpec
from app.store.workspace import RunSummary, Workspace, read_summary
from app.text.escape import clean
from app.text.plural import count_of
from benchmarks.build import BuildOptions
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import digest
from mlx_backends.core.error_text import one_line
from mlx_backends.registry import describe

BENCHMARK = "cmc-bench"
_EXAMPLES = 20
OK, FAILED, SKIPPED = "ok", "failed", "skipped"


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
        self.results: list[CheckResult] = []
        self.measured: Mapping[str, Any] | str = "none: not measured"
        self.outcomes: dict[str, Outcome] = {}
        self._agreement: Agreement | str = "not compared"
        self._steps: Mapping[str, Callable[[Callable[[str], None]], Outcome]] = {
            "checks": self._checks,
            "measurements": self._measurements,
            "metal": self._metal,
            "demo": self._demo,
            "pilot": self._pilot,
            "tokens": self._tokens,
            "memory": self._memory,
            "speed": self._speed,
        }

    def run(self) -> None:
        """Do all steps and print a line for each."""
        for name, step in self._steps.items():
            started = perf_counter()
            try:
                with spinner(name) as update:
                    outcome = step(update)
            except EndedError as end:
                if end.exit_code == INTERRUPTED:
                    raise
                outcome = Outcome(FAILED, str(end), is_private=True)
            except RashomonError as error:
                outcome = Outcome(FAILED, str(error), is_private=True)
            except Exception as error:  # whatever it is, the other steps still tell something
                outcome = Outcome(FAILED, one_line(error), is_private=True)
            self.outcomes[name] = outcome
            print_step(name, outcome, perf_counter() - started)

    def sections(self) -> Mapping[str, Sequence[str]]:
        """Return the sections of the report, which name no model that may be private."""
        steps = []
        for name in self._steps:
            outcome = self.outcomes.get(name, Outcome(SKIPPED, "interrupted before its end"))
            hidden = outcome.is_private and not self._model.is_public
            steps.append(f"{name}: {outcome.state}" + ("" if hidden or not outcome.message else f", {outcome.message}"))
        sections = {"steps of doctor --full": steps}
        if isinstance(self._agreement, Agreement):
            sections["comparison with a plain loop"] = [
                f"model: {self._model.public_name}",
                *agreement_lines(self._agreement),
            ]
        return sections

    def _checks(self, update: Callable[[str], None]) -> Outcome:
        for result in examine(self._workspace):
            self.results.append(result)
        failed = [result for result in self.results if not result.ok]
        if not failed:
            return Outcome(OK, f"all {len(self.results)} checks")
        names = ", ".join(result.check for result in failed)
        return Outcome(FAILED, f"{count_of(len(failed), 'check')} ({names}); `rashomon doctor` has the fix of each")

    def _measurements(self, update: Callable[[str], None]) -> Outcome:
        self.measured = measurements()
        if isinstance(self.measured, str):
            return Outcome(FAILED, self.measured.removeprefix("none: "), is_private=True)
        problems = [name for name, value in self.measured.items() if isinstance(value, str) and name != "device"]
        sight = self.measured["sight"]
        if isinstance(sight, Mapping) and sight["problem"]:
            problems.append("sight")
        if problems:
            return Outcome(FAILED, f"with the demo's model: {', '.join(problems)}; the report has the reasons")
        return Outcome(OK, "speed, images, sight check and batch check of the demo's model")

    def _metal(self, update: Callable[[str], None]) -> Outcome:
        if isinstance(self.measured, str):
            return Outcome(FAILED, "unknown, because nothing was measured")
        device, name = self.measured["device"], self.measured["facts"].get("device_name", "an unnamed device")
        if sys.platform != "darwin":
            return Outcome(SKIPPED, f"this is no Mac; MLX computed on {device}, so nothing here shows what Metal does")
        if "gpu" not in device:
            return Outcome(FAILED, f"MLX computed on {device}; nothing here shows what Metal does")
        return Outcome(OK, f"MLX computed on {name}")

    def _demo(self, update: Callable[[str], None]) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="rashomon-doctor-") as folder, redirect_stdout(io.StringIO()):
            demo(Workspace(Path(folder)), BENCHMARK, display="none")
        return Outcome(OK, f"{DEMOS[BENCHMARK].examples} examples, two models and the baselines, in a temporary folder")

    def _pilot(self, update: Callable[[str], None]) -> Outcome:
        if self._model.is_demo:
            advice = "`rashomon models get` fetches one; the next steps take the demo's model"
            return Outcome(SKIPPED, f"{self._model.why}; {advice}")
        home = Workspace(self._workspace.path / PILOT_FOLDER)
        home.make()
        run = _answer_pilot(home, self._model.name, update)
        seconds, tokens = (sum(getattr(part, name) for part in run.progress) for name in ("seconds", "tokens"))
        peak = max(part.peak_memory for part in run.progress)
        message = (
            f"{self._model.public_name}: {run.done} answers, {run.errors} errors, {seconds / run.done:.2f} s and "
            f"{tokens / run.done:.0f} tokens an answer, peak {peak / 1e9:.2f} GB"
        )
        return Outcome(FAILED if run.errors else OK, message)

    def _tokens(self, update: Callable[[str], None]) -> Outcome:
        self._agreement = agreement = compare_with_loop(self._model.name)
        if isinstance(agreement, str):
            return Outcome(FAILED, agreement, is_private=True)
        exact, batched = agreement.same(agreement.exact), agreement.same(agreement.batched)
        message = (
            f"{self._model.public_name}: of {agreement.count} answers, {exact} one at a time and {batched} as in a run "
            f"({agreement.way}) are those of {agreement.library}'s own loop"
        )
        if agreement.near_ties:
            message += f"; {agreement.near_ties} others follow near ties that rounding decides"
        return Outcome(OK if agreement.is_same else FAILED, message)

    def _memory(self, update: Callable[[str], None]) -> Outcome:
        if isinstance(self._agreement, str):
            return Outcome(SKIPPED, "the step tokens has measured nothing")
        need, peak = (value / 1e9 for value in (self._agreement.need, self._agreement.exact.peak))
        verb = "is within" if peak <= need else "exceeds"
        message = f"the peak of {peak:.3f} GB one at a time {verb} the estimate of {need:.3f} GB"
        return Outcome(OK if peak <= need else FAILED, message)

    def _speed(self, update: Callable[[str], None]) -> Outcome:
        if isinstance(self._agreement, str):
            return Outcome(SKIPPED, "the step tokens has measured nothing")
        agreement = self._agreement
        ratio = agreement.loop.seconds / agreement.batched.seconds
        return Outcome(
            OK,
            f"{ratio:.2f} times as fast as the loop over the same {agreement.count} prompts, "
            f"after a check of {agreement.check_s:.1f} s",
        )


def agreement_lines(agreement: Agreement) -> list[str]:
    """Return the comparison with the loop as lines of a report."""
    loop, exact, batched = agreement.loop, agreement.exact, agreement.batched
    lines = [
        f"library: {agreement.library}; patches: {agreement.patches or 'none'}; device: {agreement.device}",
        f"way: {agreement.way}; check: {agreement.check_s:.1f} s",
    ]
    for name, answers in (("one at a time", exact), ("as in a run", batched)):
        first = agreement.first_difference(answers)
        where = f", first difference at {first}" if first else ""
        lines.append(f"{name}: {agreement.same(answers)} of {agreement.count} answers are the loop's{where}")
    lines.append(f"near ties: {agreement.near_ties}")
    lines += [
        f"memory: estimated {agreement.need / 1e9:.3f} GB, for these prompts {agreement.estimate / 1e9:.3f} GB, "
        f"of {agreement.available / 1e9:.2f} GB for models",
        f"peak: one at a time {exact.peak / 1e9:.3f} GB, as in a run {batched.peak / 1e9:.3f} GB, "
        f"loop {loop.peak / 1e9:.3f} GB",
        f"seconds: loop {loop.seconds:.2f}, one at a time {exact.seconds:.2f}, as in a run {batched.seconds:.2f}",
        f"speed: one at a time {loop.seconds / exact.seconds:.2f} times the loop's, "
        f"as in a run {loop.seconds / batched.seconds:.2f} times",
    ]
    return lines


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


def print_step(name: str, outcome: Outcome, seconds: float) -> None:
    """Print a step's line."""
    print(clean(f"{outcome.state:<8} {name:<13} {outcome.message} ({duration(seconds)})"), flush=True)


def doctor_full(workspace: Workspace, *, model: str | None, file: Path) -> int:
    """Do all steps, print a line for each, write the report to ``file`` and return 0.

    Raises EndedError if a step failed, or if the command was interrupted, with a report on what was done.
    Raises SpecError or ModelError before the first step if ``file`` is no report or ``model`` cannot be measured.
    """
    check_file(file)
    check = FullCheck(workspace, choose_pilot_model(model))
    interruption: BaseException | None = None
    try:
        check.run()
    except BaseException as error:  # Ctrl-C comes as different exceptions
        interruption = error
    started = perf_counter()
    outcome = _write(workspace, check, file)
    print_step("report", outcome, perf_counter() - started)
    if interruption is not None:
        raise EndedError(
            INTERRUPTED,
            "interrupted; the report has what was done. The same command resumes the pilot and repeats the other steps.",
        ) from interruption
    failed = [name for name, step in (*check.outcomes.items(), ("report", outcome)) if step.state == FAILED]
    if failed:
        raise EndedError(
            FAILURES, f"{count_of(len(failed), 'step')} failed ({', '.join(failed)}); each says why above."
        )
    return DONE


def _write(workspace: Workspace, check: FullCheck, file: Path) -> Outcome:
    try:
        write_report(file, report(workspace, check.results, check.measured, check.sections()))
    except RashomonError as error:
        return Outcome(FAILED, str(error))
    return Outcome(OK, f"{file} names no user, machine, folder or run; read it before you pass it on")
