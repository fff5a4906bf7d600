"""The machine: processor, system, memory, and whether MLX starts on it."""

from __future__ import annotations

import platform
import subprocess
import sys

from app.doctor.finding import Finding
from app.report.text import size
from app.store.workspace import Workspace

_MLX_SECONDS = 60
_OLDEST_MACOS = 14

_START = """
import mlx.core as mx
metal = mx.metal.is_available()
ask = getattr(mx, "device_info", None) or mx.metal.device_info
held = (ask() or {}).get("max_recommended_working_set_size", 0) if metal else 0
print(mx.default_device(), "Metal" if metal else "no Metal", held)
"""


def machine(workspace: Workspace) -> Finding:
    """Processor, system and Python."""
    told = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if sys.platform != "darwin":
        return Finding("machine", True, told)
    version = platform.mac_ver()[0]
    told = f"macOS {version} {platform.machine()}, Python {platform.python_version()}"
    if platform.machine() != "arm64":
        mend = "MLX needs an arm64 Python on Apple silicon; install one (this one runs under Rosetta, or this is an Intel Mac)."
        return Finding("machine", False, told, mend)
    if version.partition(".")[0].isdigit() and int(version.partition(".")[0]) < _OLDEST_MACOS:
        return Finding("machine", False, told, f"MLX needs macOS {_OLDEST_MACOS} or newer; update the system.")
    return Finding("machine", True, told)


def memory(workspace: Workspace) -> Finding:
    """What models may take, and the largest of the papers' models that fits."""
    from mlx_backends.curated import curated
    from mlx_backends.memory import fits, need

    fit = fits(0)
    told = f"{fit.have / 2**30:.1f} GiB for models ({fit.source})"
    fitting = [each for each in curated() if need(each.weights_bytes) <= fit.have]
    if not fitting:
        smallest = min(curated(), key=lambda each: each.weights_bytes)
        mend = (
            f"the papers' smallest model needs {size(need(smallest.weights_bytes))}; `rashomon demo` runs all the same."
        )
        return Finding("memory", True, told, mend)
    largest = max(fitting, key=lambda each: each.weights_bytes)
    return Finding(
        "memory", True, f"{told}: {len(fitting)} of {len(curated())} listed models fit, {largest.id} the largest"
    )


def mlx(workspace: Workspace) -> Finding:
    """Whether MLX starts, in a process of its own: a broken one, or Metal, can abort the process that loads it."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _START], capture_output=True, text=True, timeout=_MLX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Finding("mlx", False, f"did not start in {_MLX_SECONDS} s", "install mlx again.")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        mend = "install mlx again: on Linux `pip install 'mlx[cpu]'`, on a Mac `pip install mlx`."
        return Finding("mlx", False, last, mend)
    told, _, held = done.stdout.strip().rpartition(" ")
    if held.isdigit() and int(held):
        return Finding("mlx", True, f"{told}, working set {int(held) / 2**30:.1f} GiB")
    if sys.platform == "darwin":
        return Finding(
            "mlx", True, told, "models run on the processor, slowly: Metal is missing, as in a virtual machine."
        )
    return Finding("mlx", True, told)
