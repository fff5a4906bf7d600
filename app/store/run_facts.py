"""Facts that a run's store records: excluded instances, an early stop, the judges' progress, and deaths of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Self

from app.store.run_store import RunStore
from app.store.store_types import ConditionProgress, JudgedCounts
from benchmarks.errors import SpecError
from benchmarks.rubric import OFFICIAL
from judges.base import HUMAN, OVERRIDE, newest, newest_versions
from mlx_backends.models.model_modalities import ALL_MODALITIES, MODALITY_NAMES
from mlx_backends.portable_model_names import without_folders

EXCLUDED_KEY = "excluded"
"""The meta key of a run's :class:`ExcludedInstances`."""

REACHED_KEY = "reached"
"""The meta key of the interval width at which a run stopped early; None once it resumed."""

DEATHS_KEY = "deaths"
"""The meta key of a run's :class:`WorkerDeath` entries."""


LICENCE_KEY = "licence"
"""The meta key of the licence that the model's card states; absent where none is known."""

REMARKS_KEY = "remarks"
"""The meta key of a run's remarks, sentences that readers of its results must see."""

TRAINED_KEY = "trained on"
"""The meta key of a run's :class:`TrainedExamples`."""

WORK_KEY = "work"
"""The meta key of the entries of :class:`WorkDone`, one for each worker, oldest first."""


@dataclass(frozen=True, slots=True)
class ExcludedInstances:
    """Count of the instances, out of the ``of`` that were selected, that are excluded because the model cannot take them.

    ``by`` counts them by each modality that the model lacks; an instance with two such modalities counts under both.
    ``conditions`` counts them by condition.
    """

    total: int = 0
    of: int = 0
    by: Mapping[str, int] = field(default_factory=dict)
    conditions: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, store: RunStore) -> Self:
        """Return the counts stored with a run; zeros for a run planned before they were recorded."""
        return cls(**store.meta(EXCLUDED_KEY, {}))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sentence(self) -> str:
        """The number of excluded instances and the reason; "" if there are none."""
        if not self.total:
            return ""
        return f"{self.total:,} of {self.of:,} not asked: the model takes {missing_modalities(self.by)}"


NONE_EXCLUDED = ExcludedInstances()
"""The counts of a run without excluded instances."""


@dataclass(frozen=True, slots=True)
class TrainedExamples:
    """Count of a run's examples, out of the ``of`` that it has, that the ``model`` was trained on."""

    examples: int = 0
    of: int = 0
    model: str = ""

    @classmethod
    def load(cls, store: RunStore) -> Self:
        """Return the counts stored with a run; zeros for a model that recorded no training."""
        return cls(**store.meta(TRAINED_KEY, {}))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sentence(self) -> str:
        """The number of examples that the model was trained on, and what follows; "" if there are none."""
        if not self.examples:
            return ""
        return (
            f"{self.model} was trained on {self.examples:,} of these {self.of:,} examples, so its answers to them show what it "
            "remembers."
        )


NOT_TRAINED = TrainedExamples()
"""The counts of a run whose model was trained on none of its examples."""


def missing_modalities(by: Mapping[str, int]) -> str:
    """Format counts by modality, such as ``no audio (900), no 3D (700)``."""
    return ", ".join(
        f"no {MODALITY_NAMES[modality]} ({by[modality]:,})" for modality in ALL_MODALITIES if by.get(modality)
    )


def stop_reason(store: RunStore) -> str | None:
    """Return the reason why a run stopped early, as prose; None if it did not."""
    width = store.meta(REACHED_KEY)
    return None if width is None else f"every condition's 95% interval is {width:g} wide or less"


UNJUDGED_STATE = {"state": "planned", "note": "its answers are not judged yet"}
"""The state of a run that is answered, and that no judge works on although its judges are not done."""


@dataclass(frozen=True, slots=True)
class JudgeProgress:
    """Counts of a judge's verdicts, of the answers that it can judge ``now``, and of those in the whole run.

    ``judge`` is its id, or its name before it began.
    """

    judge: str
    counts: JudgedCounts
    now: int
    total: int

    @property
    def judged(self) -> int:
        """The number of its verdicts."""
        return self.counts.total


def judge_progress(spec: Mapping[str, Any], progress: Sequence[ConditionProgress]) -> list[JudgeProgress]:
    """Return the progress of a run's own judges, then of others that have judged it, each in its newest version.

    People are left out, as they label what they choose; answers that are errors are not judged.
    """
    ids = dict.fromkeys(judge for p in progress for judge in p.judged if not judge.startswith((HUMAN, OVERRIDE)))
    judges = dict.fromkeys((*_own_judges(spec, ids), *newest_versions(ids)))
    return [_progress_of(judge, spec, progress, ids) for judge in judges]


def is_judged(spec: Mapping[str, Any], progress: Sequence[ConditionProgress]) -> bool:
    """Return whether the judges of a run's spec have judged all its answers, by the run's counters."""
    ids = {judge for p in progress for judge in p.judged}
    own = (_progress_of(judge, spec, progress, ids) for judge in _own_judges(spec, ids))
    return all(judge.judged >= judge.now for judge in own)


def _own_judges(spec: Mapping[str, Any], ids: Collection[str]) -> list[str]:
    return [newest(name, ids) or without_folders(name) for name in spec.get("judge", ())]


