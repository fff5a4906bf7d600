"""Tables of one or more runs: the benchmark's, with notes on the labels, and those about the judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.annotation.correcting_labels import restrict_to_sample
from app.papers.published_results import without_paper
from app.report.tables.judge_selection import caveat
from app.report.tables.paper_rows import add_published
from app.report.tables.policy_sentences import given_values_sentence
from app.report.tables.table_inputs import TableInputs, read_inputs
from app.store.run_facts import ExcludedInstances
from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.factors.factor_tables import factor_tables, reference_cells, reference_note
from benchmarks.tables.abstention_tables import abstention_tables
from benchmarks.tables.behaviour_table import behaviour_table
from benchmarks.tables.blind_rule_tables import with_blind_rows, without_looking_table
from benchmarks.tables.confidence_tables import CONFIDENCE_TABLES, confidence_tables
from benchmarks.tables.repeats_table import repeats_table
from benchmarks.tables.scorecard import scorecard_table
from benchmarks.tables.undecided_table import undecided_table
from benchmarks.tables.without_sources_table import benchmark_tables, with_sources
from benchmarks.vocabulary import Table
from judges.agreement_tables import agreement_sentence, agreement_tables
from judges.base import HUMAN, OVERRIDE
from judges.prediction_powered import corrected_table

TABLES = 2
"""The version of the tables: another one may have other numbers of the same labels. 2: intervals over clusters."""

RESAMPLES = 1000


def tables_of(
    folders: Sequence[Path], *, judge: str | None = None, only: str | None = None, published: bool = True
) -> list[Table]:
    """Return the tables of the runs in ``folders``, a row for each run; ``only`` selects the table of that name.

    With ``published``, the paper's rows follow the runs' in the tables that the paper has; over a user's own rows alone, no table
    has the paper's rows or its numbers of tables. If people have labelled some of the answers, the metrics corrected by their
    labels follow; if two judges have, so does their agreement. Raises SpecError if the runs are of several benchmarks, or there
    is no such table.
    """
    return tables_from(read_inputs(folders, judge), only=only, published=published)


def tables_from(inputs: TableInputs, *, only: str | None = None, published: bool = True) -> list[Table]:
    """Return the tables of runs that were read; see :func:`tables_of`."""
    tables = _select_tables(inputs, only)
    label_notes = _LabelNotes(inputs)
    noted = [
        replace(table, notes=(*table.notes, *label_notes.of(_judges_of(table, inputs)), *inputs.remarks))
        if table.name not in _JUDGE_TABLES
        else table
        for table in tables
    ]
    if inputs.own_rows_only:
        return [without_paper(table) for table in noted]
    if not published:
        return noted
    runs = reference_cells(inputs.runs)
    return [add_published(table, inputs.benchmark, runs) for table in noted]


def _select_tables(inputs: TableInputs, only: str | None) -> list[Table]:
    """Return the benchmark's tables, those of abstention and of judges, or the one named ``only``; without notes on labels."""
    every = reference_cells(inputs.runs)
    tables = benchmark_tables(inputs.benchmark, every, inputs.judge, resamples=RESAMPLES, seed=inputs.seed)
    runs = with_sources(inputs.benchmark, every)
    metrics = inputs.benchmark.answer_metrics()
    if metrics is not None:
        bounds = undecided_table(runs, inputs.judge, metrics, resamples=RESAMPLES, seed=inputs.seed)
        tables = [*tables[:1], *filter(None, [bounds]), *tables[1:]]
    tables = [*tables, *filter(None, [behaviour_table(runs, inputs.judge)])]
    if only is None or only not in [table.name for table in tables]:
        tables = [*tables, *_scorecards(inputs, every)]
    if only in (None, "main"):
        of_answers = partial(inputs.benchmark.tables, judge=inputs.judge, resamples=RESAMPLES, seed=inputs.seed)
        main = with_blind_rows(tables[0], inputs.benchmark, runs, inputs.judge, of_answers)
        tables = [replace(main, notes=(*inputs.not_shown, *main.notes)), *tables[1:]]
    if (beside := without_looking_table(inputs.benchmark, runs, inputs.judge)) is not None:
        tables = [*tables, replace(beside, notes=(*inputs.not_shown, *beside.notes))]
    repeats = repeats_table(inputs.benchmark, runs, inputs.judge, resamples=RESAMPLES, seed=inputs.seed)
    tables = [*tables, *filter(None, [repeats])]
    if note := reference_note(inputs.runs):
        tables = _all_failures(inputs, [replace(table, notes=(*table.notes, note)) for table in tables])
    tables = _with_excluded(inputs, tables)
    if only is None or only in CONFIDENCE_TABLES:
        tables += confidence_tables(
            runs,
            inputs.judge,
            inputs.benchmark,
            resamples=RESAMPLES,
            seed=inputs.seed,
            quantisations=inputs.quantisations,
        )
    if note:
        tables += factor_tables(inputs.benchmark, inputs.runs, inputs.judge, resamples=RESAMPLES, seed=inputs.seed)
    if only is None or only not in [table.name for table in tables]:
        tables += abstention_tables(runs, inputs.judge, inputs.benchmark, resamples=RESAMPLES, seed=inputs.seed)
        tables += _judge_tables(inputs)
    return tables if only is None else _named(only, tables, inputs)


