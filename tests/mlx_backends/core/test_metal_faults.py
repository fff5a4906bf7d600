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
def test_a_failed_computation_is_known_by_its_message(message: str, fault: MetalFault) -> None:
    check(FAILED + message, message, fault)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("[metal::malloc] Resource limit (499000) exceeded.", MetalFault.BUFFERS),
        (
            "[metal::Device] Unable to load kernel carg_block_sort_uint32_uint32_bn128_tn4\nUnable to reach MTLCompilerService. "
            "The process is unavailable because the compiler is no longer active.\n",
            MetalFault.UNSERVED,
        ),
        ("[metal::CommandEncoder] Failed to make new command queue.", MetalFault.UNSERVED),
        ("[Event::Event] Failed to create Metal shared event.", MetalFault.UNSERVED),
    ],
)
def test_a_computation_that_cannot_begin_is_known_by_its_message(message: str, fault: MetalFault) -> None:
    check(message, message.partition("\n")[0], fault)


def check(text: str, part: str, fault: MetalFault) -> None:
    error = RuntimeError(text)
    assert metal_fault(error) is fault
    outer = ValueError("the processor failed")
    outer.__cause__ = error
    assert metal_fault(outer) is fault
    lost = DeviceLostError(outer, "instance#0")
    assert (lost.fault, lost.request_id) == (fault, "instance#0")
    assert part in lost.cause
    assert len(str(lost).splitlines()) == 1


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[metal::malloc] Attempting to allocate 9 bytes which is greater than the maximum allowed size"),
        RuntimeError("[metal::Device] Unable to load kernel winograd_conv_2d_weight_transform_bfloat16_bc32"),
        RuntimeError("[metal::load_device] No Metal device available."),
        ValueError(FAILED),
        MemoryError(),
    ],
)
def test_other_errors_are_no_faults(error: Exception) -> None:
    assert metal_fault(error) is None
