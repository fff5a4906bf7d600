"""A run's requests on several nodes: the same answers, whatever nodes do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.engine.answer_loop import AnswerLoop
from app.engine.workers.cluster import worker_pool
from app.engine.workers.cluster.cluster_backend import ClusterBackend
from app.engine.workers.cluster.cluster_connection import node_job
from app.engine.workers.cluster.cluster_interface import WorkerLostError
from app.engine.workers.cluster.cluster_messages import (
    Loaded,
    MediaReferences,
    NodeJob,
    NotLoaded,
    Orders,
    Problem,
    Proof,
    Report,
)
from app.engine.workers.cluster.node_worker import NodeWorker
from app.store.run_store import RunStore
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Decoding, Generation, Message, Request, Text
from mlx_backends.base import EngineInfo, no_media
from mlx_backends.core.distinct_count import prefix_hashes
from mlx_backends.core.saved_work import Reuse
from mlx_backends.engine_registry import describe
from mlx_backends.models.weight_files import weights_digest
from mlx_backends.policy_engine import PolicyBackend
from tests.app.store.test_run_store import META
from tests.support.demo import FOUR_BIT
from tests.support.local_cluster import LocalCluster, OtherWorker, job_of
from tests.support.toy import EvenJudge, Toy, TwoSteps, toy_instances

MODEL = "policy:random"


def requests(count: int) -> list[Request]:
    references = {"image": ("seven",), "text": ("eight",)}
    return [
        Request(f"instance-{number}", 0, (Message("user", (Text(f"{number}?"),)),), Decoding(), references=references)
        for number in range(count)
    ]


def opened(
    cluster: LocalCluster,
    *,
    accept_engine: bool = False,
    job: NodeJob | None = None,
    recorded: EngineInfo | None = None,
) -> ClusterBackend:
    backend = ClusterBackend(
        cluster,
        no_media,
        job or node_job(MODEL, "run"),
        recorded or describe(MODEL),
        has_answers=recorded is not None,
        accept_engine=accept_engine,
        clock=cluster.clock,
    )
    assert backend.wait()
    return backend


def answer(
    backend: ClusterBackend, items: Sequence[Request], disturb: Callable[[int], None] = lambda step: None
) -> list[Generation]:
    """All answers; ``disturb`` gets the number of each step before it."""
    waiting, answers, step = list(items), list[Generation](), 0
    while len(answers) < len(items):
        while waiting and len(items) - len(waiting) - len(answers) < backend.capacity:
            backend.submit(waiting.pop(0))
        disturb(step)
        answers += backend.step()
        step += 1
        assert step < 10_000, backend.status()
    return answers


def expected(items: Sequence[Request]) -> dict[str, str]:
    policy = PolicyBackend(MODEL)
    policy.capacity = len(items)
    for item in items:
        policy.submit(item)
    return {generation.request_id: generation.text for generation in policy.step()}


def texts(answers: Sequence[Generation]) -> dict[str, str]:
    assert len({generation.request_id for generation in answers}) == len(answers), "an answer came twice"
    return {generation.request_id: generation.text for generation in answers}


@pytest.mark.parametrize("nodes", [1, 3])
def test_nodes_give_the_answers_of_one_machine(nodes: int) -> None:
    cluster = LocalCluster(*"abc"[:nodes])
    backend, items = opened(cluster), requests(700)
    assert texts(answer(backend, items)) == expected(items)
    counts = {node.name: node.answers for node in backend.status()}
    assert sum(counts.values()) == 700
    assert all(counts.values()), "every node took part"
    backend.close()
    assert cluster.closed
    assert sorted(cluster.released) == sorted(cluster.names), "no worker is left behind"


def test_nodes_that_crash_hang_leave_and_join_change_no_answer() -> None:
    cluster = LocalCluster("a", "b")
    backend, items = opened(cluster), requests(3000)

    def disturb(step: int) -> None:
        if step % 7 == 3:
            cluster.kill("ab"[step % 2])
        if step == 5:
            cluster.names.append("late")
        if step == 20:
            cluster.hung.add("b")
        if step == 40:
            cluster.names.remove("a")
            cluster.kill("a")

    assert texts(answer(backend, items, disturb)) == expected(items)
    status = {node.name: node for node in backend.status()}
    assert status["late"].answers > 0
    assert status["a"].state == "gone"
    assert sum(node.errors for node in status.values()) == 0


def test_a_hung_worker_is_replaced_and_its_requests_asked_elsewhere() -> None:
    cluster = LocalCluster("a", "b")
    backend, items = opened(cluster), requests(600)

    def disturb(step: int) -> None:
        if backend.status()[1].answers:
            cluster.hung.add("b")

    assert texts(answer(backend, items, disturb)) == expected(items)
    assert cluster.released == ["b"]
    assert cluster.now >= worker_pool.QUIET_SECONDS + worker_pool.HANG_SECONDS


@pytest.mark.parametrize(
    ("facts", "accepted"),
    [
        ({"weights": "0" * 64}, False),
        ({"versions": {"mlx": "0.1"}}, True),
        ({"device": "metal"}, True),
        ({"answers": ("stop", "another answer")}, True),
    ],
)
def test_a_node_that_differs_is_refused_by_name_or_accepted_and_recorded(
    facts: dict[str, object], accepted: bool
) -> None:
    def make(name: str) -> NodeWorker:
        return OtherWorker(**facts) if name == "other" else NodeWorker()

    items = requests(400)
    backend = opened(LocalCluster("first", "other", make=make))
    assert texts(answer(backend, items)) == expected(items)
    status = {node.name: node for node in backend.status()}
    assert (status["other"].state, status["other"].answers) == ("refused", 0)
    assert not backend.remarks  # a node that answered nothing has no place among the notes of tables
    backend = opened(LocalCluster("first", "other", make=make), accept_engine=True)
    assert texts(answer(backend, items)) == expected(items)
    status = {node.name: node for node in backend.status()}
    assert (status["other"].answers > 0) is accepted
    assert any("other" in remark for remark in backend.remarks) is accepted


def test_each_answer_records_the_engine_of_its_node_although_that_ends_at_once(tmp_path: Path) -> None:
    by_other: set[str] = set()

    class Full(OtherWorker):
        """A worker whose disk is full after its first answers."""

        def exchange(self, orders: Orders) -> Report:
            report = super().exchange(orders)
            by_other.update(generation.request_id for generation in report.generations)
            return replace(report, problem=Problem("its disk is full", passes=False) if report.generations else None)

    def make(name: str) -> NodeWorker:
        return Full(versions={"mlx": "0.1"}) if name == "other" else NodeWorker()

    RunStore.create(tmp_path, META, toy_instances(120)).close()
    backend = opened(LocalCluster("first", "other", make=make), accept_engine=True)
    with RunStore.open(tmp_path) as store:
        store.use_engine(backend.engine)
        AnswerLoop(store, backend, TwoSteps(), [EvenJudge()], Toy()).run()
        engines = dict(enumerate(store.engines(), 1))
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        rows = database.execute(
            "SELECT i.id, g.step, g.engine FROM generation g JOIN instance i ON i.ordinal = g.instance"
        ).fetchall()
    assert {node.name: node.state for node in backend.status()}["other"] == "failed"
    assert by_other
    assert {f"{instance}#{step}" for instance, step, engine in rows if engines[engine].get("other")} == by_other


def test_a_first_node_that_is_not_the_engine_of_the_run_answers_nothing() -> None:
    cluster = LocalCluster("only", make=lambda name: OtherWorker(weights="0" * 64))
    with pytest.raises(ModelError, match="only"):
        opened(cluster)


@pytest.mark.parametrize(
    "job",
    [
        job_of("policy:unknown"),
        job_of("/no/such/model"),
        replace(job_of(MODEL), version="another version"),
    ],
)
def test_a_node_that_cannot_load_the_model_is_named(job: NodeJob) -> None:
    with pytest.raises(ModelError, match="mac-2"):
        opened(LocalCluster("mac-2"), job=job)


def test_a_cluster_without_nodes_is_given_up_after_a_while() -> None:
    cluster = LocalCluster()
    with pytest.raises(ModelError):
        opened(cluster)
    assert cluster.now >= worker_pool.PATIENCE_SECONDS


def test_a_node_that_another_run_fills_is_waited_for() -> None:
    cluster = LocalCluster("a", "full")
    cluster.hung.add("full")  # as a worker that has no CPU to begin on
    backend, items = opened(cluster), requests(300)

    def disturb(step: int) -> None:
        cluster.now += worker_pool.HANG_SECONDS if step < 4 else 0
        if step == 4:
            assert {node.name: node.state for node in backend.status()}["full"] == "starting"
            cluster.hung.clear()

    assert texts(answer(backend, items, disturb)) == expected(items)
    assert {node.name: node for node in backend.status()}["full"].answers > 0
    assert not cluster.released


@pytest.mark.parametrize(("for_good", "workers"), [(False, worker_pool.ATTEMPTS), (True, 1)])
def test_nodes_on_which_every_worker_ends_are_given_up(for_good: bool, workers: int) -> None:
    class Crashing(NodeWorker):
        def load(self, job: NodeJob) -> Loaded | NotLoaded:
            raise WorkerLostError("it ended", for_good=for_good)

    cluster = LocalCluster("a", make=lambda name: Crashing())
    with pytest.raises(ModelError, match=r"a: .*it ended"):
        opened(cluster)
    assert cluster.released == ["a"] * workers


def test_a_node_that_answered_is_used_again_after_a_rest() -> None:
    items = requests(200)
    cluster = LocalCluster("a")
    backend = opened(cluster)
    started: list[float] = []

    def disturb(step: int) -> None:
        """End each worker before it answers, after the first answers and until three of them have ended."""
        before = sum(node.answers for node in backend.status())
        if before and len(started) < worker_pool.ATTEMPTS and backend.status()[0].state != "lost":
            cluster.kill("a")
            started.append(cluster.now)

    assert texts(answer(backend, items, disturb)) == expected(items)
    assert len(started) == worker_pool.ATTEMPTS
    assert cluster.now > started[-1] + worker_pool.REST_SECONDS


def test_a_loop_over_the_cluster_stores_each_answer_once_with_its_engine(tmp_path: Path) -> None:
    RunStore.create(tmp_path, META, toy_instances(200)).close()
    cluster = LocalCluster("a", "b")
    cluster_backend = opened(cluster)
    looks = iter(range(10**6))

    def stop() -> bool:
        if next(looks) % 5 == 4:
            cluster.kill("b")
        return False

    with RunStore.open(tmp_path) as store:
        store.use_engine(cluster_backend.engine)
        AnswerLoop(store, cluster_backend, TwoSteps(), [EvenJudge()], Toy(), stop=stop).run()
        assert all(len(record.generations) == 2 for record in store.records())
        assert [engine["model"] for engine in store.engines()] == [MODEL]


class CountingWorker(NodeWorker):
    """A worker whose backend counts prompts of a hundred tokens: the last ten are the request's own."""

    def load(self, job: NodeJob) -> Loaded | NotLoaded:
        report = super().load(job)
        self._backend = Counting(MODEL)
        return report


