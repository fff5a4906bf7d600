"""State of this Mac that slows or endangers a run: memory pressure, swap, other models, low power mode, kernel panics."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from app.system.local_servers import LocalServer, running_servers
from benchmarks.untrusted.system_tools import tool_outputs

PANIC_FOLDER = Path("/Library/Logs/DiagnosticReports")
_PANIC_DAYS = 30
_SWAP_BYTES = 10**9  # a Mac that has been up for days has some
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_PRESSURES = {2: "high (macOS warns)", 4: "critical"}
_COMMANDS = {
    "swap": ("/usr/sbin/sysctl", "-n", "vm.swapusage"),
    "memory pressure": ("/usr/sbin/sysctl", "-n", "kern.memorystatus_vm_pressure_level"),
    "other models in memory": ("/bin/ps", "-axo", "command="),
    "low power mode": ("/usr/bin/pmset", "-g"),
}


@dataclass(frozen=True, slots=True)
class Panic:
    """A report of a kernel panic: its file's name, and the day it was written."""

    name: str
    day: date


def load_warnings() -> list[str]:
    """Return in a sentence each what takes memory or speed from a run on this Mac now; none elsewhere."""
    return load_state()[0]


def load_state() -> tuple[list[str], str]:
    """Return :func:`load_warnings`, and a phrase on what is unknown, because macOS's tools did not answer; "" if nothing is."""
    if sys.platform != "darwin":
        return [], ""
    outputs = tool_outputs(_COMMANDS.values())
    silent = [topic for topic, output in zip(_COMMANDS, outputs, strict=True) if not output.strip()]
    return list(_warnings(*outputs)), f"macOS did not tell: {', '.join(silent)}" if silent else ""


def _warnings(swapusage: str, pressure: str, processes: str, power: str) -> Iterator[str]:
    swap = swap_used(swapusage)
    if swap >= _SWAP_BYTES:
        yield f"{swap / 1e9:.1f} GB of memory is swapped to disk; close other programs, or a run is slow."
    if (level := _PRESSURES.get(pressure_level(pressure))) is not None:
        yield f"memory pressure is {level}; close other programs, or macOS may kill a run's worker."
    if servers := running_servers(processes):
        yield _server_warning(servers)
    if setting := low_power_setting(power):
        yield f"low power mode is on, which slows a run; `sudo pmset -a {setting} 0` ends it."


def _server_warning(servers: Sequence[LocalServer]) -> str:
    *others, last = (server.name for server in servers)
    names = f"{', '.join(others)} and {last}" if others else last
    them, models = ("them", "their models") if others else ("it", "its model")
    commands = ", ".join(f"`{server.unload}`" for server in servers if server.unload)
    unload = f", or unload {models} ({commands})" if commands else ""
    return f"{names} may hold a model in memory; quit {them}{unload}."


def swap_used(text: str) -> int:
    """Return the bytes of swap in use, from ``sysctl -n vm.swapusage``; 0 if it does not tell."""
    match = re.search(r"used = ([\d.,]+)([KMGT])", text)
    if match is None:
        return 0
    with suppress(ValueError):
        return round(float(match[1].replace(",", ".")) * _UNITS[match[2]])
    return 0


def pressure_level(text: str) -> int:
    """Return the kernel's level of memory pressure: 1 is normal, 2 a warning, 4 critical; 1 if it does not tell."""
    return int(text) if text.strip().isdigit() else 1


def low_power_setting(text: str) -> str:
    """Return the setting by which ``pmset -g`` says that low power mode is on; "" if it is off.

    Macs that also have a high power mode call it ``powermode``: 0 is automatic, 1 low, 2 high.
    """
    match = re.search(r"^\s*(lowpowermode|powermode)\s+1\b", text, re.MULTILINE)
    return match[1] if match else ""


def panics_problem(folder: Path = PANIC_FOLDER) -> str:
    """Return why :func:`recent_panics` may miss some; "" if it does not. Only administrators of a Mac can read their folder."""
    return f"unknown, this user cannot read {folder}" if folder.exists() and not os.access(folder, os.R_OK) else ""


def recent_panics(folder: Path = PANIC_FOLDER) -> Sequence[Panic]:
    """Return the kernel panics of the last 30 days, newest first. Their reports are not read."""
    since = time.time() - _PANIC_DAYS * 24 * 3600
    panics: list[tuple[float, Panic]] = []
    with suppress(OSError):
        for file in folder.glob("*.panic"):
            with suppress(OSError):
                change_time = file.stat().st_mtime
                if change_time >= since:
                    panics.append((change_time, Panic(file.name, date.fromtimestamp(change_time))))
    return [panic for _, panic in sorted(panics, key=lambda entry: -entry[0])]
