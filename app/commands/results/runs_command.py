"""``rashomon runs``: the list of runs."""

from __future__ import annotations

from app.json_output.json_envelope import print_json
from app.json_output.runs_json import listed_run
from app.report.progress.running_accuracy import judging_progress
from app.store.workspace import Workspace
from app.text.text_escaping import clean


def runs(workspace: Workspace, *, as_json: bool) -> None:
    """Print a line for each run and each of its conditions."""
    summaries = workspace.summaries()
    if as_json:
        print_json("runs", tuple(listed_run(run, workspace) for run in summaries))
        return

    if not summaries:
        print(f"no runs in {workspace.path} yet; `rashomon demo` creates a few.")
    for run in summaries:
        problem = f"  {clean(run.problem)}" if run.problem else ""
        received = "" if run.own else "  received, read-only"
        note = f" ({clean(run.note)})" if run.note else ""
        cut = f"  {run.cut_reasoning:,} cut while reasoning" if run.cut_reasoning else ""
        reused = f"  {run.reused:,} reused" if run.reused else ""
        errors = f"  {run.errors:,} errors" if run.errors else ""
        errors += f"  {run.failed_judgements:,} failed judgements" if run.failed_judgements else ""
        judging = "".join(f"  {text}" for text in judging_progress(run))
        print(
            f"{clean(run.name)}  {run.state}{note}  {run.done}/{run.total}{reused}{errors}{cut}{judging}{received}{problem}"
        )
        for p in run.progress:
            failed = f"  {p.errors} errors" if p.errors else ""
            print(f"    {clean(p.condition):<15} {p.done}/{p.total}{failed}")
        for line in judging_progress(run):
            print(f"    {line}")
