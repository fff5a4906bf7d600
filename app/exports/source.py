"""What every export is made of: the runs, read once, and what each of them was."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from app.compare.tables import Comparison
from app.engine.unsupported_media import NONE_EXCLUDED, ExcludedInstances
from app.exports.thumbnails import Thumbnail, shown
from app.report.imported import DECODING_KEYS, UNKNOWN, is_imported, known_identity, known_spec
from app.report.judge_selection import caveat, judge_of, judged_records
from app.report.tables import distinct, run_labels
from app.store.run import RunStore
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.base import Benchmark, Estimate, Media, Record, Table, get_benchmark
from benchmarks.failure_table import OUTCOMES

Files = dict[str, str | bytes]
"""What an export writes: the path below its folder, with slashes, to what the file holds."""


@dataclass(frozen=True)
class ExportedRun:
    """One run: its records with the verdicts, and what decided them.

    ``name`` is its folder's, told from the others' where several are called the same; ``label`` what tables call it;
    ``judge`` the id of the judge whose labels are exported; ``build`` the folder its media lie in, if they are there.
    """

    name: str
    label: str
    spec: Mapping[str, Any]
    identity: Mapping[str, Any]
    engines: Sequence[Mapping[str, Any]]
    created: float
    judge: str
    records: Sequence[Record]
    build: Path
    excluded: ExcludedInstances = NONE_EXCLUDED

    @cached_property
    def outcomes(self) -> Counter[str]:
        """How many records are what (``Record.outcome``)."""
        return Counter(record.outcome(self.judge) for record in self.records)

    @property
    def slug(self) -> str:
        """Its model as it may stand in a file's name."""
        return re.sub(r"[^A-Za-z0-9._-]+", "__", str(self.spec["model"])).strip("._")[:80] or "model"

    @property
    def file_name(self) -> str:
        """Its name as it may stand in a file's name."""
        return re.sub(r"[^A-Za-z0-9._ ()-]+", "_", self.name)

    @property
    def versions(self) -> dict[str, str]:
        """The libraries that answered and judged, and Rashomon itself, with their versions."""
        found = {"rashomon": _version()}
        for engine in self.engines:
            found |= {str(name): str(version) for name, version in (engine.get("versions") or {}).items()}
        return found

    def facts(self, *, canonical: bool = False) -> dict[str, str]:
        """What the run was and how much of it failed, for people; ``canonical`` leaves out when it was made."""
        told = {"run": self.name}
        if not canonical:
            told["created"] = datetime.fromtimestamp(self.created, UTC).strftime("%Y-%m-%d %H:%M UTC")
        told["judge"] = self.judge + caveat(self.judge)
        told |= {str(key): words for key, value in self.identity.items() if (words := _words(value))}
        if is_imported(self.spec):
            told |= {key: UNKNOWN for key in DECODING_KEYS if key in self.identity}
        if len(self.engines) > 1:
            told["engines"] = "; ".join(
                _words({key: value for key, value in engine.items() if value}) for engine in self.engines
            )
        total = len(self.records)
        told["asked"] = str(total)
        if self.excluded.total:
            told["not asked"] = self.excluded.sentence
        for outcome in OUTCOMES:
            count = self.outcomes[outcome]
            told[outcome] = f"{count} ({100 * count / total:.2f}%)" if total else "0"
        told["rashomon"] = _version()
        return told


