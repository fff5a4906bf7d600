"""``rashomon compare``: runs beside each other, and beside the paper's rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from app.compare.published import PUBLISHED
from app.compare.tables import compare as compare_runs
from app.compare.tables import to_json
from app.report.render import print_table
from app.report.render import to_json as table_to_json
from app.report.text import clean
from app.store.workspace import Workspace


def compare(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    judge: str | None,
    baseline: str | None,
    metrics: Sequence[str],
    group_by: str | None,
    flips: bool,
    as_json: bool,
) -> None:
    """Print what differs between ``runs``, and how sure that is."""
    found = compare_runs(
        [found_run(workspace, run) for run in runs],
        judge=judge,
        baseline=workspace.run_folder(baseline) if baseline else None,
        metrics=metrics,
        group_by=group_by,
        instances=flips,
    )
    if as_json:
        told = {**to_json(found), "tables": [table_to_json(table) for table in found.tables]}
        print(json.dumps(told, indent=2))
        return
    for warning in found.warnings:
        print(f"! {clean(warning)}")
    if found.warnings:
        print()
    for table in found.tables:
        print_table(table)


def found_run(workspace: Workspace, run: str) -> str | Path:
    """A run's folder; a row of the paper's as it is named."""
    return run if run.startswith(PUBLISHED) else workspace.run_folder(run)
