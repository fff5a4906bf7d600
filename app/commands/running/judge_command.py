"""``rashomon judge``: further judges for the answers of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.commands.running.run_execution import ExecutionOptions, print_message
from app.commands.terminal.confirm_addresses import confirm_addresses
from app.commands.terminal.progress_display import make_display
from app.engine.run_control import clear_stale_pause
from app.engine.workers.cluster.cluster_address import check_workers
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_supervisor import Supervisor
from app.exit_codes import DONE, FAILURES, INTERRUPTED, EndedError
from app.json_output.json_events import outcome
from app.run_spec import ApiSpec, RunSpec, parse, parse_stored
from app.store.run_references import changeable_run
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.store_types import JudgedCounts
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.typed_names import resolve_judges
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import typed_path
from judges.base import Judge
from judges.judge_registry import find_judges
from judges.rubric_judge import RubricJudge
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import check_all_ready, readiness_problem


def judge(
    workspace: Workspace,
    run: str,
    options: ExecutionOptions,
    *,
    names: Sequence[str],
    official_code: Path | None = None,
    api: Mapping[str, Any] = MappingProxyType({}),
    retry_failed: bool = False,
    dry_run: bool = False,
) -> int:
    """Judge those answers of ``run`` that the judges called ``names`` have not judged yet; return 0.

    With ``official_code``, the user's clone of the benchmark's code, models judge with the prompt in it.
    Raises EndedError if judgements failed, the judging could not continue, or it was interrupted.
    """
    display = make_display(options.display)
    folder = changeable_run(workspace, run)
    outcome.about([folder])
    if not names:
        raise SpecError("name a judge with --judge; `rashomon judges` lists them.")
    names, undecided_by = resolve_judges(names)
    with RunStore.read(folder) as store:
        spec = parse_stored(RunSpec, store.meta("spec"), str(folder))
    benchmark = get_benchmark(spec.benchmark)
    official_code = None if official_code is None else typed_path(official_code)
    judges = find_judges(names, benchmark, undecided_by, official_code)
    typed_api = parse(ApiSpec, api, "the command line").model_dump(exclude_unset=True)
    remote_options = spec.api.model_copy(update=typed_api).remote_options(workspace.replies)
    if options.workers is not None:
        _check_workers(options.workers, names, judges, options.allowed)
    if not dry_run:
        RunStore.require_own(folder)
        confirm_addresses(names, options.allowed)
        check_all_ready(names, remote_options)
    with RunStore.read(folder) as store:
        for line in _estimates(store, judges, remote_options, retry_failed=retry_failed):
            print_message(line, options.display)
    if dry_run:
        if problem := readiness_problem(names, remote_options):
            display.notice(f"not ready to judge: {problem}")
        outcome.message = "nothing was judged"
        return 0
    job = Job(
        (folder,),
        tuple(names),
        undecided_by,
        remote_options=remote_options,
        force=options.force,
        accept_engine=options.accept_engine,
        retry_failed=retry_failed,
        restarts=spec.restarts,
        workers=options.workers if options.on_cluster else None,
        allow_open_cluster=options.allow_open_cluster,
        wait=options.wait,
        official_code=official_code,
    )
    clear_stale_pause(folder)
    supervisor = Supervisor(display)
    code = supervisor.run([job])
    if code == INTERRUPTED:
        raise EndedError(INTERRUPTED, "interrupted; every verdict so far is saved; run the same command to resume.")
    failed = 0
    for judge, counts, usage in _results(folder, judges):
        failed += counts.failed
        undecided = f"{counts.undecided} undecided, " if counts.undecided else ""
        labels = f"{counts.labelled} labelled, {counts.unparsed} unparsed"
        sentence = f"{judge.id}: {labels}, {undecided}{counts.failed} failed{usage}"
        outcome.message = "; ".join(filter(None, (outcome.message, sentence)))
        print_message(sentence, options.display)
    if code != DONE:
        raise EndedError(
            code, " ".join([*supervisor.reasons, "Every verdict so far is saved; the same command resumes."])
        )
    if failed:
        raise EndedError(
            FAILURES, f"{count_of(failed, 'judgement')} failed; the same command with --retry-failed repeats them."
        )
    return DONE


def _check_workers(workers: str, names: Sequence[str], judges: Sequence[Judge], allowed: Sequence[str]) -> None:
    """Raise SpecError if the judges have no model for a cluster, or it may not be used."""
    local = [judge.model for judge in judges if isinstance(judge, RubricJudge) and judge.info.needs_device]
    if not local:
        raise SpecError(f"{', '.join(names)} asks no model of this machine; leave --workers out.")
    check_workers(workers, local, allowed, typed=True)


def _results(folder: Path, judges: Sequence[Judge]) -> Iterator[tuple[Judge, JudgedCounts, str]]:
    """Yield each judge with the numbers of its verdicts, which are verified first, and the usage of a model."""
    summary = read_summary(folder)
    with RunStore.read(folder) as store:
        store.verify()
        for judge in judges:
            counts = JudgedCounts.sum(p.judged[judge.id] for p in summary.progress if judge.id in p.judged)
            calls, prompt, completion = store.judge_usage(judge.id)
            usage = f"; {calls} calls, {prompt} + {completion} tokens" if isinstance(judge, RubricJudge) else ""
            yield judge, counts, usage


def _estimates(
    store: RunStore, judges: Sequence[Judge], remote_options: RemoteOptions, *, retry_failed: bool
) -> Iterator[str]:
    """Yield what each judge has to do."""
    for judge in judges:
        failed_before = sum(p.judged[judge.id].failed for p in store.progress() if judge.id in p.judged)
        retried = f", and {failed_before} failed ones to retry" if retry_failed else ""
        rule = next((rule for rule in judges if rule.id == judge.undecided_by), None)
        later = store.unjudged_count(rule) if rule is not None else 0
        left = f", and those of {later} that {rule.id} leaves undecided" if rule is not None and later else ""
        yield f"{judge.id}: {_estimate(store, judge, remote_options)}{left}{retried}"


def _estimate(store: RunStore, judge: Judge, remote_options: RemoteOptions) -> str:
    """Return the number of answers to judge, with the estimated cost of a remote judge."""
    waiting = store.unjudged_count(judge)
    count = f"{waiting} answers to judge"
    if not isinstance(judge, RubricJudge) or judge.info.needs_device or not waiting:
        return count
    from mlx_backends.remote.api_budget import estimate_usage

    requests = (
        (judge.request(str(i), record), 0)
        for i, (_, record) in enumerate(store.unjudged(judge))
        if judge.verdict_without_model(record) is None
    )
    return f"{count}, {estimate_usage(requests, remote_options)}"
