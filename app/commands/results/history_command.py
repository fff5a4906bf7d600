"""``rashomon history``: every model tried on a question set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.commands.results.try_command import NO_RULE, chosen_set
from app.commands.terminal.spinner import spinner
from app.compare.question_sets.question_set_history import history_leads, history_table, set_history
from app.exports.export_input import Files
from app.exports.export_writer import write_files, written_message
from app.figures.figure_drawing import intervals
from app.figures.figure_style import FIGURE_FORMATS, to_bytes
from app.json_output.json_envelope import print_json
from app.json_output.question_sets_json import history_result
from app.report.tables.table_rendering import print_table, to_csv, to_markdown
from app.store.tried_models import read_tried
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import SpecError
from benchmarks.untrusted.typed_paths import typed_path

_TEXTS = {"csv": to_csv, "md": to_markdown}


def history(
    workspace: Workspace,
    name: str | None,
    *,
    trust: str | None,
    judge: str | None,
    formats: Sequence[str] | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the models tried on a set as a table, or write it and its figure. Raises SpecError, StoreError."""
    question_set = chosen_set(workspace, name)
    for form in formats or ():
        if form not in (*_TEXTS, *FIGURE_FORMATS):
            raise SpecError(f"there is no format {form!r} of a history; use {', '.join((*_TEXTS, *FIGURE_FORMATS))}.")
    tried = read_tried(question_set.latest.build.parent)
    rule = None if trust == NO_RULE else trust or tried.trust or None
    with spinner(f"reading the runs of {question_set.name}"):
        models = set_history(workspace, question_set, tried, trust=rule, judge=judge, against=tried.incumbent)
    if as_json:
        folders = [workspace.runs_folder / run.name for run in models.runs]
        print_json("history", history_result(models), folders=folders, judge=models.views.judge)
        return
    table = history_table(models)
    if formats is None:
        print(clean(table.notes[0]))
        print_table(replace(table, notes=table.notes[1:]))
        return
    files: Files = {}
    for form in dict.fromkeys(formats):
        if form in _TEXTS:
            files[f"history.{form}"] = _TEXTS[form](table).encode("utf-8")
        else:
            place = models.incumbent
            beside = "the best of the others" if place is None else models.views.runs[place].label
            figure = intervals(history_leads(models), x=f"lead over {beside}", title=table.title, width="column")
            files[f"history.{form}"] = to_bytes(figure, form)
    folder = typed_path(out or Path("history"))
    write_files(folder, files)
    print(written_message(folder, files))
