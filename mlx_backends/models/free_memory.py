"""Memory that is free now, without swapping anything out."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from benchmarks.untrusted.system_tools import tool_output

_VM_STAT = "/usr/bin/vm_stat"
_CONTAINER = Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Return the bytes that are unused or hold only what is on disk too; in a container, those of its limit. None if unknown."""
    if sys.platform == "darwin":
        return mac_free_memory(tool_output(_VM_STAT))
    try:
        machine = linux_free_memory(Path("/proc/meminfo").read_text())
    except OSError:
        return None
    container = container_free_memory(_CONTAINER)
    return machine if container is None or machine is None else min(machine, container)


def mac_free_memory(text: str) -> int | None:
    """Return the free bytes in the output of ``vm_stat``: pages that are free, of files, or purgeable."""
    page = re.search(r"page size of (\d+) bytes", text)
    counts = [re.search(rf"^{name}:\s+(\d+)\.", text, re.MULTILINE) for name in ("Pages free", "File-backed pages")]
    purgeable = re.search(r"^Pages purgeable:\s+(\d+)\.", text, re.MULTILINE)
    if page is None or None in counts:
        return None
    return int(page[1]) * sum(int(match[1]) for match in (*counts, purgeable) if match is not None)


def linux_free_memory(text: str) -> int | None:
    """Return the free bytes in ``/proc/meminfo``."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return None if match is None else int(match[1]) * 1024


def container_free_memory(folder: Path) -> int | None:
    """Return the free bytes of a Linux container with a memory limit, whose control group is in ``folder``."""
    values = dict[str, int]()
    with suppress(OSError, ValueError):
        values = {name: int((folder / f"memory.{name}").read_text()) for name in ("max", "current")}
        values["files"] = _entries((folder / "memory.stat").read_text()).get("inactive_file", 0)
    if "current" not in values:  # without a limit, memory.max is no number
        return None
    return max(0, values["max"] - values["current"] + values.get("files", 0))


def _entries(text: str) -> Mapping[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
