"""``rashomon baselines``: runs made of a run's own answers to each source alone."""

from __future__ import annotations

from collections.abc import Sequence

from app.commands.running.judge_command import judge as judge_run
from app.commands.running.run_execution import ExecutionOptions, print_message
from app.engine.baseline_runs import DESCRIPTIONS, available_rules, make_baseline
from app.exit_codes import DONE, FAILURES, EndedError
from app.run_spec import RunSpec, parse_stored
from app.store.file_locks import FileLock, busy_message
from app.store.run_references import run_folder
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from app.text.plural import count_of
from benchmarks.errors import BusyError
from benchmarks.registry import get_benchmark
from judges.base import FunctionJudge
from judges.judge_registry import find_judge


def baselines(workspace: Workspace, runs: Sequence[str], rules: Sequence[str], display: str | None) -> int:
    """Make the baselines ``rules`` of ``runs`` (if empty, all possible ones) and judge them; return 0.

    Raises EndedError as :func:`judge_run`, and if answers are errors; failures of a baseline do not keep the next one from being
    made. Raises BusyError for a run in progress.
    """
    failures = []
    for run in runs:
        source = run_folder(workspace, run)
        lock = FileLock(source / "lock")
        if lock.holder() is not None:
            raise BusyError(f"{busy_message(lock)}; make baselines when it has ended.")
        for rule in rules or available_rules(source):
            baseline = make_baseline(workspace, source, rule)
            verb = "exists already" if baseline.existing else DESCRIPTIONS[rule]
            print_message(f"{baseline.folder.name}: {baseline.answers} answers; {verb}.", display)
            with RunStore.read(baseline.folder) as store:
                spec = parse_stored(RunSpec, store.meta("spec"), str(baseline.folder))
            judges = [find_judge(name, get_benchmark(spec.benchmark)) for name in spec.judge]
            by_rule = all(isinstance(judge, FunctionJudge) for judge in judges)
            # Rules take seconds, and their progress would hide the lines above.
            options = ExecutionOptions(display="none" if by_rule else display)
            try:
                judge_run(workspace, baseline.folder.name, options, names=spec.judge)
            except EndedError as end:
                if end.exit_code != FAILURES:
                    raise
                failures.append(f"{baseline.folder.name}: {end}")
            if errors := read_summary(baseline.folder).errors:
                failures.append(
                    f"{count_of(errors, 'answer')} of {baseline.folder.name} failed, because an answer of {source.name} did."
                )
    if failures:
        raise EndedError(FAILURES, " ".join(failures))
    return DONE