def _named(name: str, tables: Sequence[Table], inputs: TableInputs) -> list[Table]:
    """Return the tables of this name. Raises SpecError if there is none."""
    named = [table for table in tables if table.name == name]
    if named:
        return named
    if name in CONFIDENCE_TABLES:
        raise SpecError(_why_no_table(name, inputs))
    scored = any(answers.confidence is not None for answers in inputs.runs.values())
    known = [*(table.name for table in tables), *(CONFIDENCE_TABLES if scored else ())]
    raise SpecError(f"there is no table {name!r} here; {did_you_mean(name, known)}")


def _with_excluded(inputs: TableInputs, tables: list[Table]) -> list[Table]:
    """Return ``tables`` with the excluded instances among the failures, if there are any."""
    if not any(counts.total for counts in inputs.excluded.values()):
        return tables
    return [
        add_excluded(table, inputs.excluded, inputs.benchmark) if table.name == "failures" else table
        for table in tables
    ]


def _scorecards(inputs: TableInputs, runs: Mapping[str, Answers]) -> Iterator[Table]:
    """Yield the scorecard and, where a run has conflicts as found and constructed ones, that of each."""
    splits: dict[str, Mapping[str, Answers]] = {"": runs}
    tests = next(filter(None, map(inputs.benchmark.origins, runs.values())), {})
    for origin, is_of_origin in tests.items():
        splits[origin] = {run: answers.where(is_of_origin) for run, answers in runs.items()}
    for origin, part in splits.items():
        table = scorecard_table(
            inputs.benchmark, part, inputs.judge, rule=inputs.trust, resamples=RESAMPLES, seed=inputs.seed
        )
        if table is not None and origin:
            name = f"{table.name}-{origin.replace(' ', '-')}"
            table = replace(table, name=name, title=f"{table.title}: {origin}")
        if table is not None:
            first, *others = table.notes
            yield replace(table, notes=(f"{given_values_sentence(inputs.policies)} {first}".strip(), *others))


def _all_failures(inputs: TableInputs, tables: Sequence[Table]) -> list[Table]:
    """Return ``tables`` with the failures in all cells of a varied build; a failure in any of them is one too many."""
    of_all = inputs.benchmark.tables(inputs.runs, inputs.judge, resamples=0, seed=inputs.seed)
    failures = next((table for table in of_all if table.name == "failures"), None)
    return [failures if failures is not None and table.name == "failures" else table for table in tables]


