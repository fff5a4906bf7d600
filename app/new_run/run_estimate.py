"""What a run will be, said before it begins: how much it asks, how sure that makes it, how long it takes, what it costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

from app.engine.plan import chosen_of
from app.engine.unsupported_media import NONE_EXCLUDED, ExcludedInstances, refuse_nothing_left, split
from app.run_spec import RunSpec
from app.store.run import RunStore
from app.store.throughput import duration
from app.store.workspace import Workspace
from benchmarks.base import Benchmark, Generation, Instance, Protocol, Record, Request, get_benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError
from judges.rubric import RubricJudge
from mlx_backends.registry import takes_of

if TYPE_CHECKING:
    from mlx_backends.remote.budget import UsageEstimate

_TWO_SIDED = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class BuildContents:
    """Everything that a build asks under one prompt set, in its order."""

    build: Build
    benchmark: Benchmark
    instances: tuple[Instance, ...]

    @classmethod
    def read(cls, build: Build, prompt_set: str) -> BuildContents:
        """What ``build`` asks under ``prompt_set``. Raises SourceError, and SpecError for no such prompt set."""
        benchmark = get_benchmark(build.benchmark)
        benchmark.check(build, prompt_set)
        return cls(build, benchmark, tuple(benchmark.instances(build, prompt_set)))

    @cached_property
    def conditions(self) -> Mapping[str, int]:
        """How many instances are under each condition, in the benchmark's order."""
        found = Counter(instance.condition for instance in self.instances)
        return {condition: found[condition] for condition in self.benchmark.conditions if condition in found}

    @cached_property
    def strata(self) -> Mapping[str, Mapping[str, int]]:
        """Key to value to how many instances have it, the most frequent first."""
        found: dict[str, Counter[str]] = {}
        for instance in self.instances:
            for key, value in instance.strata.items():
                found.setdefault(key, Counter())[value] += 1
        return {key: dict(values.most_common()) for key, values in found.items()}

    @cached_property
    def examples(self) -> int:
        return len({instance.group for instance in self.instances})

    @cached_property
    def scored(self) -> Mapping[str, int]:
        """How many instances there are under each condition all of whose questions offer options, which can be scored."""
        without = {each.condition for each in self.instances if not self.benchmark.options(each)}
        return {condition: count for condition, count in self.conditions.items() if condition not in without}

    def counted(self) -> BuildContents:
        """The same, with everything counted already: for a thread that hands it to another."""
        _ = self.conditions, self.strata, self.examples, self.scored
        return self


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    """How fast answers came in an earlier run: seconds for each, over so many of them."""

    run: str
    seconds: float
    answers: int


@dataclass(frozen=True)
class RunEstimate:
    """What a run will ask: the instances, and how fast they may be answered, None where nobody knows yet.

    ``excluded`` are the others that were chosen, which its model cannot take.
    """

    instances: Sequence[Instance]
    speed: MeasuredSpeed | None
    excluded: ExcludedInstances = NONE_EXCLUDED

    @cached_property
    def examples(self) -> int:
        return len({instance.group for instance in self.instances})

    @cached_property
    def conditions(self) -> Mapping[str, int]:
        """How many instances under each condition."""
        return Counter(instance.condition for instance in self.instances)

    def counted(self) -> RunEstimate:
        """The same, with everything counted already."""
        _ = self.conditions, self.examples
        return self

    @property
    def seconds(self) -> float | None:
        """How long the answers will take."""
        return None if self.speed is None else self.speed.seconds * len(self.instances)

    def told(self) -> str:
        """How long, in words, and from what that is known."""
        if self.speed is None:
            return "not known yet: no earlier run of this model and benchmark was timed"
        each = f"{self.speed.seconds:.3g} s an answer over {self.speed.answers} of {self.speed.run}"
        return f"about {duration(self.seconds)} ({each})"


def half_width(n: int) -> float:
    """Half of Wilson's 95% interval of a proportion over ``n`` answers where it is widest, at one half; nan for none.

    It takes the answers as independent, as Wilson (1927) does: where an example has several under one condition, the
    interval that tables show is wider.
    """
    return _TWO_SIDED / 2 / math.sqrt(n + _TWO_SIDED**2) if n else math.nan


def outlook(workspace: Workspace, spec: RunSpec, contents: BuildContents) -> RunEstimate:
    """What ``spec`` asks of a build, and how long that takes.

    Raises SpecError where it names what is not there, or nothing that its model takes.
    """
    chosen = chosen_of(spec, contents.benchmark, contents.instances)
    takes = takes_of(spec.model)
    asked, excluded = split(chosen, takes)
    refuse_nothing_left(spec.model, takes, asked, excluded, contents.benchmark)
    return RunEstimate(asked, speed_of(workspace, spec), excluded)


def speed_of(workspace: Workspace, spec: RunSpec) -> MeasuredSpeed | None:
    """How fast the model has answered the benchmark in this workspace: in the newest such run, of equal prompts if any is.

    Seconds are those that the engine tells, where it does; of others the times at which answers came, without pauses of over
    a minute. None where no run can tell.
    """
    runs = [
        run
        for run in workspace.summaries()
        if run.spec.get("model") == spec.model and run.spec.get("benchmark") == spec.benchmark and run.done
    ]
    alike = ("prompt_set", "exact", "score", "decoding")
    wanted = spec.model_dump(mode="json")
    runs.sort(key=lambda run: (sum(run.spec.get(key) == wanted[key] for key in alike), run.created or 0), reverse=True)
    for run in runs:
        answered = run.done - sum(p.errors for p in run.progress)
        seconds = sum(p.seconds for p in run.progress)
        if not seconds:
            try:
                with RunStore.read(workspace.runs_folder / run.name) as store:
                    answered, seconds = store.arrivals()
            except RashomonError:
                continue
        if seconds > 0 and answered > 0:
            return MeasuredSpeed(run.name, seconds / answered, answered)
    return None


# --- what remote engines will be asked ----------------------------------------------------------------


def remote_use(spec: RunSpec, instances: Iterable[Instance], build: Build) -> UsageEstimate:
    """What asking a remote engine the instances of a run will take."""
    from mlx_backends.remote.budget import estimate

    protocol = spec.protocol()
    asked = (request for instance in instances for request in requests_of(protocol, instance))
    return estimate(asked, spec.api.terms(None), build.media_path)


def judge_use(judge: RubricJudge, spec: RunSpec, instances: Iterable[Instance]) -> UsageEstimate:
    """What a remote judge will take for a run's answers, each as long as it may become."""
    from mlx_backends.remote.budget import estimate

    longest = _longest("answer", spec.decoding.max_tokens)
    records = (
        Record(instance, (longest,), basis=longest)
        for instance in instances
        if not judge.conditions or instance.condition in judge.conditions
    )
    return estimate((judge.request("answer", record) for record in records), spec.api.terms(None))


def requests_of(protocol: Protocol, instance: Instance) -> Iterator[Request]:
    """What an instance will be asked, with earlier answers of the greatest length in what follows them."""
    so_far: tuple[Generation, ...] = ()
    while (request := protocol.next(instance, so_far)) is not None:
        yield request
        so_far = (*so_far, _longest(request.id, request.decoding.max_tokens))


def _longest(request_id: str, tokens: int) -> Generation:
    return Generation(request_id, "..." * tokens, "length")
