"""Data set of run records for the Hub: a Parquet file, results, citations, and a card with the metrics.

It is an export without times, memory and paths, and without media. The card's front matter is YAML in the form of JSON, so that
no text in it can be read as anything else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.exports.export_input import Export, ExportOptions, benchmark_of, load_runs
from app.exports.tabular_export import results_json, to_parquet_files
from app.report.runs.citations import Citations, cite
from app.report.tables.run_tables import tables_from
from app.report.tables.table_inputs import read_inputs
from app.report.tables.table_rendering import to_markdown
from app.store.workspace import Workspace
from app.text.text_escaping import clean, markdown

CARD, SAMPLES, RESULTS, REFERENCES = "README.md", "data/samples.parquet", "results.json", "citation.bib"


@dataclass(frozen=True)
class HubDataSet:
    """The files of a data set, the number of its rows, and the citations with their licences."""

    files: Mapping[str, bytes]
    rows: int
    citations: Citations

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))


def make_data_set(workspace: Workspace, folders: Sequence[Path], name: str, judge: str | None = None) -> HubDataSet:
    """Return the data set of the runs in ``folders``, which is going to be called ``name``. Raises SpecError, StoreError."""
    inputs = read_inputs(folders, judge, checked=False)
    tables = tables_from(inputs, published=False)
    runs = load_runs(workspace, folders, judge, inputs)
    export = Export(benchmark_of(runs), runs, tables, ExportOptions(canonical=True), folders=folders)
    citations = cite(workspace, folders)
    samples = to_parquet_files(export)["samples.parquet"]
    assert isinstance(samples, bytes)
    files = {
        CARD: _card(export, name, citations).encode("utf-8", "backslashreplace"),
        SAMPLES: samples,
        RESULTS: results_json(export).encode("utf-8", "backslashreplace"),
        REFERENCES: citations.bibtex().encode("utf-8", "backslashreplace"),
    }
    return HubDataSet(files, sum(len(run.records) for run in runs), citations)


def _card(export: Export, name: str, citations: Citations) -> str:
    """Return the card: front matter for the Hub, then what the runs are, their metrics and the licences."""
    benchmark = export.benchmark
    front: dict[str, Any] = {
        "pretty_name": clean(f"{benchmark.title}: {', '.join(run.label for run in export.runs)}"),
        "tags": ["rashomon", benchmark.name, "vision-language", "evaluation"],
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": SAMPLES}]}],
    }
    licences = [*citations.data.items(), *citations.models.items()]
    lines = [
        "---",
        *(f"{key}: {json.dumps(value)}" for key, value in front.items()),
        "---",
        "",
        f"# {markdown(str(front['pretty_name']))}",
        "",
        f"Answers of vision-language models to {markdown(benchmark.title)} ({markdown(benchmark.paper)}), with verdicts: a row "
        "for each answer. Prompts name each medium by its sha256; the media themselves are not included.",
        "",
        "```python",
        "import datasets",
        "",
        f'samples = datasets.load_dataset("{name}", split="test")',
        "```",
        "",
        "## Metrics",
        "",
        to_markdown(export.main),
        to_markdown(export.runs_table()),
        "## Licences",
        "",
        "As far as they are stated; they apply to the texts in the rows too:",
        "",
        *(f"- {markdown(about)}: {markdown(terms)}" for about, terms in licences),
        "",
        "## Citation",
        "",
        f"`{REFERENCES}` has the benchmark, its sources and the tool, Rashomon.",
        "",
    ]
    return "\n".join(lines)
