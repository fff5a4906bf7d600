"""The question to Metal, with commands that are made up."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlx_backends.models import metal_working_set as metal
from mlx_backends.models.metal_working_set import GIB, metal_working_set

Ask = Callable[[], int | None]


class Mac:
    """A Mac on which ``answer`` is what MLX prints, with a count of how often it was asked."""

    def __init__(self) -> None:
        self.facts = {"hw.memsize": "17179869184", "kern.osversion": "25B78", "iogpu.wired_limit_mb": "0"}
        self.answer: str | Exception = f"{11 * GIB}\n"
        self.code = 0
        self.asked = 0

    def run(self, command: list[str], **options: Any) -> Any:
        assert options["timeout"] <= 20
        if command[0].endswith("sysctl"):
            return SimpleNamespace(returncode=0, stdout=self.facts.get(command[-1], "") + "\n")
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(returncode=self.code, stdout=self.answer)


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mac]:
    mac = Mac()
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("subprocess.run", mac.run)
    monkeypatch.setattr(metal, "_file", lambda: tmp_path / "cache" / "working-set.json")
    yield mac
    metal_working_set.cache_clear()


@pytest.fixture
def ask() -> Ask:
    """The question as a new process asks it."""

    def ask() -> int | None:
        metal_working_set.cache_clear()
        return metal_working_set()

    return ask


def test_metal_is_asked_once_for_a_machine_and_system(mac: Mac, ask: Ask) -> None:
    assert (ask(), ask(), mac.asked) == (11 * GIB, 11 * GIB, 1)
    mac.facts["kern.osversion"] = "26A1"
    mac.answer = f"{12 * GIB}\n"
    assert (ask(), mac.asked) == (12 * GIB, 2)
    mac.facts["iogpu.wired_limit_mb"] = "14000"
    assert (ask(), mac.asked) == (12 * GIB, 3)


def test_a_mac_without_metal_is_asked_once_too(mac: Mac, ask: Ask) -> None:
    mac.answer = "0\n"
    assert (ask(), ask(), mac.asked) == (None, None, 1)


@pytest.mark.parametrize("answer", [subprocess.TimeoutExpired("python", 20), OSError(), "", "-1", "12.5", "a word"])
def test_no_answer_is_not_stored(answer: str | Exception, mac: Mac, ask: Ask) -> None:
    mac.answer = answer
    assert (ask(), ask(), mac.asked) == (None, None, 2)


def test_an_mlx_that_fails_is_asked_again(mac: Mac, ask: Ask) -> None:
    mac.code = 134
    assert (ask(), ask(), mac.asked) == (None, None, 2)


@pytest.mark.parametrize("text", ["", "[]", '{"machine": 1}', '{"machine": "x", "bytes": "7"}', "[" * 9000])
def test_a_damaged_cache_is_asked_over(text: str, mac: Mac, ask: Ask) -> None:
    metal._file().parent.mkdir()
    metal._file().write_text(text)
    assert (ask(), mac.asked) == (11 * GIB, 1)
    assert (ask(), mac.asked) == (11 * GIB, 1)


def test_a_cache_that_cannot_be_written_costs_time_only(mac: Mac, ask: Ask) -> None:
    metal._file().parent.write_text("a file where the folder should be")
    assert (ask(), ask(), mac.asked) == (11 * GIB, 11 * GIB, 2)


def test_elsewhere_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("it was asked"))
    metal_working_set.cache_clear()
    assert metal_working_set() is None


def test_the_question_can_be_asked_of_this_mlx() -> None:
    assert metal._ask() is not None
