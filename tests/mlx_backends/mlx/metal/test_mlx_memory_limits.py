"""MLX's limits and its cache, on devices that are made up: what is set, when it is given back, what counts as short of memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.vocabulary import Text
from mlx_backends.base import Backend
from mlx_backends.core.metal_faults import out_of_memory
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits, MemoryUsage
from mlx_backends.models import memory_and_cache_sizes
from mlx_backends.models.metal_working_set import GIB
from tests.mlx_backends.conftest import Pictures, answer, request_of

WORKING_SET = 10 * GIB
MAC = {"max_recommended_working_set_size": WORKING_SET, "memory_size": 16 * GIB}


class Device:
    """The memory functions of ``mlx.core``, for a device with or without ``metal``, with a record of calls."""

    def __init__(self, *, metal: bool = True, refuses: bool = False) -> None:
        self.metal = SimpleNamespace(is_available=lambda: metal)
        self.wired: int | None = None
        self.cache_limit: int | None = None
        self.peak = self.active = self.cache = 0
        self.cleared = 0
        self._refuses = refuses

    def set_wired_limit(self, limit: int) -> int:
        if self._refuses:
            raise ValueError("[metal::set_wired_limit] Setting a wired limit larger than the maximum working set size")
        self.wired = limit
        return 0

    def set_cache_limit(self, limit: int) -> int:
        self.cache_limit = limit
        return 0

    def get_peak_memory(self) -> int:
        return self.peak

    def get_active_memory(self) -> int:
        return self.active

    def get_cache_memory(self) -> int:
        return self.cache

    def clear_cache(self) -> None:
        self.cleared += 1
        self.cache = 0


def test_metal_wires_the_working_set_and_bounds_the_cache() -> None:
    device = Device()
    MemoryLimits(device, MAC).set()
    assert (device.wired, device.cache_limit) == (WORKING_SET, WORKING_SET // 8)


@pytest.mark.parametrize(("value", "wires"), [("1", False), ("yes", False), ("0", True), ("off", True), ("", True)])
def test_the_switch_leaves_wired_memory_alone(value: str, wires: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RASHOMON_NO_WIRED_LIMIT", value)
    device = Device()
    MemoryLimits(device, MAC).set()
    assert (device.wired == WORKING_SET) is wires
    assert device.cache_limit == WORKING_SET // 8
    device.set_wired_limit(7)  # as mlx-vlm and mlx-lm do
    assert (device.wired == 7) is wires


def test_cache_is_bounded_if_wiring_is_refused() -> None:
    device = Device(refuses=True)
    MemoryLimits(device, MAC).set()
    assert (device.wired, device.cache_limit) == (None, WORKING_SET // 8)


@pytest.mark.parametrize("metal", [True, False])
@pytest.mark.parametrize("info", [{}, {"architecture": "x86_64"}, {"max_recommended_working_set_size": 0}])
def test_no_limits_are_set_without_metal(metal: bool, info: dict[str, Any]) -> None:
    device = Device(metal=metal)
    MemoryLimits(device, info).set()
    assert (device.wired, device.cache_limit) == (None, None)


@pytest.mark.parametrize(
    ("active", "cache", "cleared"),
    [
        (5.0, 3.9, False),  # room is left
        (5.0, 4.1, True),
        (8.9, 0.2, True),
        (9.5, 0.05, False),  # there is nothing worth giving back
        (0.0, 9.1, True),
    ],
)
def test_cache_is_released_near_the_working_set(active: float, cache: float, cleared: bool) -> None:
    device = Device()
    device.active, device.cache = int(active * GIB), int(cache * GIB)
    assert MemoryLimits(device, MAC).relieve() is cleared
    assert device.cleared == cleared


def test_generation_reports_mlx_memory(tiny: Path, pictures: Pictures) -> None:
    backend = load_backend(str(tiny), pictures.path)
    got = answer(backend, request_of(Text("Hello.")))
    assert got.peak_memory is not None
    assert got.active_memory is not None
    assert got.cache_memory is not None
    assert 100_000 < got.active_memory <= got.peak_memory, "the weights are in use when an answer is done"
    assert got.cache_memory >= 0


@pytest.mark.parametrize(("working_set", "gives"), [(10**3, True), (10**12, False)])
def test_cache_is_released_after_each_answer_under_pressure(
    working_set: int, gives: bool, tiny: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    relieve, gave = MemoryLimits.relieve, list[bool]()

    def noted(limits: MemoryLimits) -> bool:
        gave.append(relieve(limits))
        return gave[-1]

    monkeypatch.setattr(
        memory_and_cache_sizes, "device_info", lambda: {"max_recommended_working_set_size": working_set}
    )
    monkeypatch.setattr(MemoryLimits, "relieve", noted)
    backend: Backend = load_backend(str(tiny), pictures.path, force=True)
    for number in (1, 2):
        got = answer(backend, request_of(Text("Hello.")))
        assert got.error is None
        assert (got.cache_memory or 0) > 10**2, "there was something to give back"
        assert gave == [gives] * number


def test_memory_usage_is_read() -> None:
    device = Device()
    device.peak, device.active, device.cache = 3, 2, 1
    assert MemoryLimits(device, MAC).usage() == MemoryUsage(3, 2, 1)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory (00000008)"),
        RuntimeError("[METAL] Command buffer execution failed: kIOGPUCommandBufferCallbackErrorOutOfMemory"),
        RuntimeError("[metal::malloc] Attempting to allocate 9 bytes which is greater than the maximum allowed size"),
        RuntimeError("[malloc_or_wait] Unable to allocate 123 bytes."),
        RuntimeError("[metal::malloc] Resource limit (499000) exceeded."),
        RuntimeError("cudaMallocAsync failed: out of memory"),
    ],
)
def test_out_of_memory_is_recognised_by_its_message(error: Exception) -> None:
    assert out_of_memory(error)
    outer = RuntimeError("the batch failed")
    outer.__cause__ = error
    assert out_of_memory(outer)


@pytest.mark.parametrize("error", [ValueError("out of memory"), RuntimeError("shapes differ"), KeyboardInterrupt()])
def test_other_errors_are_not_out_of_memory(error: BaseException) -> None:
    assert not out_of_memory(error)
