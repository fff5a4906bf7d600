"""The libraries: which are there, whether their versions are those that are wanted, and what is mended in them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version

from app.doctor.finding import CheckResult
from app.store.workspace import Workspace

_TOLD = ("mlx", "mlx-lm", "mlx-vlm", "transformers", "huggingface_hub")
_EXTRAS = {
    "api": ("openai", "anthropic", "google-genai"),
    "keychain": ("keyring",),
}


def packages(workspace: Workspace) -> CheckResult:
    """Whether everything that Rashomon requires is installed, in a version that it takes."""
    try:
        told = f"rashomon {version('rashomon')}"
        wrong = _wrong(requires("rashomon") or [])
    except PackageNotFoundError:
        return CheckResult(
            "packages", False, "Rashomon itself is not installed", "install it with pip: `pip install .`"
        )
    told = ", ".join([told, *(f"{name} {found}" for name in _TOLD if (found := _version(name)))])
    if wrong:
        return CheckResult("packages", False, "; ".join(wrong), "install Rashomon again with pip.")
    return CheckResult("packages", True, told)


def _wrong(requirements: list[str]) -> list[str]:
    from packaging.requirements import Requirement

    found = []
    for text in requirements:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        here = _version(wanted.name)
        if here is None:
            found.append(f"{wanted.name} is missing")
        elif not wanted.specifier.contains(here, prereleases=True):
            found.append(f"{wanted.name} is {here}, wanted is {wanted.specifier}")
    return found


def repair(workspace: Workspace) -> CheckResult:
    """Whether the installed mlx-vlm is one whose answers of Qwen3-VL in batches are mended."""
    from mlx_backends.mlx.patches.qwen3_vl_deepstack import NEEDED_BY

    here = _version("mlx-vlm")
    if here is None:
        return CheckResult("mlx-vlm", False, "not installed", "install Rashomon again with pip.")
    if here in NEEDED_BY:
        return CheckResult("mlx-vlm", True, f"{here}: Qwen3-VL's answers in batches are mended when it is loaded")
    told = f"{here}: not known to need a repair; each run's canary tries whether batches answer rightly"
    return CheckResult("mlx-vlm", True, told)


def extras(workspace: Workspace) -> CheckResult:
    """What is optional: remote engines, the keychain."""
    here = [f"{name} {found}" for names in _EXTRAS.values() for name in names if (found := _version(name))]
    lacking = [
        f"{extra} (pip install 'rashomon[{extra}]')"
        for extra, names in _EXTRAS.items()
        if not all(map(_version, names))
    ]
    told = f"installed: {', '.join(here) or 'none'}"
    return CheckResult("extras", True, told + (f"; not installed: {', '.join(lacking)}" if lacking else ""))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
