"""Estimates of a run before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.new_run.run_estimate import (
    BuildContents,
    RunEstimate,
    estimate_run,
    half_width,
    judge_usage,
    longest_requests,
    measured_speed,
    remote_usage,
)
from app.new_run.spec_form import check_runs
from app.run_spec import BatchSpec, RunSpec
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.stats.intervals import wilson
from benchmarks.vocabulary import Generation, Instance
from judges.judge_registry import find_judge
from judges.rubric_judge import RubricJudge
from mlx_backends.core.saved_work import Reuse
from tests.support.demo import HeldOutSet
from tests.support.old_runs import sealed
from tests.support.runs import instances, make_run, says


@pytest.mark.parametrize("n", [2, 10, 50, 384, 1000, 10_000])
def test_the_half_width_is_wilsons_at_its_widest(n: int) -> None:
    result = wilson(n // 2, n)
    assert result.low is not None
    assert result.high is not None
    assert half_width(n) == pytest.approx((result.high - result.low) / 2)
    assert half_width(n) >= max((w.high or 0) - (w.low or 0) for w in (wilson(k, n) for k in range(n + 1))) / 2 - 1e-12


def test_no_answers_have_no_half_width() -> None:
    assert half_width(0) != half_width(0)
    assert half_width(384) == pytest.approx(0.05, abs=0.0005)  # the figure that every textbook has


def spec(**values: object) -> RunSpec:
    (created,) = BatchSpec.model_validate({"benchmark": "cmc-bench", "model": "policy:always-image", **values}).runs()
    return created


def test_a_limit_gives_what_the_run_then_asks(charts: HeldOutSet, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    build = charts.build
    workspace.build_folder("cmc-bench").parent.mkdir()
    workspace.build_folder("cmc-bench").symlink_to(build.path)
    contents = BuildContents.read(build, "paper")
    assert sum(contents.conditions.values()) == len(contents.instances)
    assert len(contents.instances) - contents.conditions["closed-book"] == build.manifest["instances"]
    assert contents.conditions["closed-book"] == contents.examples
    assert list(contents.conditions) == [c for c in contents.benchmark.conditions if c in contents.conditions]
    assert sum(contents.strata["type"].values()) == build.manifest["instances"]
    for limit, conditions in (
        (1, ()),
        (3, ()),
        (5, ("aligned", "text-only")),
        (5, ("aligned", "closed-book")),
        (10**6, ()),
    ):
        wanted = spec(limit=limit, conditions=conditions)
        result = estimate_run(workspace, wanted, contents)
        (checked,) = check_runs(
            workspace,
            BatchSpec(benchmark="cmc-bench", model=("policy:always-image",), limit=limit, conditions=conditions),
        )
        assert list(result.instances) == list(checked.instances)
        assert result.examples == min(limit, contents.examples)
        assert sum(result.conditions.values()) == len(result.instances)
    with pytest.raises(SpecError, match="no type 'nothing'"):
        estimate_run(workspace, spec(strata={"type": ["nothing"]}), contents)
    with pytest.raises(SpecError, match="did you mean 'paper'"):
        BuildContents.read(build, "papr")


@pytest.mark.parametrize("protocol", ["read-then-compare", "verify", "self-consistency"])
def test_usage_counts_answers_of_the_greatest_length_without_writing_them(charts: HeldOutSet, protocol: str) -> None:
    items = charts.instances[:2]
    prompts, lengths = [], []
    for limit in (1000, 1_000_000):
        run = spec(model="openai:m", protocol=protocol, decoding={"max_tokens": limit})
        usage = remote_usage(run, items, charts.build)
        prompts.append(usage.input_tokens)
        requests = [request for item in items for request, _ in longest_requests(run.to_protocol(), item)]
        lengths.append([len(str(request.messages)) for request in requests])
        assert usage.calls == len(requests) + usage.examination
        assert usage.output_tokens_at_most == limit * len(requests) + 128 * usage.examination
    assert lengths[0] == lengths[1]
    answers_in_prompts = {"read-then-compare": 1, "verify": 1 + 2, "self-consistency": 0}[protocol]
    assert prompts[1] - prompts[0] == answers_in_prompts * len(items) * (1_000_000 - 1000)


def test_a_judge_reads_an_answer_of_the_greatest_length(charts: HeldOutSet) -> None:
    judge = find_judge("openai:m", get_benchmark("cmc-bench"))
    assert isinstance(judge, RubricJudge)
    short, long = (
        judge_usage(judge, spec(decoding={"max_tokens": limit}), charts.instances[:3]) for limit in (1000, 1_000_000)
    )
    assert long.input_tokens - short.input_tokens == 3 * (1_000_000 - 1000)


def test_the_time_comes_from_earlier_runs_of_the_model_and_is_never_guessed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    asked = instances(4)
    assert measured_speed(workspace, spec()) is None
    make_run(workspace, "other-model", asked, says("12"), model="policy:always-text")
    assert measured_speed(workspace, spec()) is None

    def every_second_fails(instance: Instance) -> Generation:
        if "text" in instance.condition:
            return Generation(f"{instance.id}#0", "", "error", error="broken")
        return says("12")(instance)

    make_run(workspace, "half", asked, every_second_fails)
    result = measured_speed(workspace, spec())
    assert result is not None
    right = sum("text" not in instance.condition for instance in asked)
    assert (result.run, result.answers) == ("half", right)
    assert result.seconds == pytest.approx(0.6)  # 0.1 s to the first token and 0.5 s after it
    make_run(workspace, "newer", asked, says("12", seconds=5.0))
    result = measured_speed(workspace, spec())
    assert result is not None
    assert result.run == "newer"
    assert result.seconds == pytest.approx(6.0)


def test_a_remedy_takes_its_calls_as_many_times_as_long(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    make_run(workspace, "direct", instances(4), says("12"))
    for protocol, samples, calls in (("verify", None, 3), ("self-consistency", 7, 7), ("self-consistency", None, 5)):
        speed = measured_speed(workspace, spec(protocol=protocol, samples=samples))
        assert speed is not None
        estimate = RunEstimate(instances(4), speed, calls_per_answer=calls)
        assert estimate.seconds == pytest.approx(calls * 0.6 * len(instances(4)))


def test_of_an_engine_that_tells_no_seconds_the_arrivals_count_without_pauses(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    folder = make_run(
        workspace, "remote", instances(1), lambda instance: Generation(f"{instance.id}#0", "12", "stop", (), 3, 2)
    )
    with sealed(folder) as database:
        times = [100.0, 102.0, 104.0, 4000.0, 4002.0, 4004.0]  # a night between the third and the fourth
        for row, when in enumerate(times, 1):
            database.execute("UPDATE generation SET finished_at = ? WHERE id = ?", (when, row))
    result = measured_speed(workspace, spec())
    assert result is not None
    assert (result.seconds, result.answers) == (2.0, 6)
    with RunStore.open(folder) as store:
        store.set_meta("work", [{**Reuse().counts(), "answered": 4, "seconds": 12.0}])
    result = measured_speed(workspace, spec())
    assert result is not None
    assert result.seconds == 3.0, "what the worker measured comes first"
