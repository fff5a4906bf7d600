"""A run's tables: the benchmark's, over the records of one or more stores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.report.whose import caveat, judge_of, present, references
from app.store.run import RunStore
from benchmarks.base import Benchmark, Estimate, Record, Table, did_you_mean, get_benchmark
from benchmarks.errors import SpecError
from judges.agreement import agreement_sentence, agreement_tables
from judges.base import HUMAN
from judges.corrected import corrected_table
from judges.panel import parse_panel, with_panel

RESAMPLES = 1000
ASSETS = Path(__file__).resolve().parents[2] / "assets"


def tables_of(
    folders: Sequence[Path], *, judge: str | None = None, only: str | None = None, published: bool = True
) -> list[Table]:
    """The tables of the runs in ``folders``, a row for each run; ``only`` the one of that name.

    With ``published``, the paper's rows stand under the run's in the tables that the paper has. Where people have labelled
    some of the answers, the figures corrected by their labels follow; where two judges have, how they agree. Raises
    SpecError where the runs are of several benchmarks, or there is no such table.
    """
    stores = [RunStore.read(folder) for folder in folders]
    try:
        names = {store.meta("spec")["benchmark"] for store in stores}
        if len(names) > 1:
            raise SpecError(f"these runs are of several benchmarks ({', '.join(sorted(names))}); show them one by one.")
        benchmark = get_benchmark(names.pop())
        judge_id = judge_of(stores[0], judge)
        judges, measures = present(stores), references(stores)
        labels = run_labels(stores)
        found = {label: list(store.records()) for label, store in zip(labels, stores, strict=True)}
        seed = int(stores[0].meta("spec")["seed"])
    finally:
        for store in stores:
            store.close()
    panel = parse_panel(judge) if judge and judge not in judges else None
    if panel is not None:
        if panel.counts_flags and not benchmark.counts_flags:
            raise SpecError(
                f"{judge} gives an answer several labels, and {benchmark.name} counts one; use majority or all."
            )
        found = {run: with_panel(records, panel, judges, benchmark.labels) for run, records in found.items()}
    tables = benchmark.tables(found, judge_id, resamples=RESAMPLES, seed=seed)
    if only is None or only in _OF_JUDGES:
        tables += _of_judges(benchmark, found, judge_id, judges, seed)
    if only is not None:
        if only not in (known := [table.name for table in tables]):
            raise SpecError(f"there is no table {only!r} here; {did_you_mean(only, known)}")
        tables = [table for table in tables if table.name == only]
    whose = _whose(found, judge_id, measures, seed)
    tables = [table if table.name in _OF_JUDGES else replace(table, notes=(*table.notes, *whose)) for table in tables]
    return [with_published(table, benchmark.name) for table in tables] if published else tables


_OF_JUDGES = ("corrected", "agreement", "agreement-labels", "confusion", "fleiss")


def _of_judges(
    benchmark: Benchmark, runs: Mapping[str, Sequence[Record]], judge: str, judges: Sequence[str], seed: int
) -> list[Table]:
    tables: list[Table] = []
    figures = benchmark.figures()
    for person in (one for one in judges if one.startswith(HUMAN) and one != judge):
        if figures is not None:
            tables.append(corrected_table(runs, judge, person, figures, resamples=RESAMPLES, seed=seed))
    if len(judges) > 1:
        tables += agreement_tables(runs, judges, benchmark.labels, benchmark.conditions, resamples=RESAMPLES, seed=seed)
    return tables


def _whose(runs: Mapping[str, Sequence[Record]], judge: str, measures: Sequence[str], seed: int) -> list[str]:
    """Whoever copies a figure must be able to see whose labels it rests on, and how good those are known to be."""
    told = [f"Labels by {judge}{caveat(judge)}."]
    if judge.startswith(HUMAN) or measures[:1] == [judge]:
        return told
    for run, records in runs.items():
        which = f"{run}: " if len(runs) > 1 else ""
        told.append(which + agreement_sentence(records, judge, measures, resamples=RESAMPLES, seed=seed))
    return list(dict.fromkeys(told))


def run_labels(stores: Sequence[RunStore]) -> list[str]:
    """What each run is called in a table: its model, and what else is needed to tell it from the others."""
    specs = [store.meta("spec") for store in stores]
    models = [Path(spec["model"]).name if "/" in spec["model"] else spec["model"] for spec in specs]
    labels = [
        f"{model} ({spec['prompt_set']})" if len({s["prompt_set"] for s in specs}) > 1 else model
        for model, spec in zip(models, specs, strict=True)
    ]
    return distinct(
        [store.folder.name if labels.count(label) > 1 else label for label, store in zip(labels, stores, strict=True)]
    )


def distinct(names: Sequence[str]) -> list[str]:
    """``names`` with a number behind each that stood before: copies of one run are told apart by their order."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told


def with_published(table: Table, benchmark: str) -> Table:
    """``table`` with the paper's rows under it, where the paper has that table."""
    rows = published_rows(table, benchmark)
    return replace(table, rows=(*table.rows, *rows))


def published_rows(table: Table, benchmark: str) -> list[tuple[str, tuple[Estimate | None, ...]]]:
    """The paper's rows for ``table``, in its columns; a cell that the paper lacks is None."""
    path = ASSETS / "published" / f"{benchmark}.json"
    if not path.is_file():
        return []
    found: dict[str, dict[str, Estimate]] = {}
    for cell in json.loads(path.read_text("utf-8")):
        if cell.get("ours") == table.name:
            found.setdefault(cell["row"], {})[cell["column"]] = Estimate(
                cell["value"], n=cell.get("n", 0), sd=cell.get("sd")
            )
    return [(f"{row} (paper)", tuple(cells.get(column) for column in table.columns)) for row, cells in found.items()]
