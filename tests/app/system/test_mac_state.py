"""The state of a Mac, read from sample outputs of its commands."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from app.system import mac_state

SWAPPED = "total = 3072.00M  used = 2171.25M  free = 900.75M  (encrypted)\n"
NO_SWAP = "total = 0.00M  used = 0.00M  free = 0.00M  (encrypted)\n"
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
    assert mac_state.swap_used(text) == used


@pytest.mark.parametrize(("text", "level"), [("1\n", 1), ("2\n", 2), ("4\n", 4), ("", 1), ("unknown oid", 1)])
def test_memory_pressure(text: str, level: int) -> None:
    assert mac_state.pressure_level(text) == level


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        (PMSET.format(low=0), ""),
        (PMSET.format(low=1), "lowpowermode"),
        (" powermode            1\n", "powermode"),
        (" powermode            2\n", ""),
        ("", ""),
    ],
)
def test_low_power_mode(text: str, setting: str) -> None:
    assert mac_state.low_power_setting(text) == setting


def test_elsewhere_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("it was asked"))
    assert mac_state.load_warnings() == []


def test_recent_panics_are_listed_by_name_and_day(tmp_path: Path) -> None:
    day = 24 * 3600
    for name, age in (("panic-full-new.panic", 1), ("panic-full-old.panic", 29), ("ancient.panic", 31), ("x.ips", 0)):
        file = tmp_path / name
        file.touch(mode=0)
        os.utime(file, (time.time() - age * day,) * 2)
    assert [panic.name for panic in mac_state.recent_panics(tmp_path)] == [
        "panic-full-new.panic",
        "panic-full-old.panic",
    ]
    assert mac_state.recent_panics(tmp_path / "missing") == []


def test_panics_that_a_user_may_not_read_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mac_state.panics_problem(tmp_path) == mac_state.panics_problem(tmp_path / "missing") == ""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert mac_state.panics_problem(tmp_path) == f"unknown, this user cannot read {tmp_path}"
