"""Checks of the installed libraries: versions, extras and patches."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version

from app.doctor.check_result import CheckResult
from app.store.workspace import Workspace

_REPORTED = ("mlx", "mlx-lm", "mlx-vlm", "transformers", "huggingface_hub")
_EXTRAS = {
    "api": ("openai", "anthropic", "google-genai"),
    "keychain": ("keyring",),
    "video": ("av",),
    "shapes": ("trimesh",),
    "pdf": ("pypdfium2",),
    "serve": ("textual-serve",),
    "ocr": ("onnxruntime", "rapidocr"),
}


def packages(workspace: Workspace) -> CheckResult:
    """Check that every required package is installed in a supported version."""
    try:
        message = f"rashomon {version('rashomon')}"
        problems = _unmet_requirements(requires("rashomon") or [])
    except PackageNotFoundError:
        return CheckResult(
            "packages", False, "Rashomon itself is not installed", "install it with pip: `pip install .`"
        )
    message = ", ".join([message, *(f"{name} {installed}" for name in _REPORTED if (installed := _version(name)))])
    if problems:
        return CheckResult("packages", False, "; ".join(problems), "install Rashomon again with pip.")
    return CheckResult("packages", True, message)


def _unmet_requirements(requirements: list[str]) -> list[str]:
    from packaging.requirements import Requirement

    problems = []
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        installed = _version(requirement.name)
        if installed is None:
            problems.append(f"{requirement.name} is missing")
        elif not requirement.specifier.contains(installed, prereleases=True):
            problems.append(f"{requirement.name} is {installed}, but {requirement.specifier} is required")
    return problems


def mlx_vlm(workspace: Workspace) -> CheckResult:
    """Report whether the installed mlx-vlm needs the patch for batched answers of Qwen3-VL."""
    from mlx_backends.mlx.patches.qwen3_vl_deepstack import AFFECTED_VERSIONS

    installed = _version("mlx-vlm")
    if installed is None:
        return CheckResult("mlx-vlm", False, "not installed", "install Rashomon again with pip.")
    if installed in AFFECTED_VERSIONS:
        return CheckResult(
            "mlx-vlm", True, f"{installed}: patched for Qwen3-VL alone, so that it answers correctly in batches"
        )
    message = f"{installed}: no known problem; each run checks that batched answers equal sequential ones"
    return CheckResult("mlx-vlm", True, message)


def extras(workspace: Workspace) -> CheckResult:
    """List the optional packages: remote engines and the keychain."""
    present = [f"{name} {installed}" for names in _EXTRAS.values() for name in names if (installed := _version(name))]
    missing = [
        f"{extra} (pip install 'rashomon[{extra}]')"
        for extra, names in _EXTRAS.items()
        if not all(map(_version, names))
    ]
    message = f"installed: {', '.join(present) or 'none'}"
    return CheckResult("extras", True, message + (f"; not installed: {', '.join(missing)}" if missing else ""))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def plugins(workspace: Workspace) -> list[CheckResult]:
    """List what other packages register, and try again what could not be used, which has a result each."""
    from benchmarks.registry import REGISTRY as BENCHMARKS
    from judges.judge_registry import REGISTRY as JUDGES
    from mlx_backends.engine_registry import REGISTRY as ENGINES

    registries = (BENCHMARKS, JUDGES, ENGINES)
    broken = [plugin for registry in registries for plugin in registry.broken(again=True)]
    unusable = {(plugin.group, plugin.name) for plugin in broken}
    working = [
        name
        for registry in registries
        for name in registry.names()
        if name not in registry.built_in and (registry.group, name) not in unusable
    ]
    message = f"registered by other packages: {', '.join(working) or 'nothing'}"
    fix = "repair, update or uninstall that package; everything else works."
    return [
        CheckResult("plugins", True, message),
        *(CheckResult("plugins", False, f"cannot be used: {plugin}", fix) for plugin in broken),
    ]
