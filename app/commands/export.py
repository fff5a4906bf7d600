"""``rashomon export``: tables and samples as files."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.paths import typed_path
from app.report.render import to_csv, to_json, to_latex, to_markdown
from app.report.samples import flat, sample
from app.report.tables import distinct, tables_of
from app.report.text import clean, spreadsheet_cell
from app.report.whose import judge_of, judged_records
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError, StoreError

FORMATS = ("csv", "md", "latex", "json")


def export(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    formats: Sequence[str],
    out: Path | None,
    judge: str | None,
    canonical: bool,
) -> None:
    """Write the tables of ``runs`` together, and each one's samples. Raises SpecError for an unknown format."""
    if not formats:
        raise SpecError(f"--format names no format; known are {', '.join(FORMATS)}.")
    for word in formats:
        if word not in FORMATS:
            raise SpecError(f"there is no format {word!r}; {did_you_mean(word, FORMATS)}")
    folders = [workspace.run_folder(run) for run in runs]
    folder = typed_path(out or Path("export") / folders[0].name)
    tables = tables_of(folders, judge=judge)
    files: dict[str, str] = {}
    if "csv" in formats:
        files |= {f"{table.name}.csv": to_csv(table) for table in tables}
    if "md" in formats:
        files["tables.md"] = "\n".join(to_markdown(table) for table in tables)
    if "latex" in formats:
        files["tables.tex"] = "% needs \\usepackage{booktabs}\n" + "\n".join(to_latex(table) for table in tables)
    if "json" in formats:
        runs_json = [_run_to_json(each, canonical=canonical) for each in folders]
        files["results.json"] = _json({"runs": runs_json, "tables": [to_json(table) for table in tables]})
    for each, name in zip(folders, distinct([folder.name for folder in folders]), strict=True):
        prefix = f"{name}." if len(folders) > 1 else ""
        if "csv" in formats:
            files[f"{prefix}samples.csv"] = _samples_csv(each, judge, canonical=canonical)
        if "json" in formats:
            files[f"{prefix}samples.jsonl"] = _samples_jsonl(each, canonical=canonical)
    _write(folder, files)
    print(f"wrote {clean(str(folder))}: {', '.join(sorted(files))}")


def _run_to_json(folder: Path, *, canonical: bool) -> dict[str, Any]:
    with RunStore.read(folder) as store:
        told: dict[str, Any] = {"name": folder.name, "spec": store.meta("spec"), "identity": store.meta("identity")}
        if canonical:
            del told["spec"]["data"]
        else:
            told |= {"created": store.meta("created"), "engines": store.engines()}
        return told


def _samples_jsonl(folder: Path, *, canonical: bool) -> str:
    with RunStore.read(folder) as store:
        return "".join(
            json.dumps(sample(record, canonical=canonical), sort_keys=True, ensure_ascii=False) + "\n"
            for record in store.records()
        )


def _samples_csv(folder: Path, judge: str | None, *, canonical: bool) -> str:
    with RunStore.read(folder) as store:
        judge_id = judge_of([store], judge)
        rows = [flat(record, judge_id, canonical=canonical) for record in judged_records(store, judge)]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(column) for column in columns)
        writer.writerow([spreadsheet_cell(v) if isinstance(v, str) else v for v in values])
    return out.getvalue()


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            part = folder / f".{name}.part"
            part.write_text(text, "utf-8", errors="backslashreplace")
            os.replace(part, folder / name)
    except OSError as error:
        for part in folder.glob(".*.part"):
            part.unlink(missing_ok=True)
        raise StoreError(f"cannot write in {folder}: {error.strerror}; name another folder with --out.") from error
