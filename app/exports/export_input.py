"""Input of every export: the runs, read once, with their description."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from app.compare.comparison_tables import Comparison
from app.report.runs.imported_settings import DECODING_KEYS, UNKNOWN, is_imported, known_identity, known_spec
from app.report.runs.portable_facts import portable_identity, portable_spec
from app.report.samples.thumbnails import Thumbnail, make_thumbnails
from app.report.tables.judge_selection import caveat, judged_records, resolve_judge
from app.report.tables.run_labels import run_labels, unique_labels
from app.report.tables.run_tables import TABLES
from app.report.tables.table_inputs import TableInputs, read_inputs
from app.store.parsed_texts import ParsedTexts
from app.store.reusable_answers import ReusedAnswers
from app.store.run_facts import LICENCE_KEY, NONE_EXCLUDED, ExcludedInstances
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.system.version import rashomon_version
from app.text.text_escaping import clean
from benchmarks.answers import kind_of
from benchmarks.base import Benchmark
from benchmarks.failure_table import OUTCOMES
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.file_names import distinct_names
from benchmarks.vocabulary import Estimate, Instance, Media, Outcome, Record, Table


@dataclass(frozen=True)
class RecordLines:
    """The content of a file of a run's records: ``lines`` returns it in pieces, from the records. Both are picklable."""

    records: RunRecords
    lines: Callable[[Iterable[Record]], Iterable[str]]


Files = dict[str, str | bytes | Iterable[str] | RecordLines]
"""The files of an export: the path below its folder, with slashes, to the content; what is long comes in pieces."""


class RunRecords:
    """The records of a run, with the verdicts of a panel if there is one: read anew whenever they are iterated over.

    Attributes:
        parsed: Instances that were parsed for other runs; None to hold none.
    """

    def __init__(self, folder: Path, judge: str, count: int, parsed: ParsedTexts[Instance] | None) -> None:
        self._folder, self._judge, self._count, self._parsed = folder, judge, count, parsed

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        with RunStore.read(self._folder) as store:
            store.parsed_instances = self._parsed
            yield from judged_records(store, self._judge)


@dataclass(frozen=True)
class ExportedRun:
    """A run: its records with their verdicts, and its identity.

    Attributes:
        name: The name of its folder, numbered if several have the same.
        file_name: The beginning of its files' names, which no disk takes for that of another run.
        label: Its name in tables.
        judge: The id of the judge whose labels are exported.
        outcomes: The number of records by ``Record.outcome``.
        build: The folder of its media, which may be missing.
        peak_memory: In bytes; 0 if it is unknown.
    """

    name: str
    file_name: str
    label: str
    spec: Mapping[str, Any]
    identity: Mapping[str, Any]
    engines: Sequence[Mapping[str, Any]]
    created: float
    judge: str
    records: RunRecords
    outcomes: Counter[Outcome]
    build: Path
    excluded: ExcludedInstances = NONE_EXCLUDED
    peak_memory: int = 0
    licence: str = ""
    """The licence that the model's card stated when the run was planned; empty if that is unknown."""
    reused: str = ""
    """The numbers of answers that were reused from other runs, as a sentence; empty if none was."""

    @property
    def slug(self) -> str:
        """Its model, in a form that is safe in a file name."""
        return re.sub(r"[^A-Za-z0-9._-]+", "__", str(self.spec["model"])).strip("._")[:80] or "model"

    @property
    def versions(self) -> dict[str, str]:
        """The versions of Rashomon and of the engines' libraries."""
        versions = {"rashomon": rashomon_version(), "tables": str(TABLES)}
        for engine in self.engines:
            versions |= {str(name): str(version) for name, version in (engine.get("versions") or {}).items()}
        return versions

    def facts(self, *, canonical: bool = False) -> dict[str, str]:
        """Describe the run and its failures for people; ``canonical`` omits its time."""
        facts = {"run": self.name}
        if not canonical:
            facts["created"] = datetime.fromtimestamp(self.created, UTC).strftime("%Y-%m-%d %H:%M UTC")
        facts["judge"] = self.judge + caveat(self.judge)
        facts |= {str(key): text for key, value in self.identity.items() if (text := _words(value))}
        if is_imported(self.spec):
            facts |= {key: UNKNOWN for key in DECODING_KEYS if key in self.identity}
        if len(self.engines) > 1:
            facts["engines"] = "; ".join(
                _words({key: value for key, value in engine.items() if value}) for engine in self.engines
            )
        total = len(self.records)
        facts["asked"] = str(total)
        if self.excluded.total:
            facts["not asked"] = self.excluded.sentence
        if self.reused and not canonical:
            facts["reused"] = self.reused
        for outcome in OUTCOMES:
            count = self.outcomes[outcome]
            facts[outcome] = f"{count} ({100 * count / total:.2f}%)" if total else "0"
        facts["rashomon"] = rashomon_version()
        facts["tables"] = f"version {TABLES}"
        return facts


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        canonical: Whether to omit times, memory and folders, so that equal runs give equal files.
        width: The width of figures, a name of ``app.figures.figure_style.WIDTHS``.
        metric: The column of the main table that is drawn against memory; None for the first.
        captions: LaTeX captions in place of the tables' titles, by table name.
        title: The title of the report; empty for an automatic one.
        margin: How much worse than the best run a model that the report recommends may be, and a fine-tuned one than its base.
        trust: What should win where sources disagree; None if that is not said.
    """

    canonical: bool = False
    width: str = "column"
    metric: str | None = None
    captions: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    margin: float = 0.03
    trust: str | None = None


@dataclass(frozen=True)
class Export:
    """Runs of one benchmark with their tables, or with those of their ``comparison`` and its ``warnings``."""

    benchmark: Benchmark
    runs: Sequence[ExportedRun]
    tables: Sequence[Table]
    options: ExportOptions = ExportOptions()
    warnings: tuple[str, ...] = ()
    comparison: Comparison | None = None
    inputs: TableInputs | None = None
    """The contents of the runs that the tables were computed from; None in an export of a comparison."""
    folders: Sequence[Path] = ()
    """The folders of the runs, in their order."""
    workspace: Workspace | None = None
    requested_judge: str | None = None
    """The judge that was asked for; None stands for the first run's first judge."""

    @property
    def main(self) -> Table:
        """The benchmark's first table."""
        return self.tables[0]

    @cached_property
    def thumbnails(self) -> Mapping[str, Thumbnail]:
        """Thumbnails of all media in the runs' prompts, by sha256."""
        return make_thumbnails(
            (run.build, media) for run in self.runs for record in run.records for media in media_of(record)
        )

    def prefixed(self) -> Iterator[tuple[str, ExportedRun]]:
        """Yield the prefix of each run's file names, "" for a single run, and the run."""
        for run in self.runs:
            yield (f"{run.file_name}." if len(self.runs) > 1 else ""), run

    def runs_table(self) -> Table:
        """Return a table that describes the runs: the facts they share first, then those that differ."""
        facts_by_run = {run.label: run.facts(canonical=self.options.canonical) for run in self.runs}
        keys = list(dict.fromkeys(key for facts in facts_by_run.values() for key in facts))
        rows: list[tuple[str, tuple[str, ...]]] = []
        differing: list[tuple[str, tuple[str, ...]]] = []
        for key in keys:
            values = [facts.get(key) for facts in facts_by_run.values()]
            if None not in values and len(set(values)) == 1:
                rows.append((key, (values[0] or "",)))
            else:
                differing += [
                    (f"{label} / {key}", (facts[key],)) for label, facts in facts_by_run.items() if key in facts
                ]
        differing.sort(key=lambda row: list(facts_by_run).index(row[0].rpartition(" / ")[0]))
        return Table("runs", "What was run", ("value",), (*rows, *differing), judges=())


