"""Free memory, and what caches get of it next to a 4B model."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mlx_backends.mlx.metal import mlx_memory_limits
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
from mlx_backends.models.free_memory import (
    container_free_memory,
    free_memory,
    linux_free_memory,
    mac_free_memory,
)
from mlx_backends.models.memory_and_cache_sizes import CacheSizes, cache_sizes, least_caches, required_memory, row_bytes
from mlx_backends.models.metal_working_set import GIB
from tests.mlx_backends.mlx.metal.test_mlx_memory_limits import Device
from tests.mlx_backends.mlx.test_batch_width import QWEN_4B, mac

VM_STAT = """\
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               5474.
Pages active:                           310451.
Pages inactive:                         308157.
Pages speculative:                        1211.
Pages throttled:                             0.
Pages wired down:                       118391.
Pages purgeable:                          4712.
"Translation faults":               1288317205.
Pages copy-on-write:                  62401853.
File-backed pages:                      222514.
Anonymous pages:                        397305.
Pages stored in compressor:             610123.
Pages occupied by compressor:           248120.
"""


def test_on_a_mac_pages_of_files_are_free() -> None:
    assert mac_free_memory(VM_STAT) == 16384 * (5474 + 222514 + 4712)
    assert mac_free_memory("") is None
    assert mac_free_memory(VM_STAT.replace("File-backed", "Other")) is None


def test_a_mac_that_does_not_tell_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(subprocess, "run", missing)
    assert free_memory() is None


def test_on_linux_a_container_has_no_more_than_its_limit(tmp_path: Path) -> None:
    assert linux_free_memory("MemTotal:  16000 kB\nMemFree: 100 kB\nMemAvailable:  9000 kB\n") == 9000 * 1024
    assert linux_free_memory("MemTotal:  16000 kB\n") is None
    assert container_free_memory(tmp_path) is None
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert container_free_memory(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    assert container_free_memory(tmp_path) == 300
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 200\n")
    assert container_free_memory(tmp_path) == 500


def test_this_machine_tells() -> None:
    free = free_memory()
    assert free is None or free > 1 << 20


WEIGHTS, PROMPT = 3_400_000_000, 1280
ROWS = 2 * row_bytes(QWEN_4B, PROMPT, 128, 64)


def sizes(gigabytes: int, others: float, monkeypatch: pytest.MonkeyPatch) -> tuple[CacheSizes, int]:
    """The caches of a loaded 4B model in 4 bits, if other programs use ``others`` GiB, and what it may take."""
    device = Device()
    device.active = WEIGHTS
    free = max(0, int((gigabytes - others) * GIB) - WEIGHTS)
    monkeypatch.setattr(mlx_memory_limits, "free_memory", lambda: free)
    available = MemoryLimits(device, mac(gigabytes)).available()
    return cache_sizes(QWEN_4B, WEIGHTS, PROMPT, ROWS, available), available


@pytest.mark.parametrize(
    ("gigabytes", "others", "prompts", "images"),
    [
        (8, 2, 4, 4),
        (8, 4, 4, 4),
        (16, 3, 21, 64),
        (16, 9, 7, 29),
        (16, 12, 4, 4),
        (64, 5, 64, 64),
        (64, 50, 27, 64),
        (64, 60, 4, 4),
    ],
)
def test_caches_of_a_4b_model_take_what_is_free(
    gigabytes: int, others: float, prompts: int, images: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    least = least_caches(QWEN_4B, PROMPT)
    assert least.prefixes == 4 * 147_456 * PROMPT
    caches, available = sizes(gigabytes, others, monkeypatch)
    assert (caches.prefixes * 4 // least.prefixes, caches.features * 4 // least.features) == (prompts, images)
    assert caches == least or required_memory(WEIGHTS) + ROWS + caches.total <= available
    assert available <= mac(gigabytes)["max_recommended_working_set_size"]
    unknown = MemoryLimits(Device(), mac(gigabytes))
    monkeypatch.setattr(mlx_memory_limits, "free_memory", lambda: None)
    assert unknown.available() == unknown.limit


def test_memory_of_a_gpu_of_its_own_is_not_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlx_memory_limits, "free_memory", lambda: 1)
    assert MemoryLimits(Device(metal=False), {"total_memory": 80 * GIB}).available() == 80 * GIB
