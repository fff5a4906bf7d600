"""Work that is divided among processes: the same results, whatever happens to one of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.system import parallel_processes

HANG_S = 120


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_processes, "_cores", lambda: 3)
    folder = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", folder)  # for the functions of this module


def squares(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(number**2, os.getpid()) for number in numbers]


def dies_elsewhere(numbers: Sequence[tuple[int, int]]) -> list[int]:
    for _, home in numbers:
        if os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
    return [number for number, _ in numbers]


def fails(numbers: Sequence[int]) -> list[int]:
    if 4 in numbers:
        raise LookupError(4)
    return list(numbers)


def hang() -> None:
    """Sleep in short steps: a signal that arrives just before a sleep, or in another thread, is handled only after it."""
    for _ in range(20 * HANG_S):
        time.sleep(0.1)


def hangs_when_started(numbers: Sequence[tuple[str, int]]) -> list[int]:
    folder, home = numbers[0]
    if os.getpid() == home:
        hang()
    place = Path(folder) / str(os.getpid())
    try:
        place.touch()
        hang()
    finally:
        place.unlink()
    return []


@pytest.mark.parametrize("count", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("least", [0, 1, 2, 100])
def test_results_have_the_order_of_the_items(count: int, least: int) -> None:
    results = parallel_processes.map_shares(squares, range(count), least)
    assert [square for square, _ in results] == [number**2 for number in range(count)]
    shares = max(1, min(3, count // max(1, least)))
    assert len({process for _, process in results}) == min(shares, count)


def test_a_share_whose_process_is_killed_is_computed_here() -> None:
    items = [(number, os.getpid()) for number in range(9)]
    assert parallel_processes.map_shares(dies_elsewhere, items) == list(range(9))


@pytest.mark.slow
def test_an_error_is_raised_here() -> None:
    with pytest.raises(LookupError):
        parallel_processes.map_shares(fails, range(6))


def test_without_another_process_everything_is_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    results = parallel_processes.map_shares(squares, range(9))
    assert results == [(number**2, os.getpid()) for number in range(9)]


@pytest.mark.slow
def test_an_interrupt_ends_the_others_and_lets_them_clean_up(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from app.system import parallel_processes as parallel\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # the tests may run where it is ignored
        "parallel._cores, parallel._SECONDS = lambda: 3, 60\n"  # nothing is killed on a busy machine
        "from tests.app.system.test_parallel_processes import hangs_when_started as work\n"
        "parallel.map_shares(work, [(sys.argv[1], os.getpid())] * 6)\n"
    )
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.PIPE)
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        assert time.monotonic() - began < HANG_S
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=HANG_S)
    assert time.monotonic() - began < HANG_S, "the others did not wait for their work"
    assert b"KeyboardInterrupt" in errors
    assert list(tmp_path.iterdir()) == []