def file_names(folders: Sequence[Path]) -> list[str]:
    """Return the names of runs in a form that is safe in file names, numbered where a disk may not tell two apart."""
    return distinct_names(re.sub(r"[^A-Za-z0-9._ ()-]+", "_", folder.name) for folder in folders)


def load_runs(
    workspace: Workspace, folders: Sequence[Path], judge: str | None, inputs: TableInputs | None = None
) -> list[ExportedRun]:
    """Load the runs in ``folders``, with the labels of ``judge``; None stands for the first run's first judge.

    ``inputs`` are the same runs as their tables read them.
    """
    inputs = inputs or read_inputs(folders, judge)
    parsed = ParsedTexts[Instance]() if len(folders) > 1 else None
    stores = [RunStore.read(folder) for folder in folders]
    try:
        labels, names = run_labels(stores), unique_labels([folder.name for folder in folders])
        judge_id = resolve_judge(stores, judge)
        return [
            ExportedRun(
                name,
                file_name,
                label,
                portable_spec(known_spec(spec := store.meta("spec"))),
                portable_identity(known_identity(store.meta("identity"), spec)),
                store.engines(),
                store.meta("created"),
                judge_id,
                RunRecords(folder, judge_id, len(inputs.runs[label]), parsed),
                inputs.runs[label].count(lambda kind: kind.outcome(judge_id)),
                workspace.build_of(store),
                ExcludedInstances.load(store),
                max((progress.known_peak for progress in store.progress()), default=0),
                str(store.meta(LICENCE_KEY, "") or ""),
                ReusedAnswers.load(store).sentence,
            )
            for name, file_name, label, folder, store in zip(
                names, file_names(folders), labels, folders, stores, strict=True
            )
        ]
    finally:
        for store in stores:
            store.close()


def headline_metrics(export: Export, run: ExportedRun) -> dict[str, Estimate]:
    """Return a run's metrics for other tools: the cells of its rows in the main table, by name.

    For a run without a value there, such as one of open questions alone, they come from the first table in which it has one,
    with the table's name as a prefix. With several rows, each row's own name is a prefix too: "Context-Memory / OAR / ER".
    """
    for table in export.tables:
        metrics: dict[str, Estimate] = {}
        for row, cells in table.rows:
            if row == run.label or row.startswith(f"{run.label} / "):
                place = [
                    *([table.name] if table is not export.main else []),
                    *row.removeprefix(run.label).split(" / ")[1:],
                ]
                for column, cell in zip(table.columns, cells, strict=True):
                    if isinstance(cell, Estimate) and cell.value is not None:
                        metrics[" / ".join((*place, column))] = cell
        if metrics:
            return metrics
    return {}


def score_of(benchmark: Benchmark, judge: str, record: Record) -> float | None:
    """Return the share of the full score that an answer earns by ``judge``; None if no table counts it."""
    return benchmark.counted_score(kind_of(record, benchmark), judge)


def media_of(record: Record) -> list[Media]:
    """Return the media of a record's prompt, in order."""
    return [part for part in record.instance.parts if isinstance(part, Media)]


def benchmark_of(runs: Sequence[ExportedRun]) -> Benchmark:
    """Return the benchmark of the runs."""
    return get_benchmark(runs[0].spec["benchmark"])


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    return "" if value is None else clean(str(value))
