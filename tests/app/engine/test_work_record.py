"""The record of a run's work: its pace, and what was computed, over several workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from app.engine.answer_loop import AnswerLoop
from app.engine.work_record import WorkRecord
from app.report.progress.run_speed import lines, read_speed
from app.store.run_facts import WORK_KEY, answer_pace
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.vocabulary import Decoding, Generation
from mlx_backends.core.distinct_count import DistinctCount, prefix_hashes
from mlx_backends.core.saved_work import Reuse
from tests.app.store.test_run_store import META, make
from tests.support.toy import Scripted, Toy, toy_instances

SHARED = np.arange(90)
"""The tokens that all prompts begin with."""


class Reading(Scripted):
    """A backend that counts prompts of a hundred tokens each: the last ten are the instance's own."""

    def __init__(self, capacity: int = 4) -> None:
        super().__init__(capacity)
        self._reuse = Reuse()
        self._read_shared = False

    @property
    def reuse(self) -> Reuse:
        return self._reuse

    def step(self) -> Sequence[Generation]:
        finished = super().step()
        for generation in finished:
            number = sum(map(ord, generation.request_id))
            self._reuse.read(prefix_hashes(np.concatenate([SHARED, 1000 * number + np.arange(10)])), ["0" * 64])
            self._reuse.computed_tokens += 10 if self._read_shared else 100
            self._reuse.answers += 1
            self._read_shared = True
        return finished


