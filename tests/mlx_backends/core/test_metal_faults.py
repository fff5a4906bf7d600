"""Classes of Metal faults, by the messages of macOS."""

from __future__ import annotations

import pytest

from mlx_backends.core.metal_faults import DeviceLostError, MetalFault, metal_fault

FAILED = "[METAL] Command buffer execution failed: "


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory).", MetalFault.OUT_OF_MEMORY),
        ("Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout).", MetalFault.TIMEOUT),
        ("Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang).", MetalFault.TIMEOUT),
        (
            "Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity).",
            MetalFault.INTERACTIVITY,
        ),
        (
            "Ignored (for causing prior/excessive GPU errors) "
            "(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored).",
            MetalFault.IGNORED,
        ),
        (
            "Innocent Victim of GPU Error/Recovery (00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim).",
            MetalFault.INNOCENT_VICTIM,
        ),
        (
            "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault).",
            MetalFault.OTHER,
        ),
    ],
)
def test_a_fault_is_known_by_its_message(message: str, fault: MetalFault) -> None:
    error = RuntimeError(FAILED + message)
    assert metal_fault(error) is fault
    outer = ValueError("the processor failed")
    outer.__cause__ = error
    assert metal_fault(outer) is fault
    lost = DeviceLostError(outer, "instance#0")
    assert (lost.fault, lost.request_id) == (fault, "instance#0")
    assert message in lost.cause


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[metal::malloc] Attempting to allocate 9 bytes which is greater than the maximum allowed size"),
        ValueError(FAILED),
        MemoryError(),
    ],
)
def test_other_errors_are_no_faults(error: Exception) -> None:
    assert metal_fault(error) is None
