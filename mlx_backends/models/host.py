"""The machine that answers: its chip, memory and operating system, as stored with every run."""

from __future__ import annotations

import platform
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlx_backends.models.memory_estimate import total_memory


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
    system = f"macOS {platform.mac_ver()[0]}" if sys.platform == "darwin" else platform.platform(terse=True)
    return Host(_chip(), total_memory(), system, platform.python_version())


def _chip() -> str:
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        with suppress(OSError):
            brand = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
            if brand:
                return brand
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.machine()
