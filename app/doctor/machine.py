"""The machine: processor, system, memory, and whether MLX starts on it."""

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
    """Processor, system and Python."""
    told = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if sys.platform != "darwin":
        return CheckResult("machine", True, told)
    version = platform.mac_ver()[0]
    told = f"macOS {version} {platform.machine()}, Python {platform.python_version()}"
    if platform.machine() != "arm64":
        mend = "MLX needs an arm64 Python on Apple silicon; install one (this one runs under Rosetta, or this is an Intel Mac)."
        return CheckResult("machine", False, told, mend)
    if version.partition(".")[0].isdigit() and int(version.partition(".")[0]) < _OLDEST_MACOS:
        return CheckResult("machine", False, told, f"MLX needs macOS {_OLDEST_MACOS} or newer; update the system.")
    return CheckResult("machine", True, told)


def memory(workspace: Workspace) -> CheckResult:
    """What models may take, and the largest of the papers' models that fits."""
    from mlx_backends.models.catalog import curated
    from mlx_backends.models.memory_estimate import fits, need

    fit = fits(0)
    told = f"{fit.have / 2**30:.1f} GiB for models ({fit.source})"
    fitting = [each for each in curated() if need(each.weights_bytes) <= fit.have]
    if not fitting:
        smallest = min(curated(), key=lambda each: each.weights_bytes)
        mend = (
            f"the papers' smallest model needs {size(need(smallest.weights_bytes))}; `rashomon demo` runs all the same."
        )
        return CheckResult("memory", True, told, mend)
    largest = max(fitting, key=lambda each: each.weights_bytes)
    return CheckResult(
        "memory", True, f"{told}: {len(fitting)} of {len(curated())} listed models fit, {largest.id} the largest"
    )


def mlx(workspace: Workspace) -> CheckResult:
    """Whether MLX starts, and on what."""
    mend = "install mlx again: on Linux `pip install 'mlx[cpu]'`, on a Mac `pip install mlx`."
    started, told = _started(_MLX)
    if not started:
        return CheckResult("mlx", False, told, mend)
    told, _, held = told.rpartition(" ")
    if held.isdigit() and int(held):
        return CheckResult("mlx", True, f"{told}, working set {int(held) / 2**30:.1f} GiB")
    if sys.platform == "darwin":
        return CheckResult(
            "mlx", True, told, "models run on the processor, slowly: Metal is missing, as in a virtual machine."
        )
    if spec.gpu() and "CUDA" not in told:
        return CheckResult(
            "mlx", True, told, "there is an NVIDIA GPU: `pip install 'mlx[cuda12]'` (or cuda13) lets MLX use it."
        )
    return CheckResult("mlx", True, told)


def torch(workspace: Workspace) -> CheckResult:
    """Whether PyTorch, where it is installed, starts, and on what."""
    if find_spec("torch") is None:
        return CheckResult(
            "torch", True, "not installed; `pip install 'rashomon[torch]'` lets PyTorch answer too (cuda:ID)"
        )
    started, told = _started(_TORCH)
    if not started:
        return CheckResult("torch", False, told, "install torch again.")
    if spec.gpu() and told.endswith(" cpu"):
        return CheckResult(
            "torch", True, told, "there is an NVIDIA GPU that this PyTorch cannot use; install one for its driver."
        )
    return CheckResult("torch", True, told)


def _started(code: str) -> tuple[bool, str]:
    """Whether ``code`` ran, and its last line; in a process of its own, since a broken library can abort it."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"did not start in {_SECONDS} s"
    if done.returncode:
        return False, (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    return True, done.stdout.strip()
