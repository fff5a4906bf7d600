"""Tables and samples as CSV, Markdown, JSON, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from app.exports.source import Export, ExportedRun, Files
from app.report.render import cell_text, to_csv, to_json, to_markdown
from app.report.samples import flat, sample
from app.text.escape import spreadsheet_cell
from benchmarks.base import Cell, Estimate, Table, canonical_json


def to_csv_files(given: Export) -> Files:
    """``NAME.csv`` for each table, ``runs.csv``, and ``samples.csv`` for each run."""
    files: Files = {f"{table.name}.csv": to_csv(table) for table in (*given.tables, given.runs_table())}
    for prefix, run in given.prefixed():
        files[f"{prefix}samples.csv"] = _samples_csv(run, canonical=given.canonical)
    return files


def to_markdown_files(given: Export) -> Files:
    """``tables.md``: every table, and what was run."""
    return {"tables.md": "\n".join(to_markdown(table) for table in (*given.tables, given.runs_table()))}


def to_json_files(given: Export) -> Files:
    """``results.json`` with what the runs are and all tables; ``samples.jsonl`` for each run, exactly as stored."""
    runs = [run_to_json(run, canonical=given.canonical) for run in given.runs]
    results = {"runs": runs, "tables": [to_json(table) for table in given.tables]}
    files: Files = {"results.json": json.dumps(results, indent=2, sort_keys=True, ensure_ascii=False) + "\n"}
    for prefix, run in given.prefixed():
        rows = (
            sample(record, canonical=given.canonical, remarks=given.benchmark.remarks(record)) for record in run.records
        )
        files[f"{prefix}samples.jsonl"] = "".join(
            json.dumps(row, sort_keys=True, ensure_ascii=False) + "\n" for row in rows
        )
    return files


def to_parquet_files(given: Export) -> Files:
    """``tables.parquet``, a row a cell, and ``samples.parquet``, a row an answer of any of the runs.

    What the runs are stands in the files' metadata, as JSON under ``rashomon``.
    """
    told = canonical_json([run_to_json(run, canonical=given.canonical) for run in given.runs])
    cells = [
        {"table": table.name, "row": label, "column": column, **_cell(cell, table)}
        for table in given.tables
        for label, cells in table.rows
        for column, cell in zip(table.columns, cells, strict=True)
    ]
    rows = [
        {"run": run.name, "model": run.label, **_row(run, sample(record, canonical=given.canonical))}
        for run in given.runs
        for record in run.records
    ]
    return {"tables.parquet": _parquet(cells, told), "samples.parquet": _parquet(rows, told)}


def run_to_json(run: ExportedRun, *, canonical: bool) -> dict[str, Any]:
    """What a run is: its spec, what decided its answers, the judge, and how many of its answers are what."""
    told: dict[str, Any] = {
        "name": run.name,
        "spec": dict(run.spec),
        "identity": dict(run.identity),
        "judge": run.judge,
        "outcomes": dict(sorted(run.outcomes.items())),
        "excluded": run.excluded.to_json(),
        "versions": run.versions,
    }
    if canonical:
        del told["spec"]["data"]
    else:
        told |= {"created": run.created, "engines": list(run.engines)}
    return told


def _samples_csv(run: ExportedRun, *, canonical: bool) -> str:
    rows = [flat(record, run.judge, canonical=canonical) for record in run.records]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(column) for column in columns)
        writer.writerow([spreadsheet_cell(v) if isinstance(v, str) else v for v in values])
    return out.getvalue()


def _cell(cell: Cell, table: Table) -> dict[str, Any]:
    text = cell_text(cell, table.percent)
    if isinstance(cell, Estimate):
        unknown = cell.value is not None and not cell.n  # of a published figure
        n = None if unknown else cell.n
        figures = (cell.value, cell.low, cell.high, cell.sd, n, cell.reason)
    else:
        figures = (float(cell) if isinstance(cell, int) else None, None, None, None, None, "")
    return {**dict(zip(("value", "low", "high", "sd", "n", "reason"), figures, strict=True)), "text": text}


def _row(run: ExportedRun, whole: dict[str, Any]) -> dict[str, Any]:
    verdict = whole["verdicts"].get(run.judge, {})
    pairs = {
        key: [{"name": name, "value": value} for name, value in whole[key].items()] for key in ("strata", "references")
    }
    verdicts = [{"judge": judge, **each} for judge, each in whole["verdicts"].items()]
    label = {"judge": run.judge, "label": verdict.get("label"), "status": verdict.get("status")}
    return {**whole, **pairs, "verdicts": verdicts, **label}


def _parquet(rows: list[dict[str, Any]], told: str) -> bytes:
    import pyarrow
    from pyarrow import parquet

    # A column that is empty in the first rows is not in pyarrow's guess at the schema.
    columns = dict.fromkeys(key for row in rows for key in row)
    table = pyarrow.table({key: [_storable(row.get(key)) for row in rows] for key in columns})
    table = table.replace_schema_metadata({"rashomon": told.encode("utf-8", "backslashreplace")})
    out = io.BytesIO()
    parquet.write_table(table, out, compression="zstd")
    return out.getvalue()


def _storable(value: Any) -> Any:
    """``value`` with lone surrogates, which UTF-8 has not, as visible escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {key: _storable(each) for key, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list) else value