class Clock:
    """A clock that moves on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def stop_after(looks: int) -> Callable[[], bool]:
    remaining = iter(range(looks))
    return lambda: next(remaining, None) is None


def work(folder: Path, stop: Callable[[], bool] = lambda: False, *, save: bool = True) -> None:
    """Let a worker answer; without ``save``, it is killed at the end."""
    with RunStore.open(folder) as store:
        store.use_engine({"engine": "scripted"})
        backend = Reading()
        record = WorkRecord(store, backend)
        AnswerLoop(store, backend, DirectProtocol(Decoding()), [], Toy(), stop=stop, work=record).run()
        if save:
            record.save()


def test_workers_that_resume_a_run_count_its_distinct_tokens_once(tmp_path: Path) -> None:
    make(tmp_path, 40).close()
    work(tmp_path, stop_after(4))
    with RunStore.open(tmp_path) as store:
        done = len(store.meta(WORK_KEY)), sum(progress.done for progress in store.progress())
        assert done[0] == 1
        assert 0 < done[1] < 40
    work(tmp_path)
    speed = read_speed(tmp_path)
    assert speed.work["distinct_tokens"] == 90 + 10 * 40
    assert speed.work["distinct_images"] == 1
    assert speed.work["computed_tokens"] == 2 * 90 + 10 * 40, "what the second worker computed again shows"
    assert (speed.counted, speed.times.generated, speed.separate) == (40, 40, 0)
    with RunStore.open(tmp_path) as store:
        store.repeat()
    work(tmp_path)
    speed = read_speed(tmp_path)
    assert speed.work["distinct_tokens"] == 90 + 10 * 40, "the same prompts once more"
    assert speed.work["computed_tokens"] == 3 * 90 + 10 * 80
    assert (speed.counted, speed.times.generated, speed.times.answers) == (80, 80, 40)
    assert not any("counted" in line for line in lines(speed))


@pytest.mark.parametrize("content", [None, b"", b"\0" * 100])
def test_lost_or_damaged_list_of_prompts_is_reported(content: bytes | None, tmp_path: Path) -> None:
    make(tmp_path, 40).close()
    work(tmp_path, stop_after(4))
    (tmp_path / "prompts.seen").unlink()
    if content is not None:
        (tmp_path / "prompts.seen").write_bytes(content)
    work(tmp_path)
    speed = read_speed(tmp_path)
    assert (speed.separate, speed.work["distinct_tokens"]) == (1, 2 * 90 + 10 * 40)
    assert any("1 of the run's workers" in line for line in lines(speed))


def test_killed_worker_leaves_the_counts_of_what_it_had_answered(tmp_path: Path) -> None:
    make(tmp_path, 40).close()
    work(tmp_path, stop_after(4), save=False)
    speed = read_speed(tmp_path)
    assert speed.counted is not None
    assert 0 < speed.counted <= speed.times.generated
    assert speed.work["prompts"] == speed.counted
    work(tmp_path)
    speed = read_speed(tmp_path)
    assert speed.counted is not None
    if speed.counted < speed.times.generated:
        assert any(f"{speed.counted} of 40 answers" in line for line in lines(speed))


def test_engine_that_counts_nothing_has_a_pace_and_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DistinctCount, "__init__", lambda counter: pytest.fail("a counter takes 2 MiB"))
    with make(tmp_path, 8) as store:
        backend = Scripted(4)
        record = WorkRecord(store, backend)
        AnswerLoop(store, backend, DirectProtocol(Decoding()), [], Toy(), work=record).run()
        record.save()
        assert answer_pace(store)[0] == 8
    assert read_speed(tmp_path).work == {}


def test_record_is_stored_rarely_where_storing_takes_long(tmp_path: Path) -> None:
    class Slow(RunStore):
        stored = 0

        def commit(self, answers: Sequence[NewAnswer], values: object = None) -> None:
            Slow.stored += values is not None
            super().commit(answers, values)  # type: ignore[arg-type]

    with Slow.create(tmp_path, META, toy_instances(200)) as store:
        store.use_engine({"engine": "scripted"})
        backend = Reading()
        record = WorkRecord(store, backend, Clock())
        AnswerLoop(store, backend, DirectProtocol(Decoding()), [], Toy(), work=record).run()
        assert 1 <= Slow.stored <= 3
        record.save()
    assert read_speed(tmp_path).counted == 200


def test_pauses_are_no_part_of_the_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = Clock(), iter(range(1000))

    def sleep(seconds: float) -> None:
        clock.now += 3600

    monkeypatch.setattr("app.engine.answer_loop.time.sleep", sleep)
    with make(tmp_path, 40) as store:
        backend = Reading()
        record = WorkRecord(store, backend, clock)
        loop = AnswerLoop(store, backend, DirectProtocol(Decoding()), [], Toy(), work=record)
        loop.paused = lambda: 3 < next(looks) < 20
        loop.run()
        record.save()
        answers, seconds = answer_pace(store)
    assert answers == 40
    assert 0 < seconds < 600 < 3600 < clock.now


# --- runs of earlier versions, and of people ---------------------------------------------------------


def commits(folder: Path, times: Sequence[float], each: int) -> RunStore:
    """A run with ``each`` answers committed at each of these seconds, without a record."""
    store = make(folder, len(times) * each)
    instances = toy_instances(len(times) * each)
    for number, at in enumerate(times):
        ordinals = range(number * each, (number + 1) * each)
        store.commit(
            [
                NewAnswer(
                    n,
                    instances[n].condition,
                    0,
                    "d" * 64,
                    Generation(f"{n}#0", "x", "stop"),
                    True,
                    finished_at=1e9 + at,
                )
                for n in ordinals
            ]
        )
    return store


@pytest.mark.parametrize(
    ("times", "each", "per_minute"),
    [
        ([90.0 * n for n in range(12)], 8, 8 / 1.5),
        ([*(0.5 * n for n in range(50)), *(8 * 3600 + 0.5 * n for n in range(50))], 1, 120.0),
        ([*(90.0 * n for n in range(20)), *(30_000 + 90.0 * n for n in range(20))], 8, 8 / 1.5),
        ([90.0 * (n // 8) + 0.01 * (n % 8) for n in range(96)], 1, 8 / 1.5),
        ([100 * (n // 8) + (60.0, 62, 64, 70, 80, 90, 95, 100)[n % 8] for n in range(64)], 1, 4.8),
        ([0.0, 50.0, 100.0], 1, 1.2),
        ([0.0, 2.0, 4.0, 4000.0, 4002.0, 90_000.0, 90_002.0], 1, 30.0),
    ],
    ids=[
        "slow batches",
        "a pause",
        "slow and a pause",
        "batches of single answers",
        "uneven",
        "few",
        "few, two pauses",
    ],
)
def test_pace_follows_from_the_times_of_commits(
    times: Sequence[float], each: int, per_minute: float, tmp_path: Path
) -> None:
    with commits(tmp_path, times, each) as store:
        answers, seconds = answer_pace(store)
    assert 60 * answers / seconds == pytest.approx(per_minute, rel=0.1)
    assert read_speed(tmp_path).per_minute == pytest.approx(60 * answers / seconds)


def test_a_single_commit_has_no_pace(tmp_path: Path) -> None:
    commits(tmp_path, [0.0], 8).close()
    assert read_speed(tmp_path).per_minute is None