def _why_no_table(name: str, inputs: TableInputs) -> str:
    """Return why these runs do not have a table about confidence, and what would give them one."""
    if all(answers.confidence is None for answers in inputs.runs.values()):
        return f"table {name!r} needs likelihoods, which these runs do not have; answer again with --score likelihood."
    if name == "quantisation":
        return (
            "table 'quantisation' needs likelihoods of one model on the same data with different bits; name both runs."
        )
    return f"there is no table {name!r} here: none of the answers with likelihoods can be counted in it."


def add_excluded(table: Table, excluded: Mapping[str, ExcludedInstances], benchmark: Benchmark) -> Table:
    """Return the table of failures with a column of excluded instances, and a row for each condition that is all excluded."""
    cells = dict(table.rows)
    rows = []
    for run, counts in excluded.items():
        for condition in benchmark.conditions:
            row, count = f"{run} / {condition}", counts.conditions.get(condition, 0)
            if row in cells or count:
                rows.append((row, (*cells.get(row, (0,) * len(table.columns)), count)))
    note = "Not asked: the model does not take the instance's media. These instances enter no other count."
    return replace(table, columns=(*table.columns, "not asked"), rows=tuple(rows), notes=(*table.notes, note))


_JUDGE_TABLES = ("corrected", "agreement", "agreement-labels", "confusion", "fleiss")


def _judges_of(table: Table, inputs: TableInputs) -> Sequence[str]:
    return (inputs.judge,) if table.judges is None else table.judges


def _judge_tables(inputs: TableInputs) -> list[Table]:
    """Return the metrics corrected by each person's labels, and the agreement of the judges."""
    tables: list[Table] = []
    benchmark, metrics = inputs.benchmark, inputs.benchmark.label_metrics()
    for person, by_run in inputs.samples.items():
        if metrics is not None and person != inputs.judge:
            sampled, outside_count = restrict_to_sample(inputs.runs, person, by_run)
            table = corrected_table(sampled, inputs.judge, person, metrics, resamples=RESAMPLES, seed=inputs.seed)
            if outside_count:
                note = (
                    f"{outside_count} labels by {person} are not used here: they are outside the random sample, or come after an "
                    "answer of the sample that was skipped."
                )
                table = replace(table, notes=(*table.notes, note))
            tables.append(table)
    # People override a label that they see and doubt, so agreement with an override means nothing.
    judges = [judge for judge in inputs.judges if not judge.startswith(OVERRIDE)]
    if len(judges) > 1:
        runs = with_sources(benchmark, inputs.runs)
        tables += agreement_tables(
            runs, judges, benchmark.labels, benchmark.full_conditions, resamples=RESAMPLES, seed=inputs.seed
        )
    return tables


class _LabelNotes:
    """Notes on the judges that a table's labels come from, and on their measured quality."""

    def __init__(self, inputs: TableInputs) -> None:
        self._runs = with_sources(inputs.benchmark, inputs.runs)
        self._measures = inputs.measures
        self._seed = inputs.seed
        self._checked = {inputs.judge: inputs.checked} if inputs.checked else {}
        self._cache: dict[str, list[str]] = {}

    def of(self, judges: Sequence[str]) -> list[str]:
        """Return the notes for a table with labels by ``judges``."""
        if not judges:
            return []
        note = f"Labels by {', '.join(f'{judge}{caveat(judge)}' for judge in judges)}."
        checked = [self._checked[judge] for judge in judges if judge in self._checked]
        return [note, *checked, *dict.fromkeys(sentence for judge in judges for sentence in self._agreement(judge))]

    def _agreement(self, judge: str) -> list[str]:
        if judge.startswith(HUMAN) or judge in self._measures:
            return []
        if judge not in self._cache:
            # If nothing measures the judge, the sentence is the same for all runs and needs no run's name.
            several = len(self._runs) > 1 and bool(self._measures)
            sentences = [
                (f"{run}: " if several else "")
                + agreement_sentence(answers, judge, self._measures, resamples=RESAMPLES, seed=self._seed)
                for run, answers in self._runs.items()
            ]
            self._cache[judge] = list(dict.fromkeys(sentences))
        return self._cache[judge]
