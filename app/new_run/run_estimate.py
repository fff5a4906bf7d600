"""Estimates before a run: number of requests, confidence interval, duration and cost."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from statistics import NormalDist
from typing import TYPE_CHECKING

from app.engine.instance_streams import NOTHING_SELECTED, BuildInstances
from app.engine.run_plan import select_instances
from app.engine.unsupported_media import ExclusionCounts, require_instances
from app.new_run.instance_file import InstanceSubset, PlacedInstances, held_instances
from app.report.progress.remaining_time import duration
from app.run_spec import RunSpec
from app.store.run_facts import NONE_EXCLUDED, ExcludedInstances, answer_pace
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError, SpecError
from benchmarks.hash_collections import count_distinct
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.protocols import Protocol
from benchmarks.protocols.remedy_protocols import DIRECT, calls_per_answer
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Record, Request, Stated, Text
from judges.judge_registry import find_judges
from judges.rubric_judge import RubricJudge
from mlx_backends.engine_registry import modalities
from mlx_backends.policy_engine import suitable_policies

if TYPE_CHECKING:
    from mlx_backends.remote.api_budget import UsageEstimate

_TWO_SIDED = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class BuildContents:
    """All instances of a build under one prompt set, in order."""

    build: Build
    benchmark: Benchmark
    instances: Sequence[Instance]

    @classmethod
    def read(cls, build: Build, prompt_set: Prompts) -> BuildContents:
        """Read the instances of ``build`` under ``prompt_set``. Raises SourceError, and SpecError for an unknown prompt set."""
        benchmark = get_benchmark(build.benchmark)
        benchmark.check(build, prompt_set)
        return cls(build, benchmark, held_instances(iter(BuildInstances(benchmark, build, prompt_set))))

    @cached_property
    def conditions(self) -> Mapping[str, int]:
        """The number of instances of each condition, in the benchmark's order."""
        counts = Counter(instance.condition for instance in self.instances)
        return {condition: counts[condition] for condition in self.benchmark.conditions if condition in counts}

    @cached_property
    def strata(self) -> Mapping[str, Mapping[str, int]]:
        """The number of the build's own instances by key and value of the strata, the most frequent first."""
        counts: dict[str, Counter[str]] = {}
        for instance in self.instances:
            for key, value in (
                instance.strata.items() if instance.condition not in self.benchmark.without_sources else ()
            ):
                counts.setdefault(key, Counter())[value] += 1
        return {key: dict(values.most_common()) for key, values in counts.items()}

    @cached_property
    def examples(self) -> int:
        return _count_examples(self.instances)

    @cached_property
    def policies(self) -> tuple[str, ...]:
        """The policies that mean something for these instances."""
        return suitable_policies(self.benchmark.labels, (instance.references for instance in self.instances))

    def precomputed(self) -> BuildContents:
        """Compute all counts and return self; for a thread that passes it to another."""
        _ = self.conditions, self.strata, self.examples, self.policies
        return self


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    """The speed of an earlier run, in seconds per answer over a number of ``answers``.

    ``calls`` is how many times as many calls an answer of the new run takes.
    """

    run: str
    seconds: float
    answers: int
    calls: float = 1


