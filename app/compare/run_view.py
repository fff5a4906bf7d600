"""Views of runs: the part of each run that a comparison needs, so that whole runs need not stay in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from app.report.imported import known_identity, known_spec
from app.report.judge_selection import present_judges, resolve_judge, resolve_panel
from app.report.tables import run_labels, shared_benchmark
from app.store.answers import KnownInstance, StepUsage, read_answers, runs_per_share
from app.store.parsed_texts import ParsedTexts
from app.store.run import RunStore
from app.store.run_facts import NOT_TRAINED, TrainedExamples
from app.store.workspace import read_summary
from app.system.parallel import map_shares
from benchmarks.answers import AnswerKind
from benchmarks.base import Benchmark, LabelMetrics
from benchmarks.errors import SpecError
from benchmarks.factors.tables import is_varied, reference_note, reference_positions
from benchmarks.registry import get_benchmark
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Instance, Record, digest, part_to_json
from judges.panel import Panel, panel_judge
from mlx_backends.baseline import is_oracle, split_baseline
from mlx_backends.policy import PREFIX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXCERPT = 200


class LabelledAnswer(NamedTuple):
    """A run's answer to one instance.

    ``outcome`` is the label, or why there is none. ``prompt`` is a digest of the prompt and its media.
    """

    group: str
    condition: str
    outcome: str
    prompt: str
    single_source: str = ""
    """The modality of the only source, where the prompt has a single one: see :meth:`Benchmark.single_source`."""


@dataclass(frozen=True, slots=True)
class CodedAnswers:
    """A run's answers as numbers.

    Attributes:
        place: The place of each instance, by its id.
        condition, outcome: The index in ``conditions`` and ``outcomes`` of each answer's, shape (answers,).
        group: The number of each answer's example, shape (answers,).
    """

    place: Mapping[str, int]
    conditions: tuple[str, ...]
    outcomes: tuple[str, ...]
    condition: NDArray[np.int64]
    outcome: NDArray[np.int64]
    group: NDArray[np.int64]

    @classmethod
    def of(cls, answers: Mapping[str, LabelledAnswer]) -> CodedAnswers:
        """Return ``answers`` as numbers."""
        import numpy as np

        codes: tuple[dict[str, int], ...] = ({}, {}, {})
        columns = [
            np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)
            for known, names in zip(
                codes,
                (
                    [answer.condition for answer in answers.values()],
                    [answer.outcome for answer in answers.values()],
                    [answer.group for answer in answers.values()],
                ),
                strict=True,
            )
        ]
        place = {instance: number for number, instance in enumerate(answers)}
        return cls(place, tuple(codes[0]), tuple(codes[1]), *columns)

    def condition_codes(self, codes: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the code of each answer's condition, -1 for one without; shape (answers,)."""
        return _recoded(self.conditions, self.condition, codes)

    def outcome_codes(self, codes: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the code of each answer's outcome, -1 for one without; shape (answers,)."""
        return _recoded(self.outcomes, self.outcome, codes)


def _recoded(names: Sequence[str], numbers: NDArray[np.int64], codes: Mapping[str, int]) -> NDArray[np.int64]:
    import numpy as np

    recoded: NDArray[np.int64] = np.array([codes.get(name, -1) for name in names], dtype=np.int64)[numbers]
    return recoded


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
    read: Callable[[Sequence[int]], Iterator[Record]] = lambda positions: iter(())
    """Reads the records at these positions among the answers."""
    trained: TrainedExamples = NOT_TRAINED
    """The count of its examples that the model was trained on."""
    cell_note: str = ""
    """The cell that is compared, a sentence; empty for a run on a build that is not varied."""

    @cached_property
    def coded(self) -> CodedAnswers:
        """The answers as numbers."""
        return CodedAnswers.of(self.answers)

    def excerpts(self, instances: Collection[str]) -> dict[str, str]:
        """Return the beginnings of the answers to these instances, read from the run."""
        wanted = frozenset(instances)
        positions = [position for position, instance in enumerate(self.answers) if instance in wanted]
        return {record.instance.id: _excerpt(record) for record in self.read(positions)}

    @property
    def is_policy(self) -> bool:
        """True for a policy, which reads no input, and for a baseline made of its answers."""
        return split_baseline(str(self.spec.get("model")))[1].startswith(PREFIX)

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

    @cached_property
    def label_metrics(self) -> LabelMetrics:
        """The metrics to compare."""
        return label_metrics_of(self.benchmark)


def load_views(folders: Sequence[Path], *, judge: str | None = None) -> RunViews:
    """Return views of the runs in ``folders``, labelled by ``judge`` or the first run's first judge.

    Raises:
        SpecError: The runs are of several benchmarks, or the judge is unknown.
        StoreError: A folder is no run.
    """
    stores = [RunStore.read(folder) for folder in folders]
    try:
        benchmark = shared_benchmark(stores, "compare runs of one")
        judge_id = resolve_judge(stores, judge)
        panel = resolve_panel(judge, ids := present_judges(stores))
        if panel is not None and panel.counts_flags:
            raise SpecError(
                f"{judge} gives several labels to an answer, and a comparison needs one; use majority or all."
            )
        read = partial(_read_views, benchmark.name, judge_id, panel, ids)
        labelled = [(store.folder, label) for store, label in zip(stores, run_labels(stores), strict=True)]
        runs = map_shares(read, labelled, runs_per_share(stores))
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
    import numpy as np

    metrics = benchmark.label_metrics()
    if metrics is not None:
        return metrics

    def accuracy_of(place: int, correct: Any) -> Any:
        def share(counts: Any) -> Any:
            totals = np.asarray(counts[..., place, :].sum(-1), float)
            hits = (counts[..., place, :] * correct).sum(-1)
            return np.divide(hits, totals, out=np.full(totals.shape, np.nan), where=totals > 0)

        return share

    accuracies = {
        f"Accuracy, {condition}": accuracy_of(
            i, np.array([benchmark.correct(condition, label) for label in benchmark.labels])
        )
        for i, condition in enumerate(benchmark.conditions)
    }
    return LabelMetrics(benchmark.conditions, benchmark.labels, accuracies)


def _read_views(
    benchmark_name: str, judge: str, panel: Panel | None, ids: Sequence[str], runs: Sequence[tuple[Path, str]]
) -> list[RunView]:
    """Return the views of runs, given by folder and label."""
    benchmark = get_benchmark(benchmark_name)
    reader = _ViewReader(benchmark, judge, None if panel is None else panel_judge(panel, ids, benchmark.labels))
    views = []
    for folder, label in runs:
        with RunStore.read(folder) as store:
            views.append(reader.view(store, label))
    return views


class _ViewReader:
    """Reader of views; what runs share is parsed and held once."""

    def __init__(
        self, benchmark: Benchmark, judge: str, add_verdict: Callable[[AnswerKind], AnswerKind] | None
    ) -> None:
        self._benchmark, self._judge, self._add_verdict = benchmark, judge, add_verdict
        self._known = ParsedTexts[KnownInstance]()
        self._prompts = ParsedTexts[tuple[str, str, str]]()

    def view(self, store: RunStore, label: str) -> RunView:
        """Return the view of a run."""
        instances: list[tuple[str, str, str]] = []
        cost = _CostSum()

        def visit(text: str, instance: Instance, steps: Sequence[StepUsage]) -> None:
            instances.append(self._prompts.get(text) or self._prompt(text, instance))
            cost.add(steps)

        answers = read_answers(store, self._benchmark, self._known, visit)
        if self._add_verdict is not None:
            answers = answers.derive(self._add_verdict)
        cell_note = ""
        if is_varied(answers):
            # As in tables: the repetitions of an example would count as examples.
            cell_note = reference_note({label: answers})
            places = reference_positions(answers)
            instances = [instances[place] for place in places]
            answers = answers.at(places)
        kinds = [(kind.condition, self._outcome(kind), kind.instance.single_source) for kind in answers.kinds]
        labelled = {}
        for (name, group, prompt), number in zip(instances, answers.kind.tolist(), strict=True):
            condition, outcome, single_source = kinds[number]
            labelled[name] = LabelledAnswer(group, condition, outcome, prompt, single_source)
        return RunView(
            name=store.folder.name,
            label=label,
            state=read_summary(store.folder).state,
            spec=known_spec(store.meta("spec")),
            identity=known_identity(store.meta("identity", {}), store.meta("spec")),
            engines=tuple(store.engines()),
            answers=labelled,
            cost=cost.total(),
            judged=self._judge in answers.judges,
            remarks=tuple(store.meta("remarks", [])),
            read=answers.read,
            trained=TrainedExamples.load(store),
            cell_note=cell_note,
        )

    def _prompt(self, text: str, instance: Instance) -> tuple[str, str, str]:
        """Return the id and the example of an instance, and the digest of its prompt."""
        value = instance.id, instance.group, digest([part_to_json(part) for part in instance.parts])[:16]
        self._prompts.add(text, value)
        return value

    def _outcome(self, kind: AnswerKind) -> str:
        outcome = kind.outcome(self._judge)
        return kind.label(self._judge) if outcome == "labelled" else outcome


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


def unlabelled_outcomes(run: RunView, labels: Sequence[str]) -> Counter[str]:
    """Return the number of a run's instances without a label, by outcome."""
    return Counter(answer.outcome for answer in run.answers.values() if answer.outcome not in labels)


def split_policies(views: RunViews) -> tuple[tuple[RunView, ...], tuple[RunView, ...]]:
    """Split the runs into models, which can be recommended, and policies, which are floors; oracles are neither."""
    return (
        tuple(run for run in views.runs if not run.is_policy and not run.is_oracle),
        tuple(run for run in views.runs if run.is_policy and not run.is_oracle),
    )
