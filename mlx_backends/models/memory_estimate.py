"""What fits in this machine's memory, said before anything is loaded: a model, and how many requests beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlx_backends.models.request_memory import cache_bytes, reading_bytes

GIB = 2**30
READ_AT_ONCE = 512
"""Tokens of each prompt that are read in one go."""

_MACS = (8, 16, 18, 24, 32, 36, 48, 64, 96, 128, 192, 256, 512)
_WORKING_SET = "max_recommended_working_set_size"
_GPU_MEMORY = "total_memory"  # of MLX's CUDA build


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Whether a model fits: ``need`` and ``have`` in bytes, where ``have`` is from, and all of it in a sentence."""

    need: int
    have: int
    source: str
    ok: bool
    sentence: str


def need(weights_bytes: int) -> int:
    """Bytes to run a model whose weight files are ``weights_bytes`` long: the weights, an eighth of them, and 1 GiB.

    The eighth and the GiB are our allowance for the vision encoder's activations, the key-value cache of a prompt of
    a few thousand tokens, and MLX's buffer cache. Very long prompts or very large images need more.
    """
    return weights_bytes + weights_bytes // 8 + GIB


def fits(weights_bytes: int, device: Mapping[str, Any] | None = None) -> MemoryFit:
    """Whether a model whose weight files are ``weights_bytes`` long can run here.

    With ``device``, MLX's device information, the memory is Metal's recommended working set, exactly, or an NVIDIA GPU's.
    Without it, on a Mac it is estimated from the machine's memory (Metal recommends two thirds of it up to 36 GiB, three quarters
    above); elsewhere it is the machine's memory less 2 GiB or an eighth of it, whichever is more.
    """
    have, source = _have(device or {})
    wanted = need(weights_bytes)
    ok = wanted <= have
    verb = "fits" if ok else "does not fit"
    sentence = (
        f"it needs about {wanted / GIB:.1f} GiB ({weights_bytes / GIB:.1f} GiB of weights and working memory) "
        f"and {verb} in the {have / GIB:.1f} GiB of {source}"
    )
    return MemoryFit(wanted, have, source, ok, sentence)


def smallest_mac(weights_bytes: int) -> int | None:
    """The memory, in GB as Apple counts, of the smallest Mac that such a model fits on; None where there is none."""
    return next((each for each in _MACS if need(weights_bytes) <= _metal(each * GIB)), None)


def width(
    config: Any,
    weights_bytes: int,
    prompt_tokens: int,
    max_tokens: int,
    device: Mapping[str, Any] | None = None,
    *,
    most: int,
    read_at_once: int = READ_AT_ONCE,
) -> int:
    """How many requests can be answered together: at least 1 and at most ``most``.

    As many as fit in the working set of ``device`` (see :func:`fits`) beside the model (:func:`need`), each counted as if
    it were the longest: ``prompt_tokens``, image tokens included, and an answer of ``max_tokens``. Each takes its
    key-value cache (``cache_bytes``) and the working memory of reading ``read_at_once`` tokens of its prompt while the
    others read theirs (``reading_bytes``; 0 where prompts are read one by one). ``config`` is what ``cache_bytes`` takes;
    1 where it does not say how large a cache is.
    """
    cache = cache_bytes(config, prompt_tokens + max_tokens)
    if cache is None:
        return 1
    row = cache + reading_bytes(config, min(prompt_tokens, read_at_once))
    spare = fits(weights_bytes, device).have - need(weights_bytes)
    return max(1, min(most, spare // row if row else most))


def total_memory() -> int:
    """This machine's memory in bytes; in a container, what it may use."""
    return _total()


def device_info() -> Mapping[str, Any]:
    """MLX's information on the device it computes on; empty where this build of MLX has none to give."""
    import mlx.core as mx

    ask = getattr(mx, "device_info", None) or getattr(mx.metal, "device_info", None)
    try:
        found = ask() if ask is not None else {}
    except RuntimeError:
        return {}
    return found if isinstance(found, dict) else {}


def working_set(device: Mapping[str, Any]) -> int | None:
    """Metal's recommended working set in bytes, by MLX's device information; None where that gives no usable figure."""
    exact = device.get(_WORKING_SET)
    return exact if isinstance(exact, int) and exact > 0 else None


def _have(device: Mapping[str, Any]) -> tuple[int, str]:
    exact = working_set(device)
    if exact is not None:
        return exact, "Metal's recommended working set"
    if isinstance(total := device.get(_GPU_MEMORY), int) and total > 0:
        return total, "the GPU's memory"
    total = _total()
    if sys.platform == "darwin":
        return _metal(total), f"Metal's working set, estimated from {total / GIB:.0f} GiB of memory"
    return max(0, total - max(2 * GIB, total // 8)), f"memory to use, of {total / GIB:.0f} GiB"


def _metal(total: int) -> int:
    """What Metal recommends as working set on a Mac with so many bytes of memory."""
    return total * 2 // 3 if total <= 36 * GIB else total * 3 // 4


def _total() -> int:
    """The machine's memory in bytes."""
    if sys.platform == "darwin":
        asked = subprocess.run(["/usr/sbin/sysctl", "-n", "hw.memsize"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.strip().isdigit():
            return int(asked.stdout)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(physical, _container_limit() or physical)


def _container_limit() -> int | None:
    """The memory a Linux container may use, where one is set."""
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text()
    except OSError:
        return None
    return int(text) if text.strip().isdigit() else None