@dataclass(frozen=True)
class RunEstimate:
    """The instances of a run, and the speed of an earlier run if there is one.

    ``excluded`` are chosen instances whose media the model does not support. ``calls_per_answer`` is more than 1 for a remedy.
    Every instance is asked ``repeats`` times; ``done`` of the answers are there already. ``page_of`` gives
    what :attr:`pages` counts.
    """

    instances: Sequence[Instance]
    speed: MeasuredSpeed | None
    excluded: ExcludedInstances = NONE_EXCLUDED
    calls_per_answer: int = 1
    done: int = 0
    repeats: int = 1
    page_of: Callable[[Instance], str] = attrgetter("group")

    @property
    def answers(self) -> int:
        """The number of answers of the run."""
        return len(self.instances) * self.repeats

    @property
    def left(self) -> int:
        """The number of answers that are still to come."""
        return self.answers - self.done

    @cached_property
    def examples(self) -> int:
        return _count_examples(self.instances)

    @cached_property
    def conditions(self) -> Mapping[str, int]:
        """The number of instances of each condition."""
        return Counter(instance.condition for instance in self.instances)

    @cached_property
    def pages(self) -> int:
        """The number of pages or documents, whose answers are right or wrong together."""
        return count_distinct(hash(page) % 2**64 for page in map(self.page_of, self.instances) if page)

    def precomputed(self) -> RunEstimate:
        """Compute all counts and return self."""
        _ = self.conditions, self.examples, self.pages
        return self

    @property
    def seconds(self) -> float | None:
        """The estimated duration of the answering; None if unknown."""
        if not self.left:
            return 0.0
        return None if self.speed is None else self.speed.seconds * self.speed.calls * self.left

    def describe_duration(self) -> str:
        """Return the duration in words, with its basis."""
        if not self.left:
            return "none: every instance is answered"
        if self.speed is None:
            return "unknown: there is no timed run of this model and benchmark yet"
        times = "" if self.speed.calls == 1 else f"{self.speed.calls:.3g} times "
        basis = f"{times}{self.speed.seconds:.3g} s per answer, over {self.speed.answers} of {self.speed.run}"
        return f"about {duration(self.seconds)} ({basis})"


def half_width(n: int) -> float:
    """Return half the width of Wilson's 95% interval for a proportion of one half over ``n`` answers; nan for n = 0.

    One half gives the widest interval. The answers count as independent (Wilson, 1927).
    """
    return _TWO_SIDED / 2 / math.sqrt(n + _TWO_SIDED**2) if n else math.nan


def estimate_run(workspace: Workspace, spec: RunSpec, contents: BuildContents) -> RunEstimate:
    """Return the instances of ``spec`` in a build, with the speed of earlier runs.

    Raises SpecError for an unknown condition or stratum, or if the model supports none of the instances.
    """
    takes = modalities(spec.model)
    placed, counts, places = PlacedInstances(contents.instances), ExclusionCounts(takes), array("I")
    for instance in select_instances(spec, contents.benchmark, placed):
        if counts.add(instance):
            places.append(placed.place)
    excluded = counts.excluded()
    if not excluded.of:
        raise SpecError(NOTHING_SELECTED)
    require_instances(spec.model, takes, len(places), excluded, contents.benchmark)
    return RunEstimate(
        InstanceSubset(contents.instances, places),
        measured_speed(workspace, spec),
        excluded,
        calls_per_answer(spec.protocol, spec.samples),
        repeats=spec.repeats,
        page_of=partial(_page_of, contents.benchmark),
    )


def _page_of(benchmark: Benchmark, instance: Instance) -> str:
    own = benchmark.pages(instance).own
    return own[0] if own else ""


def _count_examples(instances: Iterable[Instance]) -> int:
    return count_distinct(hash(instance.group) % 2**64 for instance in instances)


def measured_speed(workspace: Workspace, spec: RunSpec) -> MeasuredSpeed | None:
    """Return the model's speed on the benchmark in this workspace, from the newest run that is most like ``spec``.

    The seconds are those the engine reports, or else those in which workers were answering. None if no run has either.
    """
    runs = [
        run
        for run in workspace.summaries()
        if run.spec.get("model") == spec.model and run.spec.get("benchmark") == spec.benchmark and run.done
    ]
    compared = ("prompt_set", "exact", "score", "protocol", "samples", "kv_bits", "decoding")
    values = spec.model_dump(mode="json")
    runs.sort(
        key=lambda run: (sum(run.spec.get(key) == values.get(key) for key in compared), run.created or 0), reverse=True
    )
    for run in runs:
        answer_count = run.done - run.reused - run.errors
        seconds = sum(p.seconds for p in run.progress)
        if not seconds:
            try:
                with RunStore.read(workspace.runs_folder / run.name) as store:
                    paced, pace_seconds = answer_pace(store)
                    steps = store.answer_times().answers
            except RashomonError:
                continue
            seconds = pace_seconds / paced * steps if paced else 0.0
        if seconds > 0 and answer_count > 0:
            calls = calls_per_answer(run.spec.get("protocol", DIRECT), run.spec.get("samples"))
            ratio = calls_per_answer(spec.protocol, spec.samples) / calls
            return MeasuredSpeed(run.name, seconds / answer_count, answer_count, ratio)
    return None