class Counting(PolicyBackend):
    counted: Reuse | None = None

    @property
    def reuse(self) -> Reuse | None:
        return self.counted

    def choose_mode(self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False) -> None:
        self.counted = Reuse()

    def step(self) -> Sequence[Generation]:
        finished, reuse = super().step(), self.counted
        if reuse is not None:
            for generation in finished:
                own = int(generation.request_id.partition("-")[2].partition("#")[0])
                prompt = np.concatenate([np.arange(90), 1000 * own + np.arange(10)])
                reuse.read_alone(prefix_hashes(prompt), ["0" * 64])
            reuse.answers += len(finished)
        return finished


def test_what_several_nodes_read_is_distinct_once() -> None:
    cluster = LocalCluster("a", "b", "c", make=lambda name: CountingWorker())
    backend, items = opened(cluster), requests(600)
    for _ in range(2):  # runs of one worker
        backend.use_sequential_mode()
        assert backend.reuse is None
        backend.choose_mode(items[:32])

        def disturb(step: int) -> None:
            if step == 3:
                cluster.kill("b")

        answer(backend, items, disturb)
        reuse = backend.reuse
        assert reuse is not None
        assert 600 <= reuse.answers == reuse.prompts <= 700, "with those that the killed worker had reported"
        assert reuse.computed_tokens == 100 * reuse.prompts
        assert reuse.distinct_tokens == pytest.approx(90 + 10 * 600, rel=0.001)
        assert reuse.distinct_images == 1
    backend.close()


