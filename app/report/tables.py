"""Tables of one or more runs: the benchmark's, with notes on the labels, and those about the judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from app.annotation.human_sample import drawn_samples, restrict_to_sample
from app.report.fine_tuned import base_places
from app.report.judge_selection import (
    caveat,
    checked_agreement,
    count_overrides,
    present_judges,
    reference_judges,
    resolve_judge,
    resolve_panel,
)
from app.report.policies import given_values_sentence
from app.report.published import has_only_own_rows, published_rows, without_paper
from app.report.quantisation_pairs import quantisation_pairs
from app.store.answers import read_runs
from app.store.run import RunStore
from app.store.run_facts import ExcludedInstances, stop_reason
from benchmarks.abstention_tables import abstention_tables
from benchmarks.acts import has_scorecard, name_rules, names_sources, rules_under_conflict
from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.behaviour_table import behaviour_table
from benchmarks.confidence_tables import CONFIDENCE_TABLES, confidence_tables
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.factors.tables import factor_tables, reference_cells, reference_note
from benchmarks.registry import get_benchmark
from benchmarks.repeats_table import repeats_table
from benchmarks.scorecard import scorecard_table
from benchmarks.undecided_table import undecided_table
from benchmarks.vocabulary import Table
from benchmarks.without_looking import not_shown, with_blind_rows, without_looking_table
from benchmarks.without_sources_table import benchmark_tables, with_sources
from judges.agreement_tables import agreement_sentence, agreement_tables
from judges.base import HUMAN, OVERRIDE
from judges.panel import Panel, member_ids, panel_judge
from judges.prediction_powered import corrected_table
from mlx_backends.baseline import is_model, is_policy, split_baseline
from mlx_backends.imported import IMPORTED
from mlx_backends.models.adapters import adapter_name, split_adapter
from mlx_backends.pytorch.spec import split_name

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


@dataclass(frozen=True)
class TableInputs:
    """The contents of the runs that tables are computed from.

    Attributes:
        runs: The answers of each run, by the label of the run.
        judge: The id of the judge whose labels are used.
        judges: The ids of all judges that have labelled anything.
        measures: The ids of the judges that others are measured by, without members of the panel.
        samples: The random samples that people labelled: person to run to instance ids.
        excluded: The excluded instances of each run.
        remarks: Sentences for the notes of every table.
    """

    benchmark: Benchmark
    runs: Mapping[str, Answers]
    judge: str
    judges: Sequence[str]
    measures: Sequence[str]
    samples: Mapping[str, Mapping[str, Sequence[str]]]
    excluded: Mapping[str, ExcludedInstances]
    remarks: Sequence[str]
    seed: int
    quantisations: Sequence[tuple[str, str]] = ()
    """Pairs of runs that answer the same instances with one model, with more and with fewer bits."""
    own_rows_only: bool = False
    """True if every example comes from the user's own table, so that nothing of a paper is comparable."""
    trust: str | None = None
    """The rule on what should win, a key of ``RULES``, for rows without one; None if the user has not said."""
    models: Collection[str] = ()
    """The runs of models, which are no policies and no oracles."""
    policies: Sequence[str] = ()
    """The runs of policies, which are given what models must read."""
    checked: str = ""
    """A sentence on what `rashomon judges check` found for the judge on this machine; empty if it was not checked."""

    def with_trust(self, rule: str | None) -> TableInputs:
        """Return these runs under a rule on what should win; SpecError if the benchmark's labels name no source."""
        if rule is not None and not names_sources(self.benchmark):
            raise SpecError(f"the labels of {self.benchmark.name} name no source; leave --trust out.")
        return replace(self, trust=rule)

    @cached_property
    def not_shown(self) -> Sequence[str]:
        """A sentence on each model that is not shown to use its sources."""
        models = {run: answers for run, answers in self.runs.items() if run in self.models}
        return not_shown(self.benchmark, reference_cells(models), self.judge)

    @property
    def leads_with_scorecard(self) -> bool:
        """True if the scorecard is what a user reads first: on own documents, where what should win was said, and on passages."""
        is_own = self.own_rows_only or self.trust is not None
        return has_scorecard(self.benchmark) and (is_own or not names_sources(self.benchmark))

    @property
    def asks_what_should_win(self) -> bool:
        """True if the user has not said what should win in all conflicts, neither row by row nor for all."""
        rules = rules_under_conflict(self.benchmark, self.runs.values(), None)
        return names_sources(self.benchmark) and not (self.trust or name_rules(rules))


