"""Instances of a run, read from the build by every iteration."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine.instance_streams import BuildInstances, run_instances
from app.engine.run_plan import create_run
from app.run_spec import RunSpec
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.errors import SourceError, SpecError
from benchmarks.instance_sampling import select
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Instance, Media, Text
from tests.performance.large_run import build as write_build

BUILD = Build(Path("build"), {})


class Many:
    """Instances that nobody holds."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Instance]:
        for number in range(self.count):
            text = Text(f"What is {number}? " * 20)
            yield Instance(f"{number}", f"{number // 2}", "aligned", text.text, (text, Media("0" * 64, ".png")))


def peak(count: int) -> int:
    """Return the peak memory of selecting and checking ``count`` instances."""
    tracemalloc.start()
    selection = select(Many(count), stratify_by="type", seed=0, limit=count // 4)
    instances, _ = run_instances(selection, ("image",), BUILD)
    assert sum(1 for _ in instances) == len(instances) == count // 2
    result = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result


@pytest.mark.slow
def test_memory_grows_by_few_bytes_an_instance() -> None:
    small, large = peak(2_000), peak(22_000)
    assert large - small < 20_000 * 40


def test_the_first_repeated_id_is_named() -> None:
    many = [*Many(50), *Many(3)]
    with pytest.raises(SourceError, match="the id '0' more than once"):
        run_instances(many, ("image",), BUILD)
    with pytest.raises(SpecError, match="select no instance"):
        run_instances([], ("image",), BUILD)


def test_a_build_that_changes_while_a_run_is_planned_leaves_no_run(tmp_path: Path) -> None:
    write_build(tmp_path / "data", 40)
    build, benchmark = Build.open(tmp_path / "data"), get_benchmark("cmc-bench")
    instances, _ = run_instances(BuildInstances(benchmark, build, "paper"), ("image",), build)
    rows = tmp_path / "data" / "instances.jsonl"
    rows.write_text(rows.read_text().replace("bar 39?", "bar 40?"))
    workspace = Workspace(tmp_path / "workspace")
    workspace.make()
    spec = RunSpec(benchmark="cmc-bench", model="policy:uniform", name="changed", prompt_set="paper", judge=("match",))
    with pytest.raises(SourceError, match="changed after the build"):
        create_run(workspace, spec, workspace.runs_folder / "changed", {}, instances, data=build.path)
    assert not list(workspace.runs_folder.iterdir())
