"""Models as a construction asks them: one of this machine at a time, everything once, also after a kill."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.engine.cached_text_models import CachedTextModel, LocalModelSlot
from app.engine.workers.device_lock import device_lock_path
from app.store.file_locks import FileLock
from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Decoding, Generation, Message, Request, Text
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.response_cache import ResponseCache
from tests.support.contra4_writer import writes
from tests.support.data.contra4 import copy_rows, prompt, real_rows
from tests.support.text_models import Interrupted


class Machine:
    """Record of a build: the models it loads, how many at once, and its requests."""

    def __init__(self, most: int | None = None) -> None:
        self.loads: list[str] = []
        self.now: set[str] = set()
        self.asked: Counter[tuple[str, str]] = Counter()
        self.most = most

    def load(self, name: str) -> Backend:
        self.loads.append(name)
        self.now.add(name)
        assert self.now == {name}, "one model at a time"
        return Local(name, self)


class Local(Backend):
    """A rule that takes four requests at a time and, as any model here, asks nothing once it is closed."""

    capacity = 4

    def __init__(self, name: str, machine: Machine) -> None:
        self.info = EngineInfo("rule", name)
        self._machine = machine
        self._waiting: list[Request] = []

    def submit(self, request: Request) -> None:
        assert self.info.model in self._machine.now
        if self._machine.most is not None and sum(self._machine.asked.values()) >= self._machine.most:
            raise Interrupted
        self._machine.asked[self.info.model, request.digest] += 1
        self._waiting.append(request)

    def step(self) -> Sequence[Generation]:
        done, self._waiting = self._waiting, []
        return [Generation(item.id, writes(prompt(item)), "stop") for item in reversed(done)]

    def cancel(self, request_id: str) -> None:
        self._waiting = [item for item in self._waiting if item.id != request_id]

    def close(self) -> None:
        self._machine.now.remove(self.info.model)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalModelSlot]:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: tmp_path / "cache")
    device = LocalModelSlot(lambda holder: pytest.fail(f"waits for {holder}"))
    yield device
    device.close()


def model(name: str, machine: Machine, device: LocalModelSlot, replies: Path) -> CachedTextModel:
    def load() -> Backend:
        return machine.load(name)

    return CachedTextModel(EngineInfo("rule", name), lambda: device.use(name, load), ResponseCache(replies))


NAMES = ("writer", "agrees", "also")


def construct(place: Path, out: Path, of: Callable[[str], CachedTextModel]) -> Build:
    writer, *checkers = (of(name) for name in NAMES)
    options = BuildOptions(writer=writer, checkers=tuple(checkers), per_stratum=3)
    return get_benchmark("contra4").build([("captioned-paper", str(place))], out, options)


@real_rows
def test_a_mixture_is_asked_one_model_after_the_other_and_everything_once(
    tmp_path: Path, device: LocalModelSlot
) -> None:
    machine = Machine()
    result = construct(
        copy_rows(tmp_path / "rows", 40),
        tmp_path / "out",
        lambda name: model(name, machine, device, tmp_path / "replies"),
    )
    candidates = [json.loads(line) for line in (result.path / "candidates.jsonl").read_text("utf-8").splitlines()]
    permutations = sum({2: 2, 3: 6, 4: 24}[candidate["size"]] for candidate in candidates)
    assert set(machine.asked.values()) == {1}
    asked = Counter(name for name, _ in machine.asked)
    assert asked["agrees"] == asked["also"] == permutations
    assert asked["writer"] == permutations + 2 * len(candidates) + 1, "its one question has one category"
    assert machine.loads == [*NAMES, "writer"], (
        "a wave of all sizes, in which each model is loaded once; then categories"
    )


@real_rows
def test_a_killed_mixture_goes_on_without_asking_or_loading_again(tmp_path: Path, device: LocalModelSlot) -> None:
    place = copy_rows(tmp_path / "rows", 40)
    whole = Machine()
    first = construct(place, tmp_path / "one", lambda name: model(name, whole, device, tmp_path / "whole"))
    total = sum(whole.asked.values())
    device.close()
    asked, loads = Counter[tuple[str, str]](), []
    for most in (7, total // 3, total // 2, None):
        machine = Machine(most)
        try:
            result = construct(place, tmp_path / "two", lambda name: model(name, machine, device, tmp_path / "replies"))  # noqa: B023 - used at once
        except Interrupted:
            assert not (tmp_path / "two").exists()
        device.close()
        asked += machine.asked
        loads.append(machine.loads)
    assert set(asked) == set(whole.asked)
    assert sum(asked.values()) <= total + 3 * Local.capacity, "of a kill, what was under way is asked again"
    assert loads[0] == ["writer"]
    assert loads[-1] == ["also", "writer"], (
        "what was said is kept: the second is not even loaded, the first for categories"
    )
    assert result.digest == first.digest


def free() -> bool:
    """Whether nobody holds the device."""
    device_lock_path().parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(device_lock_path())
    taken = lock.acquire("somebody else", patience=0)
    if taken:
        lock.release()
    return taken


def test_models_on_a_cluster_leave_the_device_to_its_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: tmp_path / "cache")
    device, machine = LocalModelSlot(lambda holder: pytest.fail(f"waits for {holder}"), elsewhere=True), Machine()
    device.hold()  # as an embedder does, which stays on this machine
    assert not free()
    request = Request("a", 0, (Message("user", (Text("Generated Question:"),)),), Decoding())
    assert list(model("one", machine, device, tmp_path / "replies").generate([request]))
    assert free(), "a node, which may be this machine, needs it"
    device.hold()
    assert not machine.now
    device.close()


def test_the_device_is_held_from_the_first_load_to_the_end(tmp_path: Path, device: LocalModelSlot) -> None:
    machine = Machine()
    result = model("one", machine, device, tmp_path / "replies")
    request = Request("a", 0, (Message("user", (Text("Generated Question:"),)),), Decoding())
    assert free(), "nothing was asked yet"
    assert [reply.finish_reason for reply in result.generate([request])] == ["stop"]
    assert not free()
    device.close()
    assert free()
    assert not machine.now
    assert [reply.text for reply in result.generate([request])] == [writes("Generated Question:")]
    assert machine.loads == ["one"], "it is kept, so that the device is not needed"
    assert free()


def test_replies_of_nodes_are_cached_under_their_versions(device: LocalModelSlot, tmp_path: Path) -> None:
    """Not under this machine's, whose own model may reply otherwise."""

    class Yes(Local):
        def step(self) -> Sequence[Generation]:
            done, self._waiting = self._waiting, []
            return [Generation(item.id, "yes", "stop") for item in done]

    machine, replies = Machine(), ResponseCache(tmp_path / "replies.sqlite")
    item = Request("r", 0, (Message("user", (Text("?"),)),), Decoding())

    def requests_made(versions: dict[str, str]) -> int:
        """The number of requests that a model gets whose backend has these versions."""

        def load() -> Backend:
            machine.now.add("a")
            backend = Yes("a", machine)
            backend.info = EngineInfo("rule", "a", versions=versions)
            return backend

        before = machine.asked.total()
        asking = CachedTextModel(EngineInfo("rule", "a"), lambda: device.use("a", load), replies)
        assert [reply.text for reply in asking.generate([item])] == ["yes"]
        device.close()
        return machine.asked.total() - before

    assert [requests_made(versions) for versions in ({"mlx": "1"}, {"mlx": "1"}, {}, {})] == [1, 0, 1, 0]
