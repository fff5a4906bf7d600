"""``rashomon baselines``: runs made of a run's own answers to each source alone."""

from __future__ import annotations

from collections.abc import Sequence

from app.commands.batch import ExecutionOptions, print_message
from app.commands.judge import judge as judge_run
from app.engine.baselines import DESCRIPTIONS, available_rules, make_baseline
from app.exit_codes import DONE, FAILURES, EndedError
from app.run_spec import RunSpec, parse_stored
from app.store.run import RunStore
from app.store.run_references import run_folder
from app.store.workspace import Workspace
from benchmarks.registry import get_benchmark
from judges.base import FunctionJudge
from judges.registry import find_judge


def baselines(workspace: Workspace, runs: Sequence[str], rules: Sequence[str], display: str | None) -> int:
    """Make the baselines ``rules`` of ``runs`` (if empty, all possible ones) and judge them; return 0.

    Raises EndedError as :func:`judge_run`; failed judgements of a baseline do not keep the next one from being made.
    """
    failures = []
    for run in runs:
        source = run_folder(workspace, run)
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
                judge_run(workspace, baseline.folder.name, spec.judge, options)
            except EndedError as end:
                if end.exit_code != FAILURES:
                    raise
                failures.append(f"{baseline.folder.name}: {end}")
    if failures:
        raise EndedError(FAILURES, " ".join(failures))
    return DONE
