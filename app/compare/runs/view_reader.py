"""Reading of runs, as views that a comparison keeps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.packed_answers import PackedAnswers, PackedTexts, numbered
from app.compare.runs.run_cost import CostSum, RunCost, with_lent
from app.compare.runs.run_view import RunView, RunViews
from app.papers.published_results import has_only_own_rows
from app.report.runs.imported_settings import known_identity, known_spec
from app.report.tables.judge_selection import present_judges, resolve_judge, resolve_panel
from app.report.tables.run_labels import run_labels, shared_benchmark
from app.store.cached_blind_scores import with_blind_scores
from app.store.parsed_texts import ParsedTexts
from app.store.reusable_answers import ReusedAnswers
from app.store.run_facts import TrainedExamples
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.stored_answers import KnownInstance, StepUsage, read_answers, runs_per_share
from app.system.parallel_processes import map_shares
from benchmarks.answer_quality import AnswerQuality
from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.factors.factor_tables import is_varied, reference_note, reference_positions
from benchmarks.protocols.protocols import answered_by
from benchmarks.registry import get_benchmark
from benchmarks.tables.blind_rule_tables import gain_over_blind
from benchmarks.vocabulary import TRUST, Instance, digest, part_to_json
from judges.panel_judge import Panel, panel_judge


@dataclass(frozen=True)
class RunReading:
    """A run as it was read, whichever judge labels it: its answers as tables count them, and what a view has beside them."""

    answers: Answers
    ids: PackedTexts
    groups: PackedTexts
    prompt: NDArray[np.uint64]
    cost: RunCost
    has_options: frozenset[bool]
    """For a run that scores options, the kinds of instances: with options, and without."""


def read_views(folders: Sequence[Path]) -> list[RunReading]:
    """Read runs of one benchmark, of which :func:`load_views` and tables can be made for any judge.

    Raises:
        SpecError: The runs are of several benchmarks.
        StoreError: A folder is no run.
    """
    with ExitStack() as stack:
        stores = [stack.enter_context(RunStore.read(folder)) for folder in folders]
        benchmark = shared_benchmark(stores, "show them one by one")
        readings = map_shares(partial(_read_share, benchmark.name), folders, runs_per_share(stores))
    first = readings[0]
    return [replace(reading, ids=first.ids) if reading.ids.equals(first.ids) else reading for reading in readings]


def load_views(
    folders: Sequence[Path], *, judge: str | None = None, readings: Sequence[RunReading] | None = None
) -> RunViews:
    """Return views of the runs in ``folders``, labelled by ``judge`` or the first run's first judge.

    ``readings`` are those of the runs, if they were read already.

    Raises:
        SpecError: The runs are of several benchmarks, or the judge is unknown.
        StoreError: A folder is no run.
    """
    stores = [RunStore.read(folder) for folder in folders]
    try:
        benchmark = shared_benchmark(stores, "compare runs of one")
        judge_id = resolve_judge(stores, judge)
        panel = resolve_panel(judge_id, ids := present_judges(stores))
        if panel is not None and panel.counts_flags:
            raise SpecError(
                f"{judge_id} gives several labels to an answer, and a comparison needs one; use majority or all."
            )
        labels = run_labels(stores)
        if readings is None:
            read = partial(_read_views, benchmark.name, judge_id, panel, ids)
            labelled = [(store.folder, label) for store, label in zip(stores, labels, strict=True)]
            runs = map_shares(read, labelled, runs_per_share(stores))
        else:
            reader = _reader(benchmark, judge_id, panel, ids)
            runs = [reader.view(*run) for run in zip(stores, labels, readings, strict=True)]
        runs = [replace(run, answers=run.coded.sharing(runs[0].coded)) for run in runs]
        return RunViews(benchmark, judge_id, tuple(runs), int(stores[0].meta("spec")["seed"]))
    finally:
        for store in stores:
            store.close()


def _read_views(
    benchmark_name: str, judge: str, panel: Panel | None, ids: Sequence[str], runs: Sequence[tuple[Path, str]]
) -> list[RunView]:
    """Return the views of runs, given by folder and label."""
    reader = _reader(get_benchmark(benchmark_name), judge, panel, ids)
    views = []
    for folder, label in runs:
        with RunStore.read(folder) as store:
            views.append(reader.view(store, label, reader.read(store)))
    return views


def _read_share(benchmark_name: str, folders: Sequence[Path]) -> list[RunReading]:
    reader = _ViewReader(get_benchmark(benchmark_name))
    readings = []
    for folder in folders:
        with RunStore.read(folder) as store:
            readings.append(reader.read(store))
    return readings


def _reader(benchmark: Benchmark, judge: str, panel: Panel | None, ids: Sequence[str]) -> _ViewReader:
    return _ViewReader(benchmark, judge, None if panel is None else panel_judge(panel, ids, benchmark.labels))


class _ViewReader:
    """Reader of views; what runs share is parsed and held once."""

    def __init__(
        self, benchmark: Benchmark, judge: str = "", add_verdict: Callable[[AnswerKind], AnswerKind] | None = None
    ) -> None:
        self._benchmark, self._judge, self._add_verdict = benchmark, judge, add_verdict
        self._known = ParsedTexts[KnownInstance]()
        self._prompts = ParsedTexts[int]()

    def read(self, store: RunStore) -> RunReading:
        """Read a run."""
        ids, groups, prompts = PackedTexts(), dict[str, None](), array("Q")
        cost = CostSum()
        counted = self._counted(store)
        is_scored = store.meta("spec").get("score") == "likelihood"
        with_options = set[bool]()

        def visit(text: str, instance: Instance, steps: Sequence[StepUsage]) -> None:
            ids.append(instance.id)
            groups.setdefault(instance.group)
            prompts.append(self._prompt(text, instance))
            if instance.condition in counted:
                cost.add(steps)
            if is_scored:
                with_options.add(bool(self._benchmark.options(instance)))

        answers = with_blind_scores(store, self._benchmark, read_answers(store, self._benchmark, self._known, visit))
        prompt = np.array(prompts, np.uint64)
        return RunReading(answers, ids, PackedTexts(groups), prompt, cost.total(), frozenset(with_options))

    def _counted(self, store: RunStore) -> Collection[str]:
        """Return the conditions that a comparison counts."""
        conditions = {progress.condition for progress in store.progress()}
        return conditions.difference(self._benchmark.without_sources) or conditions

    def view(self, store: RunStore, label: str, reading: RunReading) -> RunView:
        """Return the view of a run that was read."""
        answers, ids, prompt, counted = reading.answers, reading.ids, reading.prompt, self._counted(store)
        quality = answers.quality or AnswerQuality()
        if self._add_verdict is not None:
            answers = answers.derive(self._add_verdict)
        cell_note = ""
        if is_varied(answers):
            # As in tables: the repetitions of an example would count as examples.
            cell_note = reference_note({label: answers})
            places = reference_positions(answers)
        else:
            places = np.flatnonzero(answers.mask(lambda kind: kind.condition in counted))
        if len(places) < len(ids):
            ids, prompt, answers = PackedTexts(ids.at(places)), prompt[places], answers.at(places)
        names = [*zip(*map(self._names, answers.kinds), strict=True)] or [()] * 4
        (conditions, condition), (outcomes, outcome), (sources, source), (rules, rule) = map(numbered, names)
        packed = PackedAnswers(
            ids,
            reading.groups,
            conditions,
            outcomes,
            sources,
            answers.group,
            condition[answers.kind],
            outcome[answers.kind],
            source[answers.kind],
            prompt,
            answers.mask(lambda kind: kind.finish_reason == "length"),
            answers.mask(lambda kind: self._does(kind, "right")),
            answers.mask(lambda kind: self._does(kind, "off-topic")),
            answers.clusters,
            rules,
            rule[answers.kind],
        )
        identity = known_identity(store.meta("identity", {}), store.meta("spec"))
        protocol = str(identity.get("protocol") or "")
        return RunView(
            name=store.folder.name,
            label=label,
            state=read_summary(store.folder).state,
            spec=known_spec(store.meta("spec")),
            identity=identity,
            engines=tuple(store.engines()),
            answers=packed,
            cost=with_lent(reading.cost, store, counted),
            judged=self._judge in answers.judges,
            remarks=(*store.meta("remarks", []), *(f"{clause}." for clause in quality.clauses)),
            cut_clause=quality.cut_clause,
            read=answers.read,
            trained=TrainedExamples.load(store),
            reused=ReusedAnswers.load(store),
            cell_note=cell_note,
            own_rows_only=has_only_own_rows([answers], self._benchmark),
            gain=gain_over_blind(self._benchmark, answers, self._judge),
            used_protocol=answered_by(
                protocol, scored=True in reading.has_options, generated=False in reading.has_options
            ),
        )

    def _prompt(self, text: str, instance: Instance) -> int:
        """Return 64 bits of the digest of an instance's prompt."""
        value = self._prompts.get(text)
        if value is None:
            value = int(digest([part_to_json(part) for part in instance.parts])[:16], 16)
            self._prompts.add(text, value)
        return value

    def _does(self, kind: AnswerKind, behaviour: str) -> bool:
        return self._judge in kind.verdicts and kind.verdicts[self._judge].behaviour == behaviour

    def _names(self, kind: AnswerKind) -> tuple[str, str, str, str]:
        """Return the condition, the outcome, the single source and the row's rule of a kind."""
        outcome = kind.outcome(self._judge)
        label = kind.label(self._judge) if outcome == "labelled" else outcome
        left_out = self._benchmark.left_out(kind)
        return kind.condition, left_out or label, kind.instance.single_source, kind.strata.get(TRUST, "")
