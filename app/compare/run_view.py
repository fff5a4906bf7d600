"""Views of runs: the part of each run that a comparison needs, so that whole runs need not stay in memory."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.compare.packed_answers import LabelledAnswer, PackedAnswers, PackedTexts, numbered
from app.report.imported import known_identity, known_spec
from app.report.judge_selection import present_judges, resolve_judge, resolve_panel
from app.report.published import has_only_own_rows
from app.report.tables import run_labels, shared_benchmark
from app.store.answers import KnownInstance, StepUsage, read_answers, runs_per_share
from app.store.blind_scores import with_blind_scores
from app.store.lending import ReusedAnswers
from app.store.parsed_texts import ParsedTexts
from app.store.run import RunStore
from app.store.run_facts import NOT_TRAINED, TrainedExamples
from app.store.run_summary import read_summary
from app.system.parallel import map_shares
from benchmarks.answer_quality import AnswerQuality
from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError, StoreError
from benchmarks.factors.tables import is_varied, reference_note, reference_positions
from benchmarks.protocols import answered_by
from benchmarks.registry import get_benchmark
from benchmarks.stats.clusters import number_groups
from benchmarks.stats.intervals import ratio
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import TRUST, Instance, LabelMetrics, Record, digest, part_to_json
from benchmarks.without_looking import Gain, gain_over_blind
from judges.panel import Panel, panel_judge
from mlx_backends.baseline import is_model, is_oracle, is_policy

_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a run's answers: seconds and tokens of the timed ones, peak memory in bytes, and the number of answers."""

    answers: int = 0
    timed: int = 0
    seconds: float = 0.0
    decode_s: float = 0.0
    decoded: int = 0
    peak_memory: int | None = None
    metered: int = 0
    tokens: int = 0
    """The tokens of prompts and answers, of all steps of the ``metered`` answers."""
    unmeasured: int = 0
    """The answers that were reused from runs that are not there. If these are most, times and memory are unknown."""

    @property
    def tokens_per_answer(self) -> float | None:
        return self.tokens / self.metered if self.metered else None

    @property
    def seconds_per_answer(self) -> float | None:
        return self.seconds / self.timed if self.timed else None

    @property
    def tokens_per_second(self) -> float | None:
        return self.decoded / self.decode_s if self.decode_s else None


