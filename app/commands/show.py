"""``rashomon show``: a run's tables, or one of its samples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.report.render import print_table, to_json
from app.report.samples import sample
from app.report.tables import tables_of
from app.report.text import clean
from app.store.run import RunStore
from app.store.workspace import Workspace, summary
from benchmarks.errors import SpecError


def show(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    table: str | None,
    sample: str | None,
    judge: str | None,
    as_json: bool,
) -> None:
    """Print the tables of ``runs`` (only ``table`` if named), or the instance ``sample`` of each."""
    folders = [workspace.run_folder(run) for run in runs]
    if sample is not None:
        found = [_sample(folder, sample) for folder in folders]
        if as_json:
            print(json.dumps(found, indent=2, ensure_ascii=True))
        else:
            for folder, one in zip(folders, found, strict=True):
                _tell_sample(folder, one)
        return
    tables = tables_of(folders, judge=judge, only=table)
    if as_json:
        print(json.dumps([to_json(one) for one in tables], indent=2))
        return
    for folder in folders:
        run = summary(folder)
        print(f"{clean(run.name)}: {run.state}, {run.done} of {run.total} answered")
    for each in tables:
        print_table(each)


def _sample(folder: Path, instance: str) -> dict[str, Any]:
    with RunStore.read(folder) as store:
        for record in store.records(only=instance):
            return sample(record)
        raise SpecError(
            f"{folder.name} has no instance {instance!r}; `rashomon export {folder.name} --format csv` lists them all."
        )


def _tell_sample(folder: Path, one: dict[str, Any]) -> None:
    def line(name: str, text: object) -> None:
        print(f"{name:<12} {clean(str(text), newlines=True)}")

    line("run", folder.name)
    for key in ("id", "condition", "question", "prompt"):
        line(key, one[key])
    for key, values in one["references"].items():
        line(f"{key} says", " | ".join(values))
    for step in one["steps"]:
        line("answer", step["error"] or step["text"])
        tokens = "" if step["completion_tokens"] is None else f", {step['completion_tokens']} tokens"
        line("finished", step["finish_reason"] + tokens)
    for judge, verdict in one["verdicts"].items():
        line(judge, f"{verdict['label'] or verdict['status']} ({verdict['reason']})")
