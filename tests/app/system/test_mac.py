"""The state of a Mac, read from sample outputs of its commands."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from app.system import mac

SWAPPED = "total = 3072.00M  used = 2171.25M  free = 900.75M  (encrypted)\n"
NO_SWAP = "total = 0.00M  used = 0.00M  free = 0.00M  (encrypted)\n"
PROCESSES = """/sbin/launchd
/System/Library/CoreServices/loginwindow.app/Contents/MacOS/loginwindow console
/Applications/Safari.app/Contents/MacOS/Safari
python -m app.main --batch --model mlx-community/Qwen3-VL-4B-Instruct-4bit
"""
OLLAMA = (
    "/Applications/Ollama.app/Contents/Resources/ollama runner --ollama-engine --model /Users/me/.ollama/models/x\n"
)
OLLAMA_IDLE = (
    "/Applications/Ollama.app/Contents/MacOS/Ollama hidden\n/Applications/Ollama.app/Contents/Resources/ollama serve\n"
)
LM_STUDIO = "/Applications/LM Studio.app/Contents/MacOS/LM Studio\n"
LM_SERVER = "/opt/homebrew/bin/python3 -m mlx_lm.server --model x\n"
PMSET = """System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 hibernatefile        /var/vm/sleepimage
 powernap             1
 networkoversleep     0
 disksleep            10
 sleep                1 (sleep prevented by powerd, bluetoothd)
 hibernatemode        3
 ttyskeepawake        1
 displaysleep         10
 tcpkeepalive         1
 lowpowermode         {low}
 womp                 1
"""


@pytest.mark.parametrize(
    ("text", "used"),
    [
        (SWAPPED, 2_276_720_640),
        (NO_SWAP, 0),
        ("total = 4,00G  used = 1,50G  free = 2,50G\n", 3 * 2**29),
        ("", 0),
        ("used = ...M", 0),
    ],
)
def test_swap(text: str, used: int) -> None:
    assert mac.swap_used(text) == used


@pytest.mark.parametrize(("text", "level"), [("1\n", 1), ("2\n", 2), ("4\n", 4), ("", 1), ("unknown oid", 1)])
def test_memory_pressure(text: str, level: int) -> None:
    assert mac.pressure_level(text) == level


@pytest.mark.parametrize(
    ("text", "apps"),
    [
        (PROCESSES, []),
        (PROCESSES + OLLAMA_IDLE, []),
        (PROCESSES + OLLAMA, ["Ollama"]),
        (PROCESSES + LM_STUDIO, ["LM Studio"]),
        (OLLAMA + LM_STUDIO + LM_SERVER, ["Ollama", "LM Studio", "an MLX server"]),
        ("/opt/homebrew/bin/llama-server -m x.gguf\n", ["llama.cpp"]),
    ],
)
def test_programs_that_hold_models(text: str, apps: list[str]) -> None:
    assert mac.model_apps(text) == apps


@pytest.mark.parametrize(
    ("text", "on"),
    [(PMSET.format(low=0), False), (PMSET.format(low=1), True), (" powermode            1\n", True), ("", False)],
)
def test_low_power_mode(text: str, on: bool) -> None:
    assert mac.low_power_mode(text) is on


def test_each_thing_is_one_line_and_names_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {"vm.swapusage": SWAPPED, "kern.memorystatus_vm_pressure_level": "2\n", "command=": OLLAMA}

    def run(command: tuple[str, ...], **_: Any) -> Any:
        return subprocess.CompletedProcess(command, 0, outputs.get(command[-1], PMSET.format(low=1)), "")

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("subprocess.run", run)
    warnings = mac.load_warnings()
    assert len(warnings) == 4
    assert not any("\n" in warning or "/Users" in warning for warning in warnings)


@pytest.mark.parametrize("error", [OSError(), subprocess.TimeoutExpired("sysctl", 10)])
def test_a_mac_that_does_not_tell_warns_of_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> Any:
        raise error

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("subprocess.run", run)
    assert mac.load_warnings() == []


def test_elsewhere_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("it was asked"))
    assert mac.load_warnings() == []


def test_recent_panics_are_listed_by_name_and_day(tmp_path: Path) -> None:
    day = 24 * 3600
    for name, age in (("panic-full-new.panic", 1), ("panic-full-old.panic", 29), ("ancient.panic", 31), ("x.ips", 0)):
        file = tmp_path / name
        file.touch(mode=0)
        os.utime(file, (time.time() - age * day,) * 2)
    assert [panic.name for panic in mac.recent_panics(tmp_path)] == ["panic-full-new.panic", "panic-full-old.panic"]
    assert mac.recent_panics(tmp_path / "missing") == []
