"""``rashomon judge``: add judges to the answers a run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.commands.batch import say
from app.commands.confirm_addresses import agree
from app.commands.progress_display import make_display
from app.engine.workers.run_control import forget_pause
from app.engine.workers.supervise import INTERRUPTED, Job, Supervisor
from app.run_spec import ApiSpec, RunSpec, load_judges, parse
from app.store.run import RunStore
from app.store.workspace import Workspace, summary
from benchmarks.base import get_benchmark
from benchmarks.errors import SpecError
from judges.base import Judge, find_judge
from judges.rubric import RubricJudge
from mlx_backends.remote import all_ready, lack
from mlx_backends.remote.options import RemoteOptions


def judge(
    workspace: Workspace,
    run: str,
    names: Sequence[str],
    *,
    api: Mapping[str, Any],
    retry_failed: bool,
    dry_run: bool,
    display: str | None,
    force: bool,
    accept_engine: bool,
    allowed: Sequence[str] = (),
) -> int:
    """Have the answers of ``run`` labelled by the judges called ``names``, each where it has not yet; the exit code."""
    shown = make_display(display)
    folder = workspace.run_folder(run)
    if not names:
        raise SpecError("name a judge with --judge: one of `rashomon judges`, or a model.")
    names = load_judges(names)
    with RunStore.read(folder) as store:
        spec = parse(RunSpec, store.meta("spec"), str(folder))
    benchmark = get_benchmark(spec.benchmark)
    judges = [find_judge(name, benchmark) for name in names]
    terms = parse(ApiSpec, {**spec.api.model_dump(), **api}, "the command line").terms(workspace.replies)
    if not dry_run:
        RunStore.require_own(folder)
        agree(names, allowed)
        all_ready(names, terms)
    for each in judges:
        with RunStore.read(folder) as store:
            failed_before = sum(p.judged[each.id].failed for p in store.progress() if each.id in p.judged)
            again = f", and {failed_before} that it failed on again" if retry_failed else ""
            say(f"{each.id}: {_estimate(store, each, terms)}{again}", display)
    if dry_run:
        if lacking := lack(names, terms):
            shown.problem(f"they cannot be asked yet: {lacking}")
        return 0
    job = Job(
        (folder,),
        tuple(names),
        terms=terms,
        force=force,
        accept_engine=accept_engine,
        retry_failed=retry_failed,
        restarts=spec.restarts,
    )
    forget_pause(folder)
    code = Supervisor(shown).run([job])
    if code == INTERRUPTED:
        shown.problem("interrupted; every verdict until now is safe: go on with the same command.")
        return INTERRUPTED
    failed = 0
    after = summary(folder)
    with RunStore.read(folder) as store:
        for each in judges:
            counts = [p.judged[each.id] for p in after.progress if each.id in p.judged]
            lost = sum(count.failed for count in counts)
            failed += lost
            calls, prompt, completion = store.judge_usage(each.id)
            used = f"; {calls} calls, {prompt} + {completion} tokens" if isinstance(each, RubricJudge) else ""
            labelled = sum(count.labelled for count in counts)
            unparsed = sum(count.unparsed for count in counts)
            say(f"{each.id}: {labelled} labelled, {unparsed} unparsed, {lost} failed{used}", display)
    return code or (1 if failed else 0)


def _estimate(store: RunStore, judge: Judge, terms: RemoteOptions) -> str:
    cases = [record for _, record in store.unjudged(judge.id, judge.conditions)]
    told = f"{len(cases)} answers to judge"
    if not isinstance(judge, RubricJudge) or judge.info.needs_device or not cases:
        return told
    from mlx_backends.remote.budget import estimate

    asked = [judge.request(str(i), record) for i, record in enumerate(cases) if judge.unasked(record) is None]
    return f"{told}, {estimate(asked, terms)}"
