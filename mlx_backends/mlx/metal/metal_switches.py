"""Switches for Macs on which MLX ends in a kernel panic, or computes fp32 in fewer bits; each is an environment variable."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any

NO_WIRED_LIMIT = "RASHOMON_NO_WIRED_LIMIT"
"""Leaves Metal's limit on wired memory as it is.

Some systems (macOS 15.7 and 26) panic while memory is wired and several threads or processes use Metal (ml-explore/mlx#3186,
ml-explore/mlx-lm#1666).
"""

SERIAL_IMAGES = "RASHOMON_SERIAL_IMAGES"
"""Prepares images between steps of the model instead of in a thread beside it, so that one thread alone uses Metal."""

TF32 = "MLX_ENABLE_TF32"
"""MLX's own: 0 computes fp32 products in fp32. By default an M5 and NVIDIA GPUs compute them in TF32 (10 bits of fraction)."""

FULL_FP32 = {TF32: "0"}


def is_on(name: str) -> bool:
    """Return whether the environment sets the switch ``name``; 0, false, no, off and nothing leave it off."""
    return os.environ.get(name, "").strip().casefold() not in ("", "0", "false", "no", "off")


def with_full_fp32(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` with products of fp32 in full fp32, unless it says otherwise."""
    return FULL_FP32 | dict(environment)


def float_facts(engine: str, device: str) -> dict[str, dict[str, str]]:
    """Return the setting of TF32 as a fact of a run's engine; nothing where MLX has no such mode."""
    if not engine.startswith("mlx") or device == "cpu":
        return {}
    return {"environment": {TF32: os.environ.get(TF32, "not set")}}


def leave_wired_limit(mx: Any) -> None:
    """Make ``mx.set_wired_limit`` do nothing in this process: mlx-vlm and mlx-lm call it for every answer too."""
    mx.set_wired_limit = lambda limit: 0


class InlineExecutor(Executor):
    """Executor that calls each function where it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
