"""The contents of runs that tables are computed from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from app.annotation.correcting_labels import drawn_samples
from app.papers.published_results import has_only_own_rows
from app.report.runs.fine_tuned_pairs import base_places
from app.report.runs.quantisation_pairs import quantisation_pairs
from app.report.tables.judge_selection import (
    checked_agreement,
    count_overrides,
    present_judges,
    reference_judges,
    resolve_judge,
    resolve_panel,
)
from app.report.tables.run_labels import run_labels, shared_benchmark
from app.store.run_facts import ExcludedInstances, stop_reason
from app.store.run_store import RunStore
from app.store.stored_answers import read_runs
from benchmarks.answer_behaviour import has_scorecard, name_rules, names_sources, rules_under_conflict
from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.factors.factor_tables import reference_cells
from benchmarks.tables.blind_rule_tables import not_shown
from judges.base import HUMAN
from judges.panel_judge import Panel, member_ids, panel_judge
from mlx_backends.baseline_engine import is_model, is_policy


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