@dataclass(frozen=True)
class RunView:
    """One run: its answers by instance id, its identity, and the engines that answered, the latest last."""

    name: str
    label: str
    state: str
    spec: Mapping[str, Any]
    identity: Mapping[str, Any]
    engines: tuple[Mapping[str, Any], ...]
    answers: Mapping[str, LabelledAnswer]
    cost: RunCost
    judged: bool
    """True if the judge has labelled any of its answers."""
    remarks: tuple[str, ...] = ()
    cut_clause: str = ""
    """The answers that were cut while reasoning, as a clause; see :attr:`AnswerQuality.cut_clause`."""
    read: Callable[[Sequence[int]], Iterator[Record]] = lambda positions: iter(())
    """Reads the records at these positions among the answers."""
    trained: TrainedExamples = NOT_TRAINED
    """The count of its examples that the model was trained on."""
    reused: ReusedAnswers | None = None
    """The counts of answers that were reused from other runs; None if they are unknown."""
    cell_note: str = ""
    """The cell that is compared, a sentence; empty for a run on a build that is not varied."""
    own_rows_only: bool = False
    """True if every example comes from the user's own table."""
    used_protocol: str = ""
    """The name of its protocol as it is true of its answers; empty: the stored one."""
    gain: Gain | None = None
    """Its gain over the best rule that looks at no source; None without a closed question that counts."""

    @cached_property
    def coded(self) -> PackedAnswers:
        """The answers as numbers."""
        return self.answers if isinstance(self.answers, PackedAnswers) else PackedAnswers.of(self.answers)

    @cached_property
    def examples(self) -> int:
        """The number of examples."""
        return number_groups(self.coded.example)[0]

    def records(self, instances: Sequence[str]) -> Iterator[tuple[str, Record]]:
        """Yield these instances with the records of the answers to them, as :meth:`PackedAnswers.places` finds them.

        A view that cannot read its run yields none.
        """
        names: dict[int, list[str]] = {}
        for name, place in zip(instances, self.coded.places(instances).tolist(), strict=True):
            names.setdefault(place, []).append(name)
        wanted = sorted(names)
        for place, record in zip(wanted, self.read(wanted), strict=False):
            yield from ((name, record) for name in names[place])

    def excerpts(self, instances: Collection[str]) -> dict[str, str]:
        """Return the beginnings of the answers to these instances, read from the run."""
        return {name: _excerpt(record) for name, record in self.records([*instances])}

    def answer_texts(self, places: NDArray[np.int64]) -> list[str]:
        """Return the answers at these places as a judge sees them, read from the run, in the order of ``places``."""
        wanted = np.unique(places).tolist()
        records = zip(wanted, self.read(wanted), strict=True)
        texts = {place: visible_answer(record.answer.text) if record.answer else "" for place, record in records}
        return [texts[place] for place in places.tolist()]

    @property
    def protocol(self) -> str:
        """The name of its protocol, as it is true of its answers."""
        return self.used_protocol or str(self.identity.get("protocol") or "")

    @property
    def is_policy(self) -> bool:
        """True for a policy, which reads no input, and for a baseline made of its answers."""
        return is_policy(str(self.spec.get("model")))

    @property
    def not_shown(self) -> str:
        """A sentence that it is not shown to use its sources, or only in some tasks; empty if it is, or if it is no model."""
        return self.gain.doubt(self.label) if self.is_model and self.gain is not None else ""

    @property
    def is_model(self) -> bool:
        """False for a policy and an oracle."""
        return is_model(str(self.spec.get("model")))

    @property
    def is_oracle(self) -> bool:
        """True for a baseline that knows which source is right, which nobody can use."""
        return is_oracle(str(self.spec.get("model")))

    @property
    def quantisation(self) -> str | None:
        """The quantisation that the engine reports; None for models without local weights."""
        quantisation = self.identity.get("quantisation")
        return None if quantisation is None else str(quantisation)

    @property
    def weights_bytes(self) -> int | None:
        """The size of the model's weight files, where an engine has reported it."""
        return next((size for engine in reversed(self.engines) if (size := engine.get("weights_bytes"))), None)


@dataclass(frozen=True)
class RunViews:
    """The runs of a comparison, of one benchmark and labelled by one judge; the first one is the baseline."""

    benchmark: Benchmark
    judge: str
    runs: tuple[RunView, ...]
    seed: int

    @property
    def own_rows_only(self) -> bool:
        """True if every example comes from the user's own table, so that no paper's rows are comparable."""
        return all(run.own_rows_only for run in self.runs)

    @cached_property
    def label_metrics(self) -> LabelMetrics:
        """The metrics to compare."""
        return label_metrics_of(self.benchmark)


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


def reject_duplicates(folders: Sequence[Path]) -> None:
    """Raise SpecError where a run is named twice: it would be compared with itself, and count as two."""
    duplicates = [folder.name for folder, count in Counter(folder.resolve() for folder in folders).items() if count > 1]
    if duplicates:
        raise SpecError(f"{duplicates[0]} is named twice; compare it with another run.")


def label_metrics_of(benchmark: Benchmark) -> LabelMetrics:
    """Return a benchmark's metrics of label counts; where it defines none, the accuracy under each condition."""
    if (metrics := benchmark.answer_metrics()) is not None:
        return metrics

    def accuracy_of(place: int, correct: Any) -> Any:
        def share(counts: Any) -> Any:
            return ratio((counts[..., place, :] * correct).sum(-1), counts[..., place, :].sum(-1))

        return share

    accuracies = {
        f"Accuracy, {condition}": accuracy_of(
            i, np.array([benchmark.correct(condition, label) for label in benchmark.labels])
        )
        for i, condition in enumerate(benchmark.full_conditions)
    }
    return LabelMetrics(benchmark.full_conditions, benchmark.labels, accuracies, benchmark.unparsed_label)


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
        cost = _CostSum()
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
            cost=_with_lent(reading.cost, store, counted),
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


