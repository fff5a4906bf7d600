"""Checks of the machine: processor, system, memory, MLX and PyTorch."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.util import find_spec

from app.doctor.finding import CheckResult
from app.store.workspace import Workspace
from app.text.escape import size
from mlx_backends.pytorch import spec

_SECONDS = 60
_OLDEST_MACOS = 14

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
    message = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if sys.platform != "darwin":
        return CheckResult("machine", True, message)
    version = platform.mac_ver()[0]
    message = f"macOS {version} {platform.machine()}, Python {platform.python_version()}"
    if platform.machine() != "arm64":
        fix = "MLX needs an arm64 Python on Apple silicon; install one (this one runs under Rosetta, or this is an Intel Mac)."
        return CheckResult("machine", False, message, fix)
    if version.partition(".")[0].isdigit() and int(version.partition(".")[0]) < _OLDEST_MACOS:
        return CheckResult("machine", False, message, f"MLX needs macOS {_OLDEST_MACOS} or newer; update the system.")
    return CheckResult("machine", True, message)


def memory(workspace: Workspace) -> CheckResult:
    """Report the memory for models, and the largest model of the papers that fits."""
    from mlx_backends.models.catalog import catalog_models
    from mlx_backends.models.memory_estimate import memory_fit, required_memory

    fit = memory_fit(0)
    message = f"{fit.available / 2**30:.1f} GiB for models ({fit.source})"
    papers = [model for model in catalog_models() if model.benchmarks]
    fitting = [model for model in papers if required_memory(model.weights_bytes) <= fit.available]
    if not fitting:
        smallest = min(papers, key=lambda model: model.weights_bytes)
        fix = f"the papers' smallest model needs {size(required_memory(smallest.weights_bytes))}; `rashomon demo` still runs."
        return CheckResult("memory", True, message, fix)
    largest = max(fitting, key=lambda model: model.weights_bytes)
    return CheckResult(
        "memory",
        True,
        f"{message}: {len(fitting)} of {len(papers)} listed models fit, {largest.id} the largest",
    )


def mlx(workspace: Workspace) -> CheckResult:
    """Check that MLX starts, and on which device."""
    fix = "install mlx again: on Linux `pip install 'mlx[cpu]'`, on a Mac `pip install mlx`."
    started, message = _run_python(_MLX)
    if not started:
        return CheckResult("mlx", False, message, fix)
    message, _, held = message.rpartition(" ")
    if held.isdigit() and int(held):
        return CheckResult("mlx", True, f"{message}, working set {int(held) / 2**30:.1f} GiB")
    if sys.platform == "darwin":
        return CheckResult(
            "mlx", True, message, "models run slowly on the CPU, because Metal is missing (as in a virtual machine)."
        )
    if spec.has_gpu() and "CUDA" not in message:
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
    if spec.has_gpu() and message.endswith(" cpu"):
        return CheckResult(
            "torch", True, message, "this PyTorch cannot use the NVIDIA GPU; install a build for its driver."
        )
    return CheckResult("torch", True, message)


def _run_python(code: str) -> tuple[bool, str]:
    """Run ``code`` in a new process, because a broken library can abort it; return success and the last line."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"did not start in {_SECONDS} s"
    if done.returncode:
        return False, (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    return True, done.stdout.strip()