def read_inputs(
    folders: Sequence[Path],
    judge: str | None = None,
    *,
    checked: bool = True,
    answers: Callable[[], Sequence[Answers]] | None = None,
) -> TableInputs:
    """Read the runs in ``folders``, and if ``checked`` how well their judge did when it was checked on this machine.

    ``answers`` returns what :func:`read_runs` does.

    Raises SpecError if they are of several benchmarks, or the judge is unknown.
    """
    with ExitStack() as stack:
        stores = [stack.enter_context(RunStore.read(folder)) for folder in folders]
        benchmark = shared_benchmark(stores, "show them one by one")
        judge_id = resolve_judge(stores, judge)
        judges, measures = present_judges(stores), reference_judges(stores)
        by_label = dict(zip(run_labels(stores), stores, strict=True))
        all_answers = read_runs(stores, benchmark) if answers is None else answers()
        identities = {label: store.meta("identity", {}) for label, store in by_label.items()}
        runs = _with_bases(dict(zip(by_label, all_answers, strict=True)), list(identities.values()))
        names = {label: str(store.meta("spec")["model"]) for label, store in by_label.items()}
        seed = int(stores[0].meta("spec")["seed"])
        samples = {person: drawn_samples(by_label, person) for person in judges if person.startswith(HUMAN)}
        excluded = {label: ExcludedInstances.load(store) for label, store in by_label.items()}
        remarks = [*_run_remarks(by_label, excluded)]
        overrides = count_overrides(stores)
        quantisations = quantisation_pairs(identities)
        agreement = checked_agreement(stores, judge_id) if checked else ""
    panel = resolve_panel(judge_id, judges)
    if panel is not None:
        runs = _with_panel(panel, runs, judge_id, judges, benchmark)
    # A panel's agreement with one of its own members is no evidence of its quality.
    members = () if panel is None else member_ids(panel, judges)
    remarks += _quality_remarks(runs)
    remarks += _override_remarks({name: n for name, n in overrides.items() if name not in members}, judge_id, panel)
    remarks += _label_remarks(runs, judge_id)
    return TableInputs(
        benchmark,
        runs,
        judge_id,
        judges,
        [measure for measure in measures if measure not in members],
        {person: sample for person, sample in samples.items() if person not in members},
        excluded,
        remarks,
        seed,
        quantisations,
        has_only_own_rows(runs.values(), benchmark),
        models=_runs_of(is_model, names),
        policies=_runs_of(is_policy, names),
        checked=agreement,
    )


def _runs_of(is_kind: Callable[[str], bool], models: Mapping[str, str]) -> list[str]:
    """Return the runs whose model is of a kind."""
    return [run for run, model in models.items() if is_kind(model)]


def _with_bases(runs: Mapping[str, Answers], identities: Sequence[Mapping[str, Any]]) -> dict[str, Answers]:
    """Return the answers with each run's base among them, if its model was tuned from that of another."""
    labels = list(runs)
    bases = zip(runs.items(), base_places(identities), strict=True)
    return {label: run if base is None else replace(run, base=labels[base]) for (label, run), base in bases}


def _with_panel(
    panel: Panel, runs: Mapping[str, Answers], judge: str, judges: Sequence[str], benchmark: Benchmark
) -> dict[str, Answers]:
    """Return the answers with the verdicts of a panel. Raises SpecError if the benchmark cannot count its labels."""
    if panel.counts_flags and not benchmark.counts_flags:
        raise SpecError(
            f"{judge} gives an answer several labels, but {benchmark.name} counts only one; use majority or all."
        )
    add_verdict = panel_judge(panel, judges, benchmark.labels)
    return {run: answers.derive(add_verdict) for run, answers in runs.items()}


def _run_remarks(stores: Mapping[str, RunStore], excluded: Mapping[str, ExcludedInstances]) -> Iterator[str]:
    """Yield the remarks that runs have, and those on runs that were stopped early and on excluded instances."""
    yield from dict.fromkeys(remark for store in stores.values() for remark in store.meta("remarks", []))
    for label, store in stores.items():
        if reason := stop_reason(store):
            yield f"{label} covers a random part of its examples; it was stopped early, as {reason}."
    for label, counts in excluded.items():
        if counts.total:
            yield f"{label}: {counts.sentence}."


def _quality_remarks(runs: Mapping[str, Answers]) -> Iterator[str]:
    """Yield a remark on the quality of each run's questions, where it is known."""
    for label, run in runs.items():
        for clause in run.quality.clauses if run.quality else ():
            yield f"{label}: {clause}."