# --- use of remote engines --------------------------------------------------------------------------


def remote_usage(spec: RunSpec, instances: Iterable[Instance], build: Build) -> UsageEstimate:
    """Return the estimated usage of a remote engine for the instances of a run."""
    from mlx_backends.remote.api_budget import estimate_usage

    protocol = spec.to_protocol()
    requests = (sized for instance in instances for sized in longest_requests(protocol, instance))
    return estimate_usage(requests, spec.api.remote_options(None), build.media_path, examined=True)


def judge_costs(spec: RunSpec, benchmark: Benchmark, instances: Iterable[Instance]) -> Iterator[str]:
    """Yield what each remote judge of a run will use at most."""
    for judge in find_judges(spec.judge, benchmark, spec.undecided_by):
        if isinstance(judge, RubricJudge) and judge.info.device == "remote":
            most = ", if every answer is undecided" if judge.undecided_by else ""
            yield f"judge {judge.model}{most}: {judge_usage(judge, spec, instances)}"


def judge_usage(judge: RubricJudge, spec: RunSpec, instances: Iterable[Instance]) -> UsageEstimate:
    """Return the estimated usage of a remote judge for a run's answers, each of the greatest length."""
    from mlx_backends.remote.api_budget import estimate_usage

    longest = _unknown("answer", 0)
    records = (
        Record(instance, (longest,), basis=longest)
        for instance in instances
        if not judge.conditions or instance.condition in judge.conditions
    )
    limits = [spec.decoding.max_tokens]
    requests = (_sized(judge.request("answer", record), limits) for record in records)
    return estimate_usage(requests, spec.api.remote_options(None))


def calls_by_condition(spec: RunSpec, instances: Iterable[Instance]) -> Counter[str]:
    """Return the number of calls of a run's model under each condition; an answer takes several under some of them."""
    protocol = spec.to_protocol()
    return Counter(instance.condition for instance in instances for _ in longest_requests(protocol, instance))


def longest_requests(protocol: Protocol, instance: Instance) -> Iterator[tuple[Request, int]]:
    """Yield the requests that a model gets for an instance, each with the most tokens that earlier answers add to it.

    An ellipsis stands for each of these answers.
    """
    previous: list[Generation] = []
    limits: list[int] = []
    while (request := protocol.next(instance, previous)) is not None:
        if not isinstance(request.form, Stated):
            yield _sized(request, limits)
        previous.append(_unknown(request.id, len(limits)))
        limits.append(request.decoding.max_tokens)


_UNKNOWN = 0x100000
"""The first of the private characters that stand for answers by number, in requests that depend on them."""

_ELLIPSIS = "..."
"""One token, as text is counted."""


def _unknown(request_id: str, number: int) -> Generation:
    return Generation(request_id, chr(_UNKNOWN + number), "length")


def _sized(request: Request, limits: Sequence[int]) -> tuple[Request, int]:
    """Return a request with ellipses for the unknown answers in it, and the most tokens of these beyond the ellipses' own."""
    ellipses = {_UNKNOWN + number: _ELLIPSIS for number in range(len(limits))}
    tokens = 0
    messages = []
    for message in request.messages if limits else ():
        parts = list(message.parts)
        for place, part in enumerate(parts):
            if isinstance(part, Text):
                tokens += sum(part.text.count(chr(_UNKNOWN + n)) * (limit - 1) for n, limit in enumerate(limits))
                parts[place] = Text(part.text.translate(ellipses))
        messages.append(replace(message, parts=tuple(parts)))
    return (replace(request, messages=tuple(messages)) if limits else request), tokens
