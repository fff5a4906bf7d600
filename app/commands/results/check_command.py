"""``rashomon check``: a gate for scripts; a run passes beside a baseline, has regressed, or neither is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app import exit_codes
from app.commands.results.try_command import NO_RULE
from app.commands.results.try_verdict import rule_wins
from app.commands.terminal.spinner import spinner
from app.compare.decision.target_metric import TargetMetric, is_lower_better, target_metric
from app.compare.decision.trust_metric import decisive_target, reading_targets
from app.compare.papers.paper_comparison import paper_value
from app.compare.question_sets.regression_gate import (
    FAILED,
    INCONCLUSIVE,
    NO_LOSS_SHOWN,
    PASSED,
    REGRESSED,
    Gate,
    GateTest,
    gate_remarks,
    margin_points,
    paired_tests,
    published_test,
)
from app.compare.runs.run_view import RunViews, reject_duplicates, unlabelled_outcomes
from app.compare.runs.view_reader import load_views
from app.exports.junit_and_markdown import VerdictCase, VerdictReport, check_files, is_printed, write_verdict
from app.json_output.check_json import check_result
from app.json_output.json_envelope import print_json
from app.report.tables.judge_selection import present_judges
from app.report.tables.run_tables import tables_of
from app.report.tables.single_source_accuracy import join_names
from app.report.tables.table_rendering import print_table
from app.store.file_locks import FileLock, busy_message
from app.store.run_facts import stop_reason
from app.store.run_references import PublishedRow, StoredRun, find_reference, run_folder
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary, read_summary, supervised_worker
from app.store.tried_models import read_tried
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.shell_quoting import shell_quote
from app.text.text_escaping import clean
from benchmarks import number_ranges as ranges
from benchmarks.errors import BusyError, SpecError

_CODES = {
    PASSED: exit_codes.DONE,
    NO_LOSS_SHOWN: exit_codes.DONE,
    FAILED: exit_codes.FAILURES,
    REGRESSED: exit_codes.REGRESSED,
    INCONCLUSIVE: exit_codes.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """The options of ``rashomon check``; ``trust`` None is the rule that is remembered for the run's set."""

    baseline: str
    max_loss: float = 0.03
    metric: str | None = None
    lower_is_better: bool = False
    trust: str | None = None
    per_condition: bool = False
    allow_errors: int = 0
    judge: str | None = None
    junit: Path | None = None
    markdown: Path | None = None
    as_json: bool = False


def check(workspace: Workspace, run: str, arguments: CheckArguments) -> int:
    """Print the verdict on a run, and write it to the files that are named; return 0 if it has passed.

    Raises:
        EndedError: Another verdict, or the run lacks answers.
        SpecError: The runs cannot be compared, by their benchmark, rows or labels.
        BusyError: Another process works on one of them.
    """
    ranges.MARGIN.check("--max-loss", arguments.max_loss)
    check_files(arguments.junit, arguments.markdown, as_json=arguments.as_json)
    if (arguments.metric is not None or arguments.lower_is_better) and arguments.trust not in (None, NO_RULE):
        raise SpecError("--trust decides by what should win; leave --metric and --lower-is-better out.")
    folder, baseline = run_folder(workspace, run, whole=True), find_reference(workspace, arguments.baseline, whole=True)
    folders = [folder, *([baseline.folder] if isinstance(baseline, StoredRun) else [])]
    reject_duplicates(folders)
    if isinstance(baseline, PublishedRow):
        _check_published(baseline, arguments)
    for compared in folders:
        _require_idle(compared)
    summaries = [_require_answers(compared) for compared in folders]
    unasked = _require_complete(folder, summaries[0])
    with spinner("comparing the run with its baseline"):
        views = load_views(folders, judge=arguments.judge)
        _require_labels(views, folders, unasked)
        gate = _gate(workspace, views, folder, baseline, arguments)
        gate = replace(gate, remarks=(*gate.remarks, *filter(None, gate_remarks(views, gate))))
    code = _CODES[gate.verdict]
    if arguments.as_json:
        print_json("check", check_result(gate, code), folders=folders, judge=views.judge)
    elif not is_printed(arguments.markdown):
        print(clean(gate.sentence))
        print(clean(gate.basis), end="\n\n")
        remarks = (f"! {remark}" for remark in gate.remarks)
        print_table(replace(gate.table, notes=(*remarks, *gate.table.notes)))
    write_verdict(_report(gate), arguments.junit, arguments.markdown)
    if code != exit_codes.DONE:
        raise exit_codes.EndedError(code, gate.sentence)
    return code


def _check_published(row: PublishedRow, arguments: CheckArguments) -> None:
    """Raise SpecError for options that take answers, or a row that is a run."""
    if arguments.per_condition or arguments.trust not in (None, NO_RULE):
        raise SpecError("a paper's row has no answers; leave --per-condition and --trust out, and name a --metric.")
    if row.folder is not None:
        raise SpecError(f"published:{row.name} is a bundle's run; leave published: out, and its answers are compared.")


def _require_idle(folder: Path) -> None:
    """Raise BusyError if a process answers or judges the run, or is about to."""
    lock = FileLock(folder / "lock")
    if lock.holder() is not None or supervised_worker(folder) is not None:
        raise BusyError(f"{busy_message(lock)}; check it when that has ended.")