class Answering(NodeWorker):
    """A worker that answers as the random policy, whatever model it is told to load."""

    def load(self, job: NodeJob) -> Loaded | NotLoaded:
        return super().load(replace(job, model=MODEL, base=MODEL, weights=None))


# --- whose device and versions ---

GPU: dict[str, Any] = {"device": "cuda", "versions": {"torch": "2.13"}}


def test_the_first_node_decides_on_device_and_versions_and_this_machine_has_no_say() -> None:
    cluster = LocalCluster("gpu-1", "gpu-2", "cpu", make=lambda name: OtherWorker(**GPU if "gpu" in name else {}))
    backend, items = opened(cluster), requests(300)
    assert backend.info.device == "cuda"
    assert texts(answer(backend, items)) == expected(items)
    assert [node.state for node in backend.status()] == ["ready", "ready", "refused"]


@pytest.mark.parametrize("accept", [False, True])
def test_answers_that_there_are_decide_on_device_and_versions(accept: bool) -> None:
    cluster = LocalCluster("cpu", "gpu", make=lambda name: OtherWorker(**GPU if name == "gpu" else {}))
    backend = opened(cluster, accept_engine=accept, recorded=replace(describe(MODEL), **GPU))
    items = requests(200)
    assert texts(answer(backend, items)) == expected(items)
    states = [node.state for node in backend.status()]
    assert states == (["ready", "ready"] if accept else ["refused", "ready"])


