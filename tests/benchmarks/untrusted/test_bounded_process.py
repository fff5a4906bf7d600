"""A child process that is started before its first request answers like one that is not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from benchmarks.untrusted import bounded_process
from benchmarks.untrusted.bounded_process import BoundedProcess, ChildError, LimitError
from tests.support.data.small import picture


@pytest.fixture
def process() -> Iterator[BoundedProcess]:
    process = BoundedProcess("benchmarks.media.decoder_process")
    yield process
    process.close()


def decoded_size(process: BoundedProcess, folder: str) -> list[int]:
    with open(folder, "w+b") as file:
        file.write(picture(3))
        file.flush()
        (fields, _), *_ = process.ask({"task": "image", "max_pixels": None, "managed": False}, file)
    return list(fields["size"])


@pytest.mark.parametrize("task", ["image", "hologram"])
def test_process_started_in_advance_answers(task: str, process: BoundedProcess, tmp_path: str) -> None:
    process.start({"task": task})
    process.start({"task": task})
    with pytest.raises(ChildError, match="KeyError: 'hologram'"):
        list(process.ask({"task": "hologram"}))
    assert min(decoded_size(process, f"{tmp_path}/picture")) > 0


def test_process_that_died_after_its_start_is_started_again(process: BoundedProcess, tmp_path: str) -> None:
    process.start({"task": "image"})
    assert process._child is not None
    process._child.kill()
    process._child.wait()
    assert min(decoded_size(process, f"{tmp_path}/picture")) > 0


def test_busy_machine_gets_more_time_to_start_the_child(
    process: BoundedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_process, "_MESSAGE_TIMEOUT", 1e-6)
    monkeypatch.setattr(os, "getloadavg", lambda: (1e9, 1e9, 1e9))
    with pytest.raises(ChildError):
        list(process.ask({"task": "hologram"}))


def test_idle_machine_waits_no_longer_for_a_child_that_stands_still(
    process: BoundedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_process, "_MESSAGE_TIMEOUT", 0.01)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    process.start({"task": "hologram"})
    assert process._child is not None
    os.kill(process._child.pid, signal.SIGSTOP)
    with pytest.raises(LimitError):
        list(process.ask({"task": "hologram"}))
