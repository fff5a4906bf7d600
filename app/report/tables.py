"""A run's tables: the benchmark's, over the records of one or more stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.annotation.human_sample import on_the_sample, samples
from app.engine.stopping_rule import reached
from app.engine.unsupported_media import ExcludedInstances
from app.report.judge_selection import caveat, judge_of, overridden, panel_of, present, references
from app.report.published import published_rows
from app.store.run import RunStore
from benchmarks.base import Benchmark, Record, Table, did_you_mean, get_benchmark
from benchmarks.errors import SpecError
from judges.agreement_tables import agreement_sentence, agreement_tables
from judges.base import HUMAN, OVERRIDE
from judges.panel import member_ids, with_panel
from judges.prediction_powered import corrected_table
from mlx_backends.pytorch.spec import PREFIX
from mlx_backends.registry import IMPORTED

RESAMPLES = 1000


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
        benchmark = one_benchmark(stores, "show them one by one")
        judge_id = judge_of(stores, judge)
        judges, measures = present(stores), references(stores)
        labels = run_labels(stores)
        found = {label: list(store.records()) for label, store in zip(labels, stores, strict=True)}
        seed = int(stores[0].meta("spec")["seed"])
        drawn = {one: samples(dict(zip(labels, stores, strict=True)), one) for one in judges if one.startswith(HUMAN)}
        remarks = list(dict.fromkeys(one for store in stores for one in store.meta("remarks", [])))
        overrides = overridden(stores)
        remarks += [
            f"{label} rests on a random part of its examples: it was stopped, for {why}."
            for label, store in zip(labels, stores, strict=True)
            if (why := reached(store))
        ]
        excluded = {label: ExcludedInstances.kept(store) for label, store in zip(labels, stores, strict=True)}
        remarks += [f"{label}: {one.sentence}." for label, one in excluded.items() if one.total]
    finally:
        for store in stores:
            store.close()
    panel = panel_of(judge, judges)
    members: tuple[str, ...] = ()
    if panel is not None:
        if panel.counts_flags and not benchmark.counts_flags:
            raise SpecError(
                f"{judge} gives an answer several labels, and {benchmark.name} counts one; use majority or all."
            )
        found = {run: with_panel(records, panel, judges, benchmark.labels) for run, records in found.items()}
        # How a panel agrees with one of its members says nothing of how good it is.
        members = member_ids(panel, judges)
    for one, count in overrides.items():
        if one not in members and one != judge_id:
            told = f"first({one}, {judge_id})" if panel is None else f"first({one}, ...)"
            remarks.append(f"{count} labels are overridden by {one}, and not used here; the judge {told} uses them.")
    tables = benchmark.tables(found, judge_id, resamples=RESAMPLES, seed=seed)
    if any(one.total for one in excluded.values()):
        tables = [with_excluded(each, excluded, benchmark) if each.name == "failures" else each for each in tables]
    if only is None or only not in [table.name for table in tables]:
        tables += _of_judges(
            benchmark, found, judge_id, judges, {p: s for p, s in drawn.items() if p not in members}, seed
        )
    if only is not None:
        if only not in (known := [table.name for table in tables]):
            raise SpecError(f"there is no table {only!r} here; {did_you_mean(only, known)}")
        tables = [table for table in tables if table.name == only]
    whose = _Whose(found, [one for one in measures if one not in members], seed)
    without = [run for run, records in found.items() if not any(judge_id in record.verdicts for record in records)]
    if without and len(without) < len(found):
        remarks.append(f"{judge_id} has not labelled {', '.join(without)}.")
    tables = [
        replace(
            table, notes=(*table.notes, *whose.notes((judge_id,) if table.judges is None else table.judges), *remarks)
        )
        if table.name not in _OF_JUDGES
        else table
        for table in tables
    ]
    return [with_published(table, benchmark, found) for table in tables] if published else tables


def with_excluded(table: Table, excluded: Mapping[str, ExcludedInstances], benchmark: Benchmark) -> Table:
    """The table of failures with a column for what was not asked, and a row for each condition of which nothing was."""
    cells = dict(table.rows)
    rows = []
    for run, one in excluded.items():
        for condition in benchmark.conditions:
            row, count = f"{run} / {condition}", one.conditions.get(condition, 0)
            if row in cells or count:
                rows.append((row, (*cells.get(row, (0,) * len(table.columns)), count)))
    note = "Not asked: the model does not take what is shown; these enter no other count."
    return replace(table, columns=(*table.columns, "not asked"), rows=tuple(rows), notes=(*table.notes, note))


_OF_JUDGES = ("corrected", "agreement", "agreement-labels", "confusion", "fleiss")


def _of_judges(
    benchmark: Benchmark,
    runs: Mapping[str, Sequence[Record]],
    judge: str,
    judges: Sequence[str],
    drawn: Mapping[str, Mapping[str, Sequence[str]]],
    seed: int,
) -> list[Table]:
    tables: list[Table] = []
    figures = benchmark.figures()
    for person, by_run in drawn.items():
        if figures is not None and person != judge:
            sampled, outside = on_the_sample(runs, person, by_run)
            table = corrected_table(sampled, judge, person, figures, resamples=RESAMPLES, seed=seed)
            if outside:
                told = (
                    f"{outside} labels by {person} are not used here: they are not on a random sample, or follow an answer "
                    "of it that was left out."
                )
                table = replace(table, notes=(*table.notes, told))
            tables.append(table)
    # An override is given where a judge seems wrong, by somebody who saw its label: nothing agrees or disagrees with that.
    judges = [one for one in judges if not one.startswith(OVERRIDE)]
    if len(judges) > 1:
        tables += agreement_tables(runs, judges, benchmark.labels, benchmark.conditions, resamples=RESAMPLES, seed=seed)
    return tables


class _Whose:
    """Whose labels a table rests on, and how good those are known to be: whoever copies a figure must be able to see it."""

    def __init__(self, runs: Mapping[str, Sequence[Record]], measures: Sequence[str], seed: int) -> None:
        self._runs = runs
        self._measures = measures
        self._seed = seed
        self._known: dict[str, list[str]] = {}

    def notes(self, judges: Sequence[str]) -> list[str]:
        """The notes for a table that rests on ``judges``."""
        if not judges:
            return []
        told = [f"Labels by {', '.join(f'{judge}{caveat(judge)}' for judge in judges)}."]
        return [*told, *dict.fromkeys(note for judge in judges for note in self._agreement(judge))]

    def _agreement(self, judge: str) -> list[str]:
        if judge.startswith(HUMAN) or judge in self._measures:
            return []
        if judge not in self._known:
            # Where nobody can say how good a judge is, that is said once for all runs.
            several = len(self._runs) > 1 and bool(self._measures)
            told = [
                (f"{run}: " if several else "")
                + agreement_sentence(records, judge, self._measures, resamples=RESAMPLES, seed=self._seed)
                for run, records in self._runs.items()
            ]
            self._known[judge] = list(dict.fromkeys(told))
        return self._known[judge]


def one_benchmark(stores: Sequence[RunStore], instead: str) -> Benchmark:
    """The benchmark that the runs are of. Raises SpecError where they are of several, which says what to do ``instead``."""
    names = {store.meta("spec")["benchmark"] for store in stores}
    if len(names) > 1:
        raise SpecError(f"these runs are of several benchmarks ({', '.join(sorted(names))}); {instead}.")
    return get_benchmark(names.pop())


def run_labels(stores: Sequence[RunStore]) -> list[str]:
    """What each run is called in a table: its model, and what else is needed to tell it from the others."""
    specs = [store.meta("spec") for store in stores]
    models = [model_label(spec["model"]) for spec in specs]
    labels = [
        f"{model} ({spec['prompt_set']})" if len({s["prompt_set"] for s in specs}) > 1 else model
        for model, spec in zip(models, specs, strict=True)
    ]
    return distinct(
        [store.folder.name if labels.count(label) > 1 else label for label, store in zip(labels, stores, strict=True)]
    )


def model_label(model: str) -> str:
    """What a model is called in a table: a folder by its last part, a server's by the model asked for, PyTorch's as such."""
    if model.startswith(IMPORTED):
        return f"{model.removeprefix(IMPORTED)} (imported)"
    if model.startswith("endpoint:"):
        model = model.rpartition("@http")[0]
    if model.startswith(PREFIX):
        return f"{Path(model.removeprefix(PREFIX)).name} (PyTorch)"
    return Path(model).name if "/" in model else model


def distinct(names: Sequence[str]) -> list[str]:
    """``names`` with a number behind each that stood before: copies of one run are told apart by their order."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told


