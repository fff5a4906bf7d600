"""The machine that answers: its chip, memory and operating system, as stored with every run."""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.untrusted.system_tools import tool_output
from mlx_backends.models.memory_and_cache_sizes import total_memory


@dataclass(frozen=True, slots=True)
class Host:
    """A machine: ``memory`` in bytes; ``chip`` as its maker names it, or the architecture where that is unknown."""

    chip: str
    memory: int
    system: str
    python: str


@cache
def host_info() -> Host:
    """Return this machine's properties."""
    return Host(_chip(), total_memory(), _system(), platform.python_version())


def _system() -> str:
    if sys.platform == "darwin":
        # Python built for an older system is told another version: 16 on macOS 26.
        version = tool_output("/usr/bin/sw_vers", "-productVersion").strip()
        return f"macOS {version or platform.mac_ver()[0]}"
    return platform.platform(terse=True)


def _chip() -> str:
    if sys.platform == "darwin":
        if brand := tool_output("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string").strip():
            return brand
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.machine()
