"""A run's requests on several nodes: the same answers, whatever nodes do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.engine.loop import AnswerLoop
from app.engine.workers.cluster import backend as module
from app.engine.workers.cluster.backend import ClusterBackend
from app.engine.workers.cluster.connect import node_job
from app.engine.workers.cluster.messages import Loaded, NodeJob, NotLoaded
from app.engine.workers.cluster.node import NodeWorker
from app.engine.workers.cluster.seam import WorkerLostError
from app.store.run import RunStore
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Decoding, Generation, Message, Request, Text
from mlx_backends.base import no_media
from mlx_backends.core.distinct_count import prefix_hashes
from mlx_backends.core.reuse import Reuse
from mlx_backends.policy import PolicyBackend
from mlx_backends.registry import describe
from tests.app.store.test_run import META
from tests.support.local_cluster import LocalCluster, OtherWorker, job_of
from tests.support.toy import EvenJudge, Toy, TwoSteps, toy_instances

MODEL = "policy:random"


def requests(count: int) -> list[Request]:
    references = {"image": ("seven",), "text": ("eight",)}
    return [
        Request(f"instance-{number}", 0, (Message("user", (Text(f"{number}?"),)),), Decoding(), references=references)
        for number in range(count)
    ]


def opened(cluster: LocalCluster, *, accept_engine: bool = False, job: NodeJob | None = None) -> ClusterBackend:
    backend = ClusterBackend(
        cluster,
        no_media,
        job or node_job(MODEL, "run"),
        describe(MODEL),
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
        if step == 6:
            cluster.hung.add("b")

    assert texts(answer(backend, items, disturb)) == expected(items)
    assert cluster.released == ["b"]
    assert cluster.now >= module.QUIET_SECONDS + module.HANG_SECONDS


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
    answers = answer(backend, items)
    status = {node.name: node for node in backend.status()}
    assert (status["other"].answers > 0) is accepted
    assert any("other" in remark for remark in backend.remarks) is accepted
    engines = [backend.engine_of(generation.request_id) for generation in answers]
    assert all(engine is not None and engine["model"] == MODEL for engine in engines)


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
    assert cluster.now >= module.PATIENCE_SECONDS


def test_a_node_that_another_run_fills_is_waited_for() -> None:
    cluster = LocalCluster("a", "full")
    cluster.hung.add("full")  # as a worker that has no CPU to begin on
    backend, items = opened(cluster), requests(300)

    def disturb(step: int) -> None:
        cluster.now += module.HANG_SECONDS if step < 4 else 0
        if step == 4:
            assert {node.name: node.state for node in backend.status()}["full"] == "starting"
            cluster.hung.clear()

    assert texts(answer(backend, items, disturb)) == expected(items)
    assert {node.name: node for node in backend.status()}["full"].answers > 0
    assert not cluster.released


def test_nodes_on_which_every_worker_ends_are_given_up() -> None:
    class Crashing(NodeWorker):
        def load(self, job: NodeJob) -> Loaded | NotLoaded:
            raise WorkerLostError("it was killed")

    with pytest.raises(ModelError, match="a:"):
        opened(LocalCluster("a", make=lambda name: Crashing()))


def test_a_node_that_answered_is_used_again_after_a_rest() -> None:
    items = requests(200)
    cluster = LocalCluster("a")
    backend = opened(cluster)
    started: list[float] = []

    def disturb(step: int) -> None:
        """End each worker before it answers, after the first answers and until three of them have ended."""
        before = sum(node.answers for node in backend.status())
        if before and len(started) < module.ATTEMPTS and backend.status()[0].state != "lost":
            cluster.kill("a")
            started.append(cluster.now)

    assert texts(answer(backend, items, disturb)) == expected(items)
    assert len(started) == module.ATTEMPTS
    assert cluster.now > started[-1] + module.REST_SECONDS


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
