"""Export of tables and samples to CSV, Markdown, JSON, JSON lines and Parquet."""

from __future__ import annotations

import io
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from tempfile import TemporaryFile
from typing import Any

from app.exports.export_input import Export, ExportedRun, Files, RecordLines
from app.json_output.export_json import ExportResult, OutcomesJson, RunJson
from app.json_output.facts_json import facts
from app.json_output.json_envelope import envelope, plain
from app.json_output.show_json import identity_facts, spec_facts
from app.json_output.tables_json import snake_case, table_json
from app.report.samples.sample_rows import sample_to_json, sample_to_row
from app.report.tables.table_rendering import cell_text, to_csv, to_markdown
from app.text.text_escaping import spreadsheet_line
from benchmarks.failure_table import OUTCOMES
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Cell, Estimate, Record, Table, canonical_json

_TYPES = {
    **dict.fromkeys(("value", "low", "high", "sd"), "double"),
    "n": "int64",
    **dict.fromkeys(("answer", "label", "status"), "string"),
}
"""The types of Arrow columns that may be empty, and so say nothing of their type."""


def to_csv_files(export: Export) -> Files:
    """Return ``NAME.csv`` for each table, ``runs.csv``, and ``samples.csv`` for each run."""
    files: Files = {f"{table.name}.csv": to_csv(table) for table in (*export.tables, export.runs_table())}
    for prefix, run in export.prefixed():
        lines = partial(_samples_csv, judge=run.judge, canonical=export.options.canonical)
        files[f"{prefix}samples.csv"] = RecordLines(run.records, lines)
    return files


def to_markdown_files(export: Export) -> Files:
    """Return ``tables.md``: see :func:`markdown_tables`."""
    return {"tables.md": markdown_tables(export)}


def markdown_tables(export: Export) -> str:
    """Return every table, and a description of the runs."""
    return "\n".join(to_markdown(table) for table in (*export.tables, export.runs_table()))


def to_json_files(export: Export) -> Files:
    """Return ``results.json`` with the runs and all tables, and ``samples.jsonl`` for each run, exactly as stored."""
    files: Files = {"results.json": results_json(export)}
    for prefix, run in export.prefixed():
        lines = partial(_samples_jsonl, benchmark=export.benchmark.name, canonical=export.options.canonical)
        files[f"{prefix}samples.jsonl"] = RecordLines(run.records, lines)
    return files


def _samples_jsonl(records: Iterable[Record], *, benchmark: str, canonical: bool) -> Iterator[str]:
    remarks, encode = get_benchmark(benchmark).remarks, json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
    for record in records:
        yield encode(sample_to_json(record, canonical=canonical, remarks=remarks(record))) + "\n"


def to_parquet_files(export: Export) -> Files:
    """Return ``tables.parquet``, a row for each cell, and ``samples.parquet``, a row for each answer of all runs.

    The files' metadata describe the runs, as JSON under ``rashomon``.
    """
    metadata = canonical_json([plain(run_json(run, canonical=export.options.canonical)) for run in export.runs])
    cells = tables_to_arrow(export.tables)
    samples = samples_to_arrow(export.runs, canonical=export.options.canonical)
    return {"tables.parquet": _parquet(cells, metadata), "samples.parquet": _parquet(samples, metadata)}


def tables_to_arrow(tables: Iterable[Table]) -> Any:
    """Return a ``pyarrow.Table`` with a row for each cell of ``tables``."""
    return _arrow(
        {"table": table.name, "row": label, "column": column, **_cell(cell, table)}
        for table in tables
        for label, cells in table.rows
        for column, cell in zip(table.columns, cells, strict=True)
    )


def samples_to_arrow(runs: Iterable[ExportedRun], *, canonical: bool = False) -> Any:
    """Return a ``pyarrow.Table`` with a row for each answer of ``runs``; ``canonical`` omits times and memory."""
    return _arrow(
        {"run": run.name, "model": run.label, **_row(run, sample_to_json(record, canonical=canonical))}
        for run in runs
        for record in run.records
    )