def _require_answers(folder: Path) -> RunSummary:
    """Return the summary of a run. Raises EndedError if it cannot be read, or has no answers."""
    summary = read_summary(folder)
    if summary.problem is not None:
        raise exit_codes.EndedError(exit_codes.STOPPED, summary.problem)
    if not summary.done:
        raise exit_codes.EndedError(
            exit_codes.STOPPED, f"{folder.name} is {summary.state}, and has no answers; answer it, or name another run."
        )
    return summary


def _require_complete(folder: Path, summary: RunSummary) -> int:
    """Return the number of instances that a run did not ask, for it had enough; raise EndedError for any other reason."""
    with RunStore.read(folder) as store:
        stopped = stop_reason(store) is not None
    if summary.done < summary.total and not stopped:
        lacks = f"{summary.done:,} of {count_of(summary.total, 'answer')}"
        raise exit_codes.EndedError(
            exit_codes.STOPPED,
            f"{summary.name} is {summary.state}, with {lacks}; `rashomon resume {shell_quote(summary.name)}` completes it.",
        )
    return summary.total - summary.done


def _gate(
    workspace: Workspace,
    views: RunViews,
    folder: Path,
    reference: StoredRun | PublishedRow,
    arguments: CheckArguments,
) -> Gate:
    run, max_loss = views.runs[0], arguments.max_loss
    tests: tuple[GateTest, ...]
    remarks: tuple[str, ...] = ()
    if isinstance(reference, PublishedRow):
        (main,) = tables_of([folder], judge=arguments.judge, only="main", published=False)
        baseline = reference.name
        name, ours, paper = paper_value(main, views, baseline, arguments.metric)
        lower = is_lower_better(views.label_metrics, name, arguments.lower_is_better)
        tests = (published_test(name, ours, paper, max_loss, rows=run.examples, lower_is_better=lower),)
        compared = f"in {name}"
    else:
        target, remarks = _target(workspace, views, arguments)
        reading = arguments.metric is None
        tests = paired_tests(views, target, max_loss, per_condition=arguments.per_condition, reading=reading)
        unasked = [source for source, metric in reading_targets(views).items() if metric is None] if reading else []
        if unasked:
            alone = join_names([f"the {source}" for source in unasked])
            remarks = (*remarks, f"Reading {alone} alone is not tested: these were not asked in both runs.")
        compared = f"{target.compared} ({target.strictness})" if target.strictness else target.compared
        baseline = views.runs[1].name
        if baseline == run.name:
            place, mark = (reference.bundle, ":") if reference.bundle else (reference.folder.parent, "/")
            baseline = f"{place.name}{mark}{baseline}"
    return Gate(
        run=run.name,
        baseline=baseline,
        compared=compared,
        max_loss=max_loss,
        tests=tests,
        rows=tuple(view.examples for view in views.runs),
        errors=unlabelled_outcomes(run, views.label_metrics.labels)["error"],
        allowed=arguments.allow_errors,
        remarks=remarks,
    )


def _require_labels(views: RunViews, folders: Sequence[Path], unasked: int) -> None:
    """Raise SpecError if the judge has labelled nothing of a run, or not all that the first one was asked."""
    for run in views.runs:
        pending = unlabelled_outcomes(run, views.label_metrics.labels)["pending"] if run is views.runs[0] else 0
        if run.judged and pending <= unasked:
            continue
        judges = []
        for folder in folders:
            with RunStore.read(folder) as store:
                judges.append({*present_judges([store])})
        others = sorted(set.intersection(*judges) - {views.judge})
        instead = f", or use a judge that has labelled both: --judge {shell_quote(others[0])}" if others else ""
        command = f"rashomon judge {shell_quote(run.name)} --judge {shell_quote(views.judge.rpartition('@')[0] or views.judge)}"
        lacks = "lacks labels" if run.judged else "has no labels"
        raise SpecError(f"{run.name} {lacks} by {views.judge}; `{command}` gives them{instead}.")


def _target(workspace: Workspace, views: RunViews, arguments: CheckArguments) -> tuple[TargetMetric, tuple[str, ...]]:
    """Return the metric that decides, and a remark if it is by a rule that was chosen earlier."""
    if arguments.metric is not None or arguments.lower_is_better:
        return target_metric(views, arguments.metric, lower_is_better=arguments.lower_is_better), ()
    if arguments.trust is not None:
        return decisive_target(views, None if arguments.trust == NO_RULE else arguments.trust), ()
    data = views.runs[0].identity.get("data digest")
    for question_set in workspace.question_sets():
        versions = [version for version in question_set.versions if version.digest == data]
        if versions and (rule := read_tried(versions[0].build.parent).trust):
            return decisive_target(views, rule), (
                f"Remembered for {question_set.name}: {rule_wins(rule)} (--trust none: right answers).",
            )
    return decisive_target(views, None), ()


def _report(gate: Gate) -> VerdictReport:
    most = f"at most {margin_points(gate.max_loss)} points may be lost"
    cases = [
        VerdictCase(test.name, _CODES[test.verdict], f"{test.verdict}: {test.numbers}; {most}", test.numbers)
        for test in gate.tests
    ]
    if gate.verdict == FAILED:
        cases.append(VerdictCase("errors among the answers", exit_codes.FAILURES, gate.sentence))
    remarks = (gate.basis, *gate.remarks)
    return VerdictReport("rashomon check", gate.run, gate.sentence, tuple(cases), gate.table, remarks)