def _excerpt(record: Record) -> str:
    text = visible_answer(record.answer.text)[:_EXCERPT] if record.answer else ""
    return " ".join(text.split())


class _CostSum:
    """The cost of the answers added so far, errors excluded."""

    def __init__(self) -> None:
        self._answers = self._timed = self._decoded = self._metered = self._tokens = 0
        self._seconds = self._decode_s = 0.0
        self._peak: int | None = None

    def add(self, steps: Sequence[StepUsage]) -> None:
        """Add an answer, given by its steps; none if there is no answer yet."""
        if not steps or steps[-1].finish_reason == "error":
            return
        self._answers += 1
        seconds, is_timed = 0.0, False
        for _, _, completion_tokens, prefill_s, decode_s, peak_memory in steps:
            seconds += (prefill_s or 0) + (decode_s or 0)
            is_timed = is_timed or decode_s is not None
            if decode_s and completion_tokens:
                # Where the engine reports the prefill time, that includes the first token.
                self._decode_s += decode_s
                self._decoded += completion_tokens - (prefill_s is not None)
            if peak_memory is not None:
                self._peak = max(self._peak or 0, peak_memory)
        tokens = [count for step in steps for count in (step.prompt_tokens, step.completion_tokens)]
        known_tokens = [count for count in tokens if count is not None]
        if len(known_tokens) == len(tokens):
            self._metered += 1
            self._tokens += sum(known_tokens)
        if is_timed:
            self._timed += 1
            self._seconds += seconds

    def total(self) -> RunCost:
        """Return the cost."""
        return RunCost(
            self._answers,
            self._timed,
            self._seconds,
            self._decode_s,
            self._decoded,
            self._peak,
            self._metered,
            self._tokens,
        )


def _with_lent(cost: RunCost, store: RunStore, conditions: Collection[str]) -> RunCost:
    """Return a run's cost with the times and memory that its reused answers took in the runs beside it that gave them."""
    lent: dict[tuple[str, str], set[str]] = {}
    for origin, is_last in store.origins():
        if is_last and origin.same is None:
            lent.setdefault((origin.run, origin.name), set()).add(origin.instance)
    if not lent:
        return cost
    of_lenders, expected = _CostSum(), sum(map(len, lent.values()))
    for (run, name), instances in lent.items():
        # A name in an origin is hostile; one that is no single part names no run.
        with suppress(StoreError), RunStore.read(store.folder.parent / Path(name).name) as lender:
            if lender.meta("id") != run:
                continue
            for page in lender.pages():
                for row in page.instances:
                    if row[1] in instances:
                        steps = page.generations.get(row[0], ()) if row[2] in conditions else ()
                        of_lenders.add([StepUsage(step[6], *step[8:13]) for step in steps])
                        expected -= 1
    if 2 * expected > cost.answers:
        return replace(cost, timed=0, seconds=0.0, decode_s=0.0, decoded=0, peak_memory=None, unmeasured=expected)
    total = of_lenders.total()
    return replace(
        cost,
        timed=cost.timed + total.timed,
        seconds=cost.seconds + total.seconds,
        decode_s=cost.decode_s + total.decode_s,
        decoded=cost.decoded + total.decoded,
        peak_memory=max((p for p in (cost.peak_memory, total.peak_memory) if p is not None), default=None),
        unmeasured=expected,
    )


def unlabelled_outcomes(run: RunView, labels: Sequence[str]) -> Counter[str]:
    """Return the number of a run's instances without a label, by outcome."""
    counts = np.bincount(run.coded.outcome, minlength=len(run.coded.outcomes)).tolist()
    return Counter(
        {name: count for name, count in zip(run.coded.outcomes, counts, strict=True) if count and name not in labels}
    )


def split_policies(views: RunViews) -> tuple[tuple[RunView, ...], tuple[RunView, ...]]:
    """Split the runs into models, which can be recommended, and policies, which are floors; oracles are neither."""
    return (
        tuple(run for run in views.runs if run.is_model),
        tuple(run for run in views.runs if run.is_policy and not run.is_oracle),
    )
