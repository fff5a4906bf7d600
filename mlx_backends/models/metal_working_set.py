"""Metal's recommended working set on this Mac: asked once per machine and system, else estimated from published values."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path

from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.untrusted.system_tools import tool_outputs

GIB = 2**30

_PUBLISHED = ((0, 0.0), (8, 5.33), (16, 11.84), (24, 17.76), (32, 24.96), (36, 27.0), (64, 51.84), (128, 107.5))
"""Memory in GB as Apple counts, and the working set in GiB that Macs of that size report with recent systems.

Published by users of llama.cpp and MLX. Older chips and systems report less: an M1 with 16 GB 10.67 GiB.
"""

_ASK = """
import mlx.core as mx
ask = getattr(mx, "device_info", None) or mx.metal.device_info
print(ask().get("max_recommended_working_set_size", 0) if mx.metal.is_available() else 0)
"""
_SECONDS = 20
_MAX_BYTES = 10_000
_KEYS = ("hw.memsize", "machdep.cpu.brand_string", "kern.osversion", "iogpu.wired_limit_mb")


def estimated_working_set(total: int) -> int:
    """Return the working set in bytes of a Mac with ``total`` bytes of memory, interpolated between published values."""
    size = total / GIB
    for (below, low), (above, high) in pairwise(_PUBLISHED):
        if size <= above:
            return round((low + (high - low) * (size - below) / (above - below)) * GIB)
    above, high = _PUBLISHED[-1]
    return round(total * high / above)


@cache
def metal_working_set() -> int | None:
    """Return the working set in bytes that Metal recommends here; None where no Metal can be asked.

    MLX is asked in a short process of its own, which leaves this one without MLX. The answer is stored in the cache folder,
    and holds for the same memory, chip, system, MLX and limit on wired memory (``iogpu.wired_limit_mb``).
    """
    if sys.platform != "darwin":
        return None
    key = _machine_key()
    stored_value = _read(key)
    if stored_value is None:
        stored_value = _ask()
        if stored_value is not None:
            _write(key, stored_value)
    return stored_value or None


def _ask() -> int | None:
    """Return what Metal recommends, 0 without Metal; None if MLX did not start or was too slow."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = done.stdout.strip()
    return int(text) if done.returncode == 0 and text.isdigit() else None


def _machine_key() -> str:
    try:
        mlx = version("mlx")
    except PackageNotFoundError:
        mlx = "none"
    facts = tool_outputs(("/usr/sbin/sysctl", "-n", name) for name in _KEYS)
    return sha256("\n".join([mlx, *(fact.strip() for fact in facts)]).encode()).hexdigest()


def _file() -> Path:
    return cache_folder() / "working-set.json"


def _read(key: str) -> int | None:
    file = _file()
    try:
        stored_value = parse_json(read_bytes(file.parent, file.name, limit=_MAX_BYTES))
    except (OSError, OutsideJSONError, UnsafeFileError):
        return None
    match stored_value:
        case {"machine": machine, "bytes": int(value)} if machine == key and value >= 0:
            return value
    return None


def _write(key: str, value: int) -> None:
    file = _file()
    with suppress(OSError, UnsafeFileError):
        make_private(file.parent)
        replace_file(file.parent, file.name, json.dumps({"machine": key, "bytes": value}).encode())
