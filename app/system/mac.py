"""State of this Mac that slows or endangers a run: memory pressure, swap, other models, low power mode, kernel panics."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

PANIC_FOLDER = Path("/Library/Logs/DiagnosticReports")
_PANIC_DAYS = 30
_SECONDS = 10
_SWAP_BYTES = 10**9  # a Mac that has been up for days has some
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_PRESSURES = {2: "high (macOS warns)", 4: "critical"}
_APPS = (
    ("Ollama", re.compile(r"(?:^|/)ollama (?:runner|llama-server)\b|/Ollama\.app/.*runner")),
    ("LM Studio", re.compile(r"/LM Studio\.app/Contents/MacOS/|/\.lmstudio/")),
    ("llama.cpp", re.compile(r"(?:^|/)llama-(?:server|cli)\b")),
    ("an MLX server", re.compile(r"\bmlx_(?:lm|vlm)(?:\.server| server)\b")),
)


@dataclass(frozen=True, slots=True)
class Panic:
    """A report of a kernel panic: its file's name, and the day it was written."""

    name: str
    day: date


def load_warnings() -> list[str]:
    """Return in a sentence each what takes memory or speed from a run on this Mac now; none elsewhere."""
    if sys.platform != "darwin":
        return []
    return list(
        _warnings(
            _output("/usr/sbin/sysctl", "-n", "vm.swapusage"),
            _output("/usr/sbin/sysctl", "-n", "kern.memorystatus_vm_pressure_level"),
            _output("/bin/ps", "-axo", "command="),
            _output("/usr/bin/pmset", "-g"),
        )
    )


def _warnings(swapusage: str, pressure: str, processes: str, power: str) -> Iterator[str]:
    swap = swap_used(swapusage)
    if swap >= _SWAP_BYTES:
        yield f"{swap / 1e9:.1f} GB of memory is swapped to disk; close other programs, or a run is slow."
    if (level := _PRESSURES.get(pressure_level(pressure))) is not None:
        yield f"memory pressure is {level}; close other programs, or macOS may kill a run's worker."
    apps = model_apps(processes)
    if apps:
        yield f"{' and '.join(apps)} may hold a model in memory; quit it, or unload its model (`ollama stop MODEL`)."
    if low_power_mode(power):
        yield "low power mode is on, which slows a run; `sudo pmset -a lowpowermode 0` ends it."


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


def model_apps(text: str) -> list[str]:
    """Return the names of the running programs that hold models, from ``ps -axo command=``."""
    return [name for name, pattern in _APPS if any(pattern.search(line) for line in text.splitlines())]


def low_power_mode(text: str) -> bool:
    """Return whether ``pmset -g`` says that low power mode is on."""
    return re.search(r"^\s*(?:lowpowermode|powermode)\s+1\b", text, re.MULTILINE) is not None


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


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
