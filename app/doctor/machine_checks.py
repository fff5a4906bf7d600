"""Checks of the machine: processor, system, memory, MLX and PyTorch."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.util import find_spec

from app.doctor.check_result import CheckResult
from app.store.workspace import Workspace
from app.system.mac_state import PANIC_FOLDER, load_state, panics_problem, recent_panics
from app.system.requirements import hidden_problem, machine_problem, macos_version
from app.text.plural import count_of
from app.text.text_escaping import size
from mlx_backends.mlx.metal.metal_switches import NO_WIRED_LIMIT, SERIAL_IMAGES
from mlx_backends.pytorch import torch_names_and_devices

_SECONDS = 60
_MOST_PANICS = 3
_QWEN3_VL_4B_BYTES = 3_100_000_000
_QWEN3_VL_4B = {
    "text_config": {
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "vocab_size": 151936,
    },
    "vision_config": {"hidden_size": 1024, "patch_size": 16, "spatial_merge_size": 2},
}
"""The sizes of the model that the documentation starts with, for advice where no model is cached."""

_MLX = """
import mlx.core as mx
metal = mx.metal.is_available()
cuda = hasattr(mx, "cuda") and mx.cuda.is_available()
ask = getattr(mx, "device_info", None) or mx.metal.device_info
held = (ask() or {}).get("max_recommended_working_set_size", 0) if metal else 0
print(mx.default_device(), "Metal" if metal else "CUDA" if cuda else "no Metal", held)
"""
_TORCH = """
import torch
cuda = torch.cuda.is_available()
print(torch.__version__, torch.cuda.get_device_name() if cuda else "mps" if torch.backends.mps.is_available() else "cpu")
"""


def machine(workspace: Workspace) -> CheckResult:
    """Check the processor, the system and Python."""
    system = f"{platform.system()} {platform.machine()}"
    if sys.platform == "darwin":
        system = f"macOS {macos_version(platform.mac_ver()[0], platform.release())} {platform.machine()}"
    fix = machine_problem() or hidden_problem()
    return CheckResult("machine", not fix, f"{system}, Python {platform.python_version()}", fix)


def memory(workspace: Workspace) -> CheckResult:
    """Report the memory for models, and the largest model of the papers that fits."""
    from mlx_backends.models.memory_and_cache_sizes import memory_fit, required_memory
    from mlx_backends.models.model_catalog import catalog_models

    fit = memory_fit(0)
    message = f"{fit.available / 1e9:.1f} GB for models ({fit.source})"
    papers = [model for model in catalog_models() if model.benchmarks]
    fitting = [model for model in papers if required_memory(model.weights_bytes) <= fit.available]
    if not fitting:
        smallest = min(papers, key=lambda model: model.weights_bytes)
        fix = f"the papers' smallest model needs {size(required_memory(smallest.weights_bytes))}; `rashomon demo` still runs."
        return CheckResult("memory", True, message, fix)
    largest = max(fitting, key=lambda model: model.weights_bytes)
    message = f"{message}: {len(fitting)} of {len(papers)} listed models fit, {largest.id} the largest"
    return CheckResult("memory", True, message, _image_advice(fit.available) if sys.platform == "darwin" else "")


def _image_advice(available: int) -> str:
    """Return what limits images where large ones do not fit next to the suggested model; empty where they do."""
    from mlx_backends.models.memory_and_cache_sizes import suggested_max_pixels

    pixels = suggested_max_pixels(_QWEN3_VL_4B, _QWEN3_VL_4B_BYTES, available)
    return (
        f"large images may not fit next to a 4B model in 4 bits: add `--max-pixels {pixels}` to its runs."
        if pixels
        else ""
    )


def load(workspace: Workspace) -> CheckResult:
    """Report what else takes memory or speed on a Mac."""
    warnings, unknown = load_state()
    if not warnings:
        message = unknown or "no memory pressure, no other models in memory, full power"
        return CheckResult("load", True, message)
    message = f"{count_of(len(warnings), 'warning')} on memory or speed"
    return CheckResult("load", True, f"{message}; {unknown}" if unknown else message, " ".join(warnings))


def panics(workspace: Workspace) -> CheckResult:
    """Report recent kernel panics, by name and date, and the switches that avoid those of Metal."""
    reports = recent_panics()
    if not reports:
        return CheckResult("panics", True, panics_problem() or f"no kernel panic in the last 30 days in {PANIC_FOLDER}")
    names = ", ".join(f"{report.name} ({report.day})" for report in reports[:_MOST_PANICS])
    more = f" and {len(reports) - _MOST_PANICS} more" if len(reports) > _MOST_PANICS else ""
    fix = (
        f"if a run of a model was going on then, run with {NO_WIRED_LIMIT}=1; if that is not enough, also with "
        f"{SERIAL_IMAGES}=1. Neither changes an answer."
    )
    return CheckResult("panics", True, f"{len(reports)} in 30 days: {names}{more}", fix)


def mlx(workspace: Workspace) -> CheckResult:
    """Check that MLX starts, and on which device."""
    fix = "install mlx again: on Linux `pip install 'mlx[cpu]'`, on a Mac `pip install mlx`."
    started, message = _run_python(_MLX)
    if not started:
        return CheckResult("mlx", False, message, fix)
    message, _, working_set = message.rpartition(" ")
    if working_set.isdigit() and int(working_set):
        return CheckResult("mlx", True, f"{message}, working set {int(working_set) / 1e9:.1f} GB")
    if sys.platform == "darwin":
        return CheckResult(
            "mlx", True, message, "models run slowly on the CPU, because Metal is missing (as in a virtual machine)."
        )
    if torch_names_and_devices.has_gpu() and "CUDA" not in message:
        return CheckResult(
            "mlx", True, message, "there is an NVIDIA GPU: `pip install 'mlx[cuda12]'` (or cuda13) lets MLX use it."
        )
    return CheckResult("mlx", True, message)


def torch(workspace: Workspace) -> CheckResult:
    """Check that PyTorch starts if it is installed, and on which device."""
    if find_spec("torch") is None:
        return CheckResult(
            "torch", True, "not installed; `pip install 'rashomon[torch]'` adds PyTorch models (cuda:ID)"
        )
    started, message = _run_python(_TORCH)
    if not started:
        return CheckResult("torch", False, message, "install torch again.")
    if torch_names_and_devices.has_gpu() and message.endswith(" cpu"):
        return CheckResult(
            "torch", True, message, "this PyTorch cannot use the NVIDIA GPU; install a build for its driver."
        )
    return CheckResult("torch", True, message)


def _run_python(code: str) -> tuple[bool, str]:
    """Run ``code`` in a new process, because a broken library can abort it; return success and the last line."""
    try:
        completed = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"did not start in {_SECONDS} s"
    if completed.returncode:
        return False, (completed.stderr.strip().splitlines() or [f"ended with {completed.returncode}"])[-1]
    return True, completed.stdout.strip()
