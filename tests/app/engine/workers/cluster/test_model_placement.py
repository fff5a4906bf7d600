"""Models of a batch on nodes by memory: side by side where they fit on different nodes, else one after the other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from app.commands.terminal.progress_display import SilentDisplay
from app.engine.workers.cluster.cluster_interface import Member, WorkerLostError
from app.engine.workers.cluster.model_placement import NodeMemory, Placement, Survey, check_fits, survey_memory
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_supervisor import Supervisor, _End
from benchmarks.errors import ModelError
from tests.support.local_cluster import LocalCluster, SizedWorker

GB = 10**9
NEEDS = {"large": 40 * GB, "middle": 20 * GB, "small": 5 * GB}
SIZES = {"studio": 64 * GB, "pro": 24 * GB, "air": 8 * GB}


def survey_of(sizes: dict[str, int], *, complete: bool = True) -> Survey:
    return Survey([NodeMemory(name, name, dict.fromkeys(NEEDS, size)) for name, size in sizes.items()], complete)


def test_nodes_report_their_memory_and_those_that_do_not_are_left_out() -> None:
    cluster = LocalCluster("studio", "hung", "air", "broken", make=lambda name: SizedWorker(SIZES.get(name)))
    cluster.hung.add("hung")
    survey = survey_memory(cluster, tuple(NEEDS), clock=cluster.clock)
    assert [node.name for node in survey.nodes] == ["air", "studio"]
    assert survey.nodes[1].available == dict.fromkeys(NEEDS, 64 * GB)
    assert not survey.complete
    assert len(cluster.released) == 4, "every worker ends"


def test_models_that_fit_nowhere_are_named() -> None:
    check_fits(survey_of(SIZES), NEEDS)
    with pytest.raises(ModelError, match="large") as refused:
        check_fits(survey_of({"pro": 24 * GB, "air": 8 * GB}), NEEDS)
    assert "small (" not in str(refused.value)
    check_fits(survey_of({"air": 8 * GB}, complete=False), NEEDS)  # a node that is busy may have room
    engineless = Survey([NodeMemory("studio", "studio", {"small": 64 * GB})], complete=True)
    with pytest.raises(ModelError, match=r"large.*middle"):
        check_fits(engineless, NEEDS)


def test_models_share_the_cluster_by_size() -> None:
    placement = Placement(survey_of(SIZES), NEEDS)
    jobs = sorted(NEEDS, key=lambda model: -placement.size([model]))
    assert jobs == ["large", "middle", "small"]
    assert [placement.start(job, [job]) for job in jobs] == [True, True, True]
    assert placement.avoided("small") == ("pro", "studio")
    assert placement.avoided("large") == ("air", "pro")
    placement.end("large")
    assert placement.share() == {"middle": ["studio"], "small": ["studio"]}
    assert placement.avoided("small") == ("pro",)
    assert not placement.share()


def test_models_that_fit_on_the_same_nodes_answer_one_after_the_other() -> None:
    placement = Placement(survey_of({"one": 64 * GB, "two": 64 * GB}), NEEDS)
    assert placement.start("large", ["large"])
    assert not placement.start("small", ["small"])
    placement.end("large")
    assert placement.start("small", ["small"])
    assert not placement.avoided("small"), "it has all nodes"


def test_a_judge_needs_room_for_itself() -> None:
    placement = Placement(survey_of(SIZES), NEEDS)
    assert placement.start("first", ["middle"])  # on studio and pro
    assert not placement.start("judged", ["small", "large"]), "the judge fits only on a node that is in use"
    assert placement.start("small", ["small"])


def test_without_a_survey_one_job_runs_at_a_time() -> None:
    placement = Placement()
    assert placement.start("one", ["a"])
    assert not placement.start("two", ["b"])
    assert not placement.start("three", []), "as without a cluster"
    placement.end("one")
    assert placement.start("three", [])


class Working(Supervisor):
    """A supervisor whose workers take some looks at them, and write down who works at the same time."""

    def __init__(self, placement: Placement | None, looks: dict[str, int]) -> None:
        super().__init__(SilentDisplay(), placement)
        self.together: list[list[str]] = []
        self._looks = looks
        self._working: list[str] = []

    def _run_worker(self, job: Job) -> Generator[None, None, _End]:
        self._working.append(job.model)
        self.together.append(list(self._working))
        for _ in range(self._looks[job.model]):
            yield
        self._working.remove(job.model)
        return _End(1 if job.model == "middle" else 0)


def jobs_of(folder: Path, models: Sequence[str]) -> list[Job]:
    for model in models:
        (folder / model).mkdir()
    return [Job((folder / model,), (), model=model, models=(model,), workers="ray") for model in models]


@pytest.mark.parametrize(
    ("sizes", "together"),
    [
        (SIZES, [["large"], ["large", "middle"], ["large", "middle", "small"]]),
        ({"studio": 64 * GB, "pro": 24 * GB}, [["large"], ["large", "middle"], ["large", "small"]]),
        ({"studio": 64 * GB}, [["small"], ["large"], ["middle"]]),
        ({}, [["small"], ["large"], ["middle"]]),
    ],
)
def test_supervisor_runs_models_side_by_side_where_they_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], together: list[list[str]]
) -> None:
    monkeypatch.setattr("app.engine.workers.worker_supervisor._count_results", lambda job: 0)
    placement = Placement(survey_of(sizes), NEEDS)
    supervisor = Working(placement, {"large": 9, "middle": 2, "small": 3})
    assert supervisor.run(jobs_of(tmp_path, ["small", "large", "middle"])) == 1, "the worst exit code"
    assert supervisor.together == together


def test_lost_cluster_is_reported_as_what_it_is() -> None:
    class Gone(LocalCluster):
        def start(self, member: object) -> object:
            raise WorkerLostError("it left")

    assert survey_memory(Gone("a"), ["small"]) == Survey([], complete=False)


def test_models_for_gpus_fit_on_no_node_without_one_beside_nodes_with() -> None:
    class Mixed(LocalCluster):
        def members(self) -> Sequence[Member]:
            return [Member("gpu", "gpu", has_gpu=True), Member("cpu", "cpu")]

    cluster = Mixed("gpu", "cpu", make=lambda name: SizedWorker(100))
    survey = survey_memory(cluster, ["cuda:a", "cuda:b@cpu", "c"], clock=cluster.clock)
    fitting = {node.name: set(node.available) for node in survey.nodes}
    assert fitting == {"gpu": {"cuda:a", "cuda:b@cpu", "c"}, "cpu": {"cuda:b@cpu", "c"}}