def _override_remarks(overrides: Mapping[str, int], judge: str, panel: Panel | None) -> Iterator[str]:
    """Yield a remark on each person whose overrides a judge does not use, with one that does."""
    other = judge if panel is None else "..."
    for person, count in overrides.items():
        if person != judge:
            use = f"the judge first({person}, {other}) uses them"
            yield f"{count} labels are overridden by {person} and not used here; {use}."


def _label_remarks(runs: Mapping[str, Answers], judge: str) -> Iterator[str]:
    """Yield a remark on the runs that a judge has not labelled, if it has labelled others."""
    unlabelled = [run for run, answers in runs.items() if judge not in answers.judges]
    if unlabelled and len(unlabelled) < len(runs):
        yield f"{judge} has not labelled {', '.join(unlabelled)}."


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


def shared_benchmark(stores: Sequence[RunStore], instead: str) -> Benchmark:
    """Return the benchmark of the runs. Raises SpecError, with the advice ``instead``, if they are of several."""
    names = {store.meta("spec")["benchmark"] for store in stores}
    if len(names) > 1:
        raise SpecError(f"these runs are of several benchmarks ({', '.join(sorted(names))}); {instead}.")
    return get_benchmark(names.pop())


def run_labels(stores: Sequence[RunStore]) -> list[str]:
    """Return the name of each run in a table: its model, with its prompt set or folder if the model is not enough."""
    specs = [store.meta("spec") for store in stores]
    models = [model_label(spec["model"]) for spec in specs]
    labels = [
        f"{model} ({spec['prompt_set']})" if len({spec["prompt_set"] for spec in specs}) > 1 else model
        for model, spec in zip(models, specs, strict=True)
    ]
    return unique_labels(
        [store.folder.name if labels.count(label) > 1 else label for label, store in zip(labels, stores, strict=True)]
    )


def model_label(model: str) -> str:
    """Return the name of a model in a table: of a folder the last part, of a server the name of the model it serves."""
    if model.startswith(IMPORTED):
        return f"{model.removeprefix(IMPORTED)} (imported)"
    rule, of = split_baseline(model)
    if rule:
        return f"{rule}: {model_label(of)}"
    if model.startswith("endpoint:"):
        model = model.rpartition("@http")[0]
    prefix, name, options = split_name(model)
    name, adapter = split_adapter(name)
    name = Path(name).name if prefix or "/" in name else name
    adapted = name if adapter is None else f"{name}+{adapter_name(adapter)}"
    return f"{adapted}{options} (PyTorch)" if prefix else adapted


def unique_labels(names: Sequence[str]) -> list[str]:
    """Return ``names`` with a number after each repetition, such as ``a``, ``a (2)``."""
    counts: Counter[str] = Counter()
    labels = []
    for name in names:
        counts[name] += 1
        labels.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return labels


def add_published(table: Table, benchmark: Benchmark, runs: Mapping[str, Answers]) -> Table:
    """Return ``table`` with the paper's rows below it, if the paper has that table, and notes on their comparability."""
    rows = published_rows(table, benchmark.name)
    if not rows:
        return table
    examples = {run: _examples(answers) for run, answers in runs.items()}
    distinct_examples = dict.fromkeys(examples.values())
    basis = (
        f"the rows above on {next(iter(distinct_examples))}"
        if len(distinct_examples) == 1
        else "; ".join(f"{run} on {counts}" for run, counts in examples.items())
    )
    note = f"Rows marked (paper) rest on {benchmark.paper_rows}; {basis}."
    comparison = (
        f"Their prompts: {benchmark.paper_prompts}. Their judge: {benchmark.paper_judge}. `rashomon compare RUN published:ROW` "
        "computes the difference to each."
    )
    return replace(table, rows=(*table.rows, *rows), notes=(*table.notes, note, comparison), published=len(rows))


def _examples(answers: Answers) -> str:
    """Return the number of answered examples of a run, with the number from each source."""
    names = sorted({kind.strata.get("source", "") for kind in answers.kinds})
    answered = answers.mask(lambda kind: kind.finish_reason is not None)
    source_of = answers.codes(lambda kind: names.index(kind.strata.get("source", "")))
    examples = {*zip(answers.example_at[answered].tolist(), source_of[answered].tolist(), strict=True)}
    sources = Counter(names[source] for _, source in examples if names[source])
    of = f" ({', '.join(f'{count} of {source}' for source, count in sorted(sources.items()))})" if sources else ""
    return f"{len(examples)} examples{of}"


def without_published(table: Table) -> Table:
    """Return ``table`` without the paper's rows and the two notes on them; see :func:`add_published`."""
    if not table.published:
        return table
    return replace(table, rows=table.rows[: -table.published], notes=table.notes[:-2], published=0)