def _progress_of(
    judge: str, spec: Mapping[str, Any], progress: Sequence[ConditionProgress], ids: Collection[str]
) -> JudgeProgress:
    rubric = (
        judge.rpartition("@")[2].rpartition("-")[0] or None
        if judge in ids
        else ""
        if ":" in judge or "/" in judge
        else None
    )
    conditions = () if rubric is None else _rubric_conditions(str(spec.get("benchmark", "")), rubric)
    of_judge = [p for p in progress if not conditions or p.condition in conditions]
    counts = JudgedCounts.sum(p.judged[judge] for p in of_judge if judge in p.judged)
    if (by := spec.get("undecided_by")) and rubric is not None and judge in _own_judges(spec, ids):
        rule = newest(by, ids) or ""
        undecided = sum(p.judged[rule].undecided for p in of_judge if rule in p.judged)
        return JudgeProgress(judge, counts, undecided, undecided)
    errors = sum(p.errors for p in of_judge)
    return JudgeProgress(
        judge,
        counts,
        sum(p.done for p in of_judge) - errors,
        sum(p.total for p in of_judge) - errors,
    )


@cache
def _rubric_conditions(benchmark: str, rubric: str) -> tuple[str, ...]:
    """Return the conditions that a model labels by ``rubric``, "" for the benchmark's; empty for all, as for rules.

    A rubric with the prompt of the official code has those of the benchmark's own.

    They are empty too if the benchmark's package is not installed.
    """
    from benchmarks.registry import get_benchmark  # where a model judges: a tenth of the start of `rashomon runs`

    with suppress(SpecError):
        known = get_benchmark(benchmark).rubric
        return known.conditions if known is not None and rubric.removesuffix(OFFICIAL) in ("", known.name) else ()
    return ()


@dataclass(frozen=True, slots=True)
class WorkerDeath:
    """The death of a worker that ran out of memory or lost the GPU.

    Attributes:
        cause: A phrase that follows "the worker".
        at: The time, in seconds since 1970.
        width: The most requests the worker had in flight; None if it died before its first request.
        suspects: The ids of the instances that were in flight; each is asked again on its own.
        failed: The id of an instance that was in flight on its own, and is now recorded as an error.
        memory: Whether memory ran out.
    """

    cause: str
    at: float
    width: int | None = None
    suspects: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    memory: bool = True

    @property
    def reduced_width(self) -> int | None:
        """The width for the next worker: half if memory ran out, unless a single request was already too much."""
        return self.width if self.width is None or self.failed or not self.memory else max(1, self.width // 2)

    def sentence(self) -> str:
        """Describe the death and its consequence in one sentence."""
        subject = f"the worker {self.cause}"
        if self.failed:
            return f"{subject} for the second time on {self.failed[0]} alone: recorded as an error"
        if not self.suspects:
            return f"{subject} with no request in flight"
        count = len(self.suspects)
        requests = f"{count} requests in flight; they are" if count > 1 else "one request in flight; it is"
        return f"{subject} with {requests} repeated one at a time, then others {self.reduced_width} at a time"


def death_to_json(death: WorkerDeath) -> dict[str, Any]:
    """Return the stored form of ``death``; earlier versions know no other cause than memory, and no key for it."""
    values = asdict(death)
    if death.memory:
        del values["memory"]
    return values


def worker_deaths(store: RunStore) -> list[WorkerDeath]:
    """Return the deaths of a run's workers, oldest first."""
    return [
        WorkerDeath(**{**death, "suspects": tuple(death["suspects"]), "failed": tuple(death["failed"])})
        for death in store.meta(DEATHS_KEY, [])
    ]


@dataclass(frozen=True, slots=True)
class WorkDone:
    """Work that a run's workers did, summed.

    Attributes:
        counts: What the workers counted (:meth:`mlx_backends.core.saved_work.Reuse.counts`); empty where none did.
        answers: The answers that this covers; None where an earlier version counted.
        separate: The workers, beside the first, that did not know what others had read: their distinct tokens and images may
            have been counted before.
        answered: The answers that came in the ``seconds`` in which workers were answering; 0 for a run of an earlier version.
    """

    counts: Mapping[str, int]
    answers: int | None
    separate: int
    answered: int
    seconds: float

    @classmethod
    def load(cls, store: RunStore) -> Self:
        """Return the work that is stored with a run."""
        entries = store.meta(WORK_KEY, [])
        counted = [entry for entry in entries if entry["prompts"]]
        total: Counter[str] = Counter()
        for entry in counted:
            total.update({name: value for name, value in entry.items() if name not in ("seconds", "continues")})
        return cls(
            {name: value for name, value in total.items() if name not in ("answers", "answered")},
            total["answers"] if all("answers" in entry for entry in counted) else None,
            sum(not entry.get("continues", False) for entry in counted[1:]),
            sum(entry.get("answered", 0) for entry in entries),
            sum(entry.get("seconds", 0.0) for entry in entries),
        )


def answer_pace(store: RunStore) -> tuple[int, float]:
    """Return a number of generated answers, and the seconds that they took; pauses are left out.

    Workers measure it. For answers of earlier versions and of people, it follows from the times at which they were stored.
    """
    work = WorkDone.load(store)
    return (work.answered, work.seconds) if work.seconds > 0 else store.answer_gaps()