@dataclass(frozen=True)
class Export:
    """What is exported: runs of one benchmark, their tables, and how. ``canonical`` leaves out times, memory and places.

    Of a ``comparison`` the tables are its own, and ``warnings`` what makes the runs hard to compare.
    """

    benchmark: Benchmark
    runs: Sequence[ExportedRun]
    tables: Sequence[Table]
    canonical: bool = False
    width: str = "column"
    metric: str | None = None
    warnings: tuple[str, ...] = ()
    comparison: Comparison | None = None
    captions: Mapping[str, str] = field(default_factory=dict)
    """LaTeX captions, by table name, in place of the titles."""

    @property
    def main(self) -> Table:
        """The benchmark's first table."""
        return self.tables[0]

    @cached_property
    def shown(self) -> Mapping[str, Thumbnail]:
        """Every medium that the runs show, as exports show it, by sha256."""
        return shown((run.build, media) for run in self.runs for record in run.records for media in media_of(record))

    def prefixed(self) -> Iterator[tuple[str, ExportedRun]]:
        """The runs, each with what its files' names begin with: nothing where there is one run alone."""
        for run in self.runs:
            yield (f"{run.file_name}." if len(self.runs) > 1 else ""), run

    def runs_table(self) -> Table:
        """What the runs were, as a table: what is true of all of them first, then where they differ."""
        told = {run.label: run.facts(canonical=self.canonical) for run in self.runs}
        keys = list(dict.fromkeys(key for facts in told.values() for key in facts))
        rows: list[tuple[str, tuple[str, ...]]] = []
        differing: list[tuple[str, tuple[str, ...]]] = []
        for key in keys:
            values = {facts.get(key, "none") for facts in told.values()}
            if len(values) == 1:
                rows.append((key, (values.pop(),)))
            else:
                differing += [(f"{label} / {key}", (facts.get(key, "none"),)) for label, facts in told.items()]
        differing.sort(key=lambda row: list(told).index(row[0].rpartition(" / ")[0]))
        return Table("runs", "What was run", ("value",), (*rows, *differing), judges=())


def load(workspace: Workspace, folders: Sequence[Path], judge: str | None) -> list[ExportedRun]:
    """The runs in ``folders``, with the labels of ``judge``; None is the first run's first judge, as in tables."""
    stores = [RunStore.read(folder) for folder in folders]
    try:
        labels, names = run_labels(stores), distinct([folder.name for folder in folders])
        judge_id = judge_of(stores, judge)
        return [
            ExportedRun(
                name,
                label,
                known_spec(spec := store.meta("spec")),
                known_identity(store.meta("identity"), spec),
                store.engines(),
                store.meta("created"),
                judge_id,
                judged_records(store, judge),
                workspace.build_of(store),
                ExcludedInstances.kept(store),
            )
            for name, label, store in zip(names, labels, stores, strict=True)
        ]
    finally:
        for store in stores:
            store.close()


def headline(given: Export, run: ExportedRun) -> dict[str, Estimate]:
    """Return the metrics by which other tools know a run: the cells of its rows in the main table, by name.

    A run without a value there, such as one of open questions alone, has those of the first table in which it has one, after
    the table's name. Where a run has several rows, what tells them apart comes first: "Context-Memory / OAR / ER".
    """
    for table in given.tables:
        metrics: dict[str, Estimate] = {}
        for row, cells in table.rows:
            if row == run.label or row.startswith(f"{run.label} / "):
                place = [
                    *([table.name] if table is not given.main else []),
                    *row.removeprefix(run.label).split(" / ")[1:],
                ]
                for column, cell in zip(table.columns, cells, strict=True):
                    if isinstance(cell, Estimate) and cell.value is not None:
                        metrics[" / ".join((*place, column))] = cell
        if metrics:
            return metrics
    return {}


def right(benchmark: Benchmark, run: ExportedRun, record: Record) -> bool | None:
    """Return whether an answer's label is accurate under its condition; None where no table counts it.

    An answer with nothing to label counts as the benchmark's tables count it.
    """
    outcome, figures = record.outcome(run.judge), benchmark.figures()
    label = record.verdicts[run.judge].label if outcome == "labelled" else None
    if outcome == "unparsed" and figures is not None:
        label = figures.unparsed
    return None if label is None else benchmark.correct(record.instance.condition, label)


def media_of(record: Record) -> list[Media]:
    """The media of a record's prompt, in order."""
    return [part for part in record.instance.parts if isinstance(part, Media)]


def benchmark_of(runs: Sequence[ExportedRun]) -> Benchmark:
    """The benchmark that the runs are of."""
    return get_benchmark(runs[0].spec["benchmark"])


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    return "" if value is None else clean(str(value))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rashomon")
    except PackageNotFoundError:
        return "unknown"