# --- what leaves this machine, and what comes back ---


def test_right_answers_leave_for_policies_alone() -> None:
    seen: list[Mapping[str, Sequence[str]]] = []

    class Watching(Answering):
        def prove(self, request: Request, media: MediaReferences) -> Proof | Problem:
            seen.append(request.references)
            return Proof(())

        def exchange(self, orders: Orders) -> Report:
            seen.extend(request.references for request in orders.requests)
            return Report([Generation(request.id, "", "stop") for request in orders.requests])

    for model in ("real/model", MODEL):
        seen.clear()
        cluster = LocalCluster("a", make=lambda name: Watching())
        answer(opened(cluster, job=job_of(model)), requests(20))
        assert {bool(references) for references in seen} == {model == MODEL}


def test_what_was_answered_comes_before_the_end_of_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report and the failure to send a model to another node come at the same time."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr("app.engine.workers.cluster.model_folder_copy.PIECE_BYTES", 1024)

    class Lacking(NodeWorker):
        def load(self, job: NodeJob) -> Loaded | NotLoaded:
            return NotLoaded("it does not have the model", missing="model")

    class Full(LocalCluster):
        answers_came = False

        def poll(self, seconds: float) -> Sequence[tuple[int, Any]]:
            finished = super().poll(seconds)
            self.answers_came = any(isinstance(outcome, Report) and outcome.generations for _, outcome in finished)
            return finished

        def put(self, data: bytes) -> Any:
            if self.answers_came:
                raise ModelError("the cluster takes no more data")
            return data

    cluster = Full("a", make=lambda name: Answering() if name == "a" else Lacking())
    backend, waiting = opened(cluster, job=job_of(str(FOUR_BIT), weights_digest(FOUR_BIT))), requests(3000)
    answers: list[Generation] = []

    def work() -> None:
        while True:
            while len(waiting) and len(backend._dispatcher) < backend.capacity:
                backend.submit(waiting.pop())
            if answers:
                cluster.names = ["a", "late"]
            answers.extend(backend.step())

    with pytest.raises(ModelError, match="no more data"):
        work()
    assert len(answers) == sum(node.answers for node in backend.status())