def with_published(table: Table, benchmark: Benchmark, runs: Mapping[str, Sequence[Record]]) -> Table:
    """``table`` with the paper's rows under it, where the paper has that table, and how comparable they are."""
    rows = published_rows(table, benchmark.name)
    if not rows:
        return table
    examples = {run: _examples(records) for run, records in runs.items()}
    told = dict.fromkeys(examples.values())
    rest_on = (
        f"the rows above on {next(iter(told))}"
        if len(told) == 1
        else "; ".join(f"{run} on {words}" for run, words in examples.items())
    )
    note = f"Rows marked (paper) rest on {benchmark.paper_rows}; {rest_on}."
    more = (
        f"Their prompts: {benchmark.paper_prompts}. Their judge: {benchmark.paper_judge}. `rashomon compare RUN published:ROW` "
        "tells the difference to each."
    )
    return replace(table, rows=(*table.rows, *rows), notes=(*table.notes, note, more))


def _examples(records: Sequence[Record]) -> str:
    """Return how many examples of a run are answered, and of which sources."""
    answered = {
        (record.instance.group, record.instance.strata.get("source", ""))
        for record in records
        if record.answer is not None
    }
    sources = Counter(source for _, source in answered if source)
    of = f" ({', '.join(f'{count} of {source}' for source, count in sorted(sources.items()))})" if sources else ""
    return f"{len(answered)} examples{of}"


def own_rows(table: Table, benchmark: str) -> Table:
    """``table`` without the paper's rows, which stand under the runs', and without the two notes on them."""
    count = len(published_rows(table, benchmark))
    return replace(table, rows=table.rows[:-count], notes=table.notes[:-2]) if count else table