def run_json(run: ExportedRun, *, canonical: bool) -> RunJson:
    """Describe a run: its spec, its identity, the judge, and the counts of outcomes; ``canonical`` omits its time and engines."""
    return RunJson(
        name=run.name,
        label=run.label,
        judge=run.judge,
        spec=spec_facts(run.spec),
        identity=identity_facts(run.identity),
        outcomes=OutcomesJson(**{snake_case(outcome): run.outcomes[outcome] for outcome in OUTCOMES}),
        excluded=run.excluded,
        versions=facts(run.versions),
        created=None if canonical else run.created,
        engines=() if canonical else tuple(map(facts, run.engines)),
        reused="" if canonical else run.reused,
    )


def results_json(export: Export) -> str:
    """Return the runs and all tables as JSON."""
    runs = tuple(run_json(run, canonical=export.options.canonical) for run in export.runs)
    result = ExportResult(runs=runs, tables=tuple(map(table_json, export.tables)))
    whole = envelope("export", result, folders=export.folders, judge=export.runs[0].judge)
    values = plain(replace(whole, runs=tuple(replace(run, bundle=None) for run in whole.runs)))
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _samples_csv(records: Iterable[Record], *, judge: str, canonical: bool) -> Iterator[str]:
    """Yield the header and a line for each record.

    Which columns there are is known after the last record. Until then the lines are in a temporary file, each with the columns
    that were known; later columns are empty in it.
    """
    columns: dict[str, None] = {}
    lengths, widths = array("q"), array("i")
    with TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="") as lines:
        for record in records:
            row = sample_to_row(record, judge, canonical=canonical)
            columns.update(dict.fromkeys(row))
            lengths.append(lines.write(spreadsheet_line(row.get(column) for column in columns)))
            widths.append(len(columns))
        yield spreadsheet_line(columns)
        lines.seek(0)
        for length, width in zip(lengths, widths, strict=True):
            yield lines.read(length)[:-1] + "," * (len(columns) - width) + "\n"


def _cell(cell: Cell, table: Table) -> dict[str, Any]:
    text = cell_text(cell, table.percent)
    if isinstance(cell, Estimate):
        unknown = cell.value is not None and not cell.n  # a published value
        n = None if unknown else cell.n
        values = (cell.value, cell.low, cell.high, cell.sd, n, cell.reason)
    else:
        values = (float(cell) if isinstance(cell, int) else None, None, None, None, None, "")
    return {**dict(zip(("value", "low", "high", "sd", "n", "reason"), values, strict=True)), "text": text}


def _row(run: ExportedRun, row: dict[str, Any]) -> dict[str, Any]:
    verdict_of_judge = row["verdicts"].get(run.judge, {})
    pairs = {
        key: [{"name": name, "value": value} for name, value in row[key].items()] for key in ("strata", "references")
    }
    verdicts = [{"judge": judge, **verdict} for judge, verdict in row["verdicts"].items()]
    label = {"judge": run.judge, "label": verdict_of_judge.get("label"), "status": verdict_of_judge.get("status")}
    return {**row, **pairs, "verdicts": verdicts, **label}


def _arrow(rows: Iterable[dict[str, Any]]) -> Any:
    import pyarrow

    listed = list(rows)
    # pyarrow's schema inference misses a column that is absent from the first rows.
    columns = dict.fromkeys(key for row in listed for key in row)
    return pyarrow.table(
        {key: pyarrow.array([_storable(row.get(key)) for row in listed], type=_TYPES.get(key)) for key in columns}
    )


def _parquet(table: Any, metadata: str) -> bytes:
    from pyarrow import parquet

    table = table.replace_schema_metadata({"rashomon": metadata.encode("utf-8", "backslashreplace")})
    out = io.BytesIO()
    parquet.write_table(table, out, compression="zstd")
    return out.getvalue()


def _storable(value: Any) -> Any:
    """Return ``value`` with lone surrogates, which UTF-8 cannot encode, as visible escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {key: _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
