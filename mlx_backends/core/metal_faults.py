"""Faults of Metal: classes of failed GPU computations, by the messages of MLX.

Since mlx 0.32.0 a failed command buffer raises a RuntimeError, at the next point where MLX looks: when an operation is encoded,
an array is read or a stream is synchronised. The error is cleared as it is raised, whatever the failed buffer was to compute:
arrays that MLX marks as evaluated may hold anything. So after a fault nothing may be used that was computed and not confirmed
before it (:mod:`mlx_backends.mlx.metal.metal_fault_recovery`).

Metal can also refuse to begin a computation: a process may hold a number of buffers, whatever their size (about half a million,
those of cached and of compiled computations included), and it may lose the services that compile and submit for it. A new process
starts without any buffer, and with these services.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from benchmarks.errors import STOPPED, ModelError
from mlx_backends.core.error_text import one_line


class MetalFault(Enum):
    """A class of failed GPU computation; the value describes it."""

    OUT_OF_MEMORY = "GPU memory ran out"
    TIMEOUT = "a computation took too long"
    INTERACTIVITY = "a computation held up the display"
    IGNORED = "the GPU ignores this process"
    INNOCENT_VICTIM = "another fault of the GPU took a computation with it"
    BUFFERS = "more GPU buffers were needed than a process may hold, whatever their size"
    UNSERVED = "Metal serves this process no more"
    OTHER = "a computation failed"

    @property
    def is_excess(self) -> bool:
        """True if fewer requests at a time avoid it."""
        return self in (MetalFault.OUT_OF_MEMORY, MetalFault.BUFFERS)

    @property
    def is_final(self) -> bool:
        """True if the process computes no more."""
        return self in (MetalFault.IGNORED, MetalFault.UNSERVED)


_FAILED = "Command buffer execution failed"
_FAILURES = (
    (MetalFault.OUT_OF_MEMORY, re.compile(r"ErrorOutOfMemory|insufficient memory", re.IGNORECASE)),
    (MetalFault.IGNORED, re.compile(r"SubmissionsIgnored|ErrorAccessRevoked|ignored \(for", re.IGNORECASE)),
    (MetalFault.INTERACTIVITY, re.compile(r"ImpactingInteractivity|impacting interactivity", re.IGNORECASE)),
    (MetalFault.INNOCENT_VICTIM, re.compile(r"InnocentVictim|victim of gpu error", re.IGNORECASE)),
    (MetalFault.TIMEOUT, re.compile(r"ErrorTimeout|ErrorHang|gpu timeout|gpu hang", re.IGNORECASE)),
)
_REFUSALS = (
    (MetalFault.BUFFERS, re.compile(r"\[metal::malloc\] Resource limit")),
    (
        MetalFault.UNSERVED,
        re.compile(r"MTLCompilerService|Failed to make new command queue|Failed to create Metal shared event"),
    ),
)


_OUT_OF_MEMORY = re.compile(
    r"out of memory|insufficient memory|outofmemory|unable to allocate|attempting to allocate|bad_?alloc"
    r"|\[metal::malloc\] resource limit",
    re.IGNORECASE,
)


def metal_fault(error: BaseException) -> MetalFault | None:
    """Return the class of the Metal fault that an exception or one of its causes reports; None where none does."""
    source = _source(error)
    return None if source is None else _class(source)


def out_of_memory(error: BaseException) -> bool:
    """Return whether an exception or one of its causes means that memory or GPU buffers ran out."""
    return any(
        isinstance(cause, MemoryError) or (isinstance(cause, RuntimeError) and _OUT_OF_MEMORY.search(str(cause)))
        for cause in causes(error)
    )


def _source(error: BaseException) -> BaseException | None:
    """Return the exception by which MLX reports a fault, of an exception and its causes."""
    return next((cause for cause in causes(error) if _class(cause) is not None), None)


def _class(error: BaseException) -> MetalFault | None:
    message = str(error) if isinstance(error, RuntimeError) else ""
    if _FAILED in message:
        return next((fault for fault, pattern in _FAILURES if pattern.search(message)), MetalFault.OTHER)
    return next((fault for fault, pattern in _REFUSALS if pattern.search(message)), None)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its cause, the cause of that, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


class DeviceLostError(ModelError):
    """A GPU that this process cannot compute on any more; a new process may.

    ``request_id`` is the request that failed alone, more than once; None where none can be named. ``cause`` is a phrase that
    follows "the worker".
    """

    exit_code = STOPPED

    def __init__(self, error: BaseException, request_id: str | None = None) -> None:
        self.fault = metal_fault(error) or MetalFault.OTHER
        self.request_id = request_id
        reason = f"{self.fault.value} ({one_line(_source(error) or error)})"
        self.cause = f"lost the GPU: {reason}"
        super().__init__(f"the GPU failed repeatedly: {reason}; run the command again.")
