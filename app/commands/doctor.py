"""``rashomon doctor``: what works on this machine, and how to mend what does not."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from app.engine.lease import lease_path
from app.locks import FileLock
from app.report.text import clean
from app.store.workspace import Workspace
from mlx_backends import cuda

_LOW_DISK_BYTES = 5 * 10**9
_MLX_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing examined: ``ok`` False means that something does not work, and ``mend`` says what to do."""

    what: str
    ok: bool
    told: str
    mend: str = ""


def doctor(workspace: Workspace, *, as_json: bool) -> int:
    """Examine this machine and print what was found; 1 where something does not work."""
    findings = list(examine(workspace))
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(clean(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.what:<12} {finding.told}"))
            if finding.mend:
                print(clean(f"      {'':<12} {finding.mend}"))
    return 0 if all(finding.ok for finding in findings) else 1


def examine(workspace: Workspace) -> Iterator[Finding]:
    """What there is to find, one after the other; some take seconds."""
    return (check(workspace) for check in _CHECKS)


def _machine(workspace: Workspace) -> Finding:
    from mlx_backends.memory import fits

    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    fit = fits(0)
    told = f"{machine}, {fit.have / 2**30:.1f} GiB for models ({fit.source})"
    if sys.platform == "darwin" and platform.machine() != "arm64":
        return Finding("machine", False, told, "MLX needs an arm64 Python on Apple silicon; install one.")
    return Finding("machine", True, told)


def _packages(workspace: Workspace) -> Finding:
    found, missing = [], []
    for package in ("rashomon", "mlx", "mlx-lm", "mlx-vlm", "transformers", "datasets"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        return Finding("packages", False, f"missing: {', '.join(missing)}", "install Rashomon again with pip.")
    return Finding("packages", True, ", ".join(found))


def _mlx(workspace: Workspace) -> Finding:
    # In a process of its own: a broken MLX or Metal can abort the process that loads it.
    code = (
        "import mlx.core as mx; cuda = hasattr(mx, 'cuda') and mx.cuda.is_available()\n"
        "print(mx.default_device(), 'Metal' if mx.metal.is_available() else 'CUDA' if cuda else 'no Metal')"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_MLX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Finding("mlx", False, f"did not start in {_MLX_SECONDS} s", "install mlx again.")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        return Finding(
            "mlx", False, last, "install mlx again: on Linux `pip install 'mlx[cpu]'`, on a Mac `pip install mlx`."
        )
    told = done.stdout.strip()
    if cuda.gpu() and "CUDA" not in told:
        return Finding(
            "mlx", True, told, "there is an NVIDIA GPU: `pip install 'mlx[cuda12]'` (or cuda13) lets MLX use it."
        )
    return Finding("mlx", True, told)


def _torch(workspace: Workspace) -> Finding:
    # In a process of its own, as MLX: its CUDA can abort too.
    code = (
        "import torch; cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()\n"
        "print(torch.__version__, torch.cuda.get_device_name() if cuda else 'mps' if mps else 'cpu')"
    )
    if find_spec("torch") is None:
        return Finding(
            "torch", True, "not installed; `pip install 'rashomon[torch]'` lets PyTorch answer too (cuda:ID)"
        )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_MLX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Finding("torch", False, f"did not start in {_MLX_SECONDS} s", "install torch again.")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        return Finding("torch", False, last, "install torch again.")
    told = done.stdout.strip()
    if cuda.gpu() and told.endswith(" cpu"):
        return Finding(
            "torch", True, told, "there is an NVIDIA GPU that this PyTorch cannot use; install one for its driver."
        )
    return Finding("torch", True, told)


def _workspace(workspace: Workspace) -> Finding:
    place = workspace.path
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(
            "workspace",
            False,
            f"{workspace.path}: {error.strerror}",
            "name another with --workspace or RASHOMON_WORKSPACE.",
        )
    told = f"{workspace.path}, {free / 1e9:.1f} GB free, {len(workspace.run_names())} runs"
    if warning := workspace.warning():
        return Finding("workspace", True, told, warning)
    if free < _LOW_DISK_BYTES:
        return Finding("workspace", True, told, "little disk space is left; models and media need gigabytes.")
    return Finding("workspace", True, told)


def _models(workspace: Workspace) -> Finding:
    from mlx_backends.models import cached_models, hub_cache

    found = cached_models()
    usable = [model for model in found if model.problem is None]
    told = f"{len(usable)} vision-language models in {hub_cache()}"
    mend = (
        ""
        if usable
        else "`hf download mlx-community/Qwen3-VL-4B-Instruct-4bit` fetches one; `rashomon demo` needs none."
    )
    return Finding("models", True, told, mend)


def _device(workspace: Workspace) -> Finding:
    holder = FileLock(lease_path()).holder()
    return Finding("device", True, f"held by {holder}" if holder else "free")


def _network(workspace: Workspace) -> Finding:
    offline = os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
    return Finding("network", True, "HF_HUB_OFFLINE is set" if offline else "used only by commands that say so")


def _keys(workspace: Workspace) -> Finding:
    from mlx_backends.keys import VARIABLES

    found = [name for name in (*VARIABLES, "HF_TOKEN") if os.environ.get(name)]
    told = f"set: {', '.join(found)}" if found else "none set; none is needed for local models and judges by rule"
    return Finding("keys", True, told)


_CHECKS: tuple[Callable[[Workspace], Finding], ...] = (
    _machine,
    _packages,
    _mlx,
    _torch,
    _workspace,
    _models,
    _device,
    _network,
    _keys,
)
