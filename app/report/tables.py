"""A run's tables: the benchmark's, over the records of one or more stores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.store.run import RunStore
from benchmarks.base import Estimate, Table, did_you_mean, get_benchmark
from benchmarks.errors import SpecError
from judges.base import get_judge, judge_names, newest

RESAMPLES = 1000
ASSETS = Path(__file__).resolve().parents[2] / "assets"


def tables_of(
    folders: Sequence[Path], *, judge: str | None = None, only: str | None = None, published: bool = True
) -> list[Table]:
    """The tables of the runs in ``folders``, a row for each run; ``only`` the one of that name.

    With ``published``, the paper's rows stand under the run's in the tables that the paper has. Raises SpecError where
    the runs are of several benchmarks, or there is no such table.
    """
    stores = [RunStore.read(folder) for folder in folders]
    try:
        names = {store.meta("spec")["benchmark"] for store in stores}
        if len(names) > 1:
            raise SpecError(f"these runs are of several benchmarks ({', '.join(sorted(names))}); show them one by one.")
        benchmark = get_benchmark(names.pop())
        judge_id = judge_of(stores[0], judge)
        labels = run_labels(stores)
        records = {label: list(store.records()) for label, store in zip(labels, stores, strict=True)}
        seed = int(stores[0].meta("spec")["seed"])
    finally:
        for store in stores:
            store.close()
    tables = benchmark.tables(records, judge_id, resamples=RESAMPLES, seed=seed)
    if only is not None:
        if only not in (known := [table.name for table in tables]):
            raise SpecError(f"there is no table {only!r}; {did_you_mean(only, known)}")
        tables = [table for table in tables if table.name == only]
    # Whoever copies a figure must be able to see whose labels it rests on.
    whose = f"Labels by {judge_id}{_caveat(judge_id)}."
    tables = [replace(table, notes=(*table.notes, whose)) for table in tables]
    return [with_published(table, benchmark.name) for table in tables] if published else tables


def judge_of(store: RunStore, judge: str | None) -> str:
    """The id that ``judge``'s verdicts are kept under in a run; None is the run's first judge. Raises SpecError."""
    name: str = judge or store.meta("spec")["judge"][0]
    present = {key for p in store.progress() for key in p.judged}
    if name in present:
        return name
    if (latest := newest(name, present)) is not None:
        return latest
    if name in judge_names():
        return get_judge(name).id
    raise SpecError(f"no judge {name!r} has labelled this run; {did_you_mean(name, sorted(present) or judge_names())}")


def _caveat(judge_id: str) -> str:
    name = judge_id.rpartition("@")[0]
    caveat = get_judge(name).caveat if name in judge_names() else ""
    return f", {caveat}" if caveat else ""


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
            found.setdefault(cell["row"], {})[cell["column"]] = Estimate(cell["value"], n=cell.get("n", 0))
    return [(f"{row} (paper)", tuple(cells.get(column) for column in table.columns)) for row, cells in found.items()]
