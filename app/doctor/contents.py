"""What there is to run: models, data of each benchmark, the demo, and who has the device."""

from __future__ import annotations

from app.doctor.finding import CheckResult
from app.store.workspace import Workspace
from app.system.paths import ASSETS
from benchmarks.base import benchmark_names
from benchmarks.errors import RashomonError

_FIRST = "mlx-community/Qwen3-VL-4B-Instruct-4bit"


def models(workspace: Workspace) -> CheckResult:
    """The models of the cache that can be run, and why others cannot."""
    from mlx_backends.models.discovery import cached_models, hub_cache

    found = cached_models()
    usable = [model for model in found if model.problem is None]
    seeing = sum(model.engine == "mlx-vlm" for model in usable)
    told = f"{seeing} vision-language and {len(usable) - seeing} text models in {hub_cache()}"
    if not usable:
        return CheckResult(
            "models", True, told, f"`rashomon models get {_FIRST}` fetches one; `rashomon demo` needs none."
        )
    bad = [model for model in found if model.problem is not None]
    mend = f"{len(bad)} more cannot be run, {bad[0].name} because {bad[0].problem}" if bad else ""
    return CheckResult("models", True, told, mend)


def data(workspace: Workspace) -> CheckResult:
    """Which benchmarks are built, and what is lacking of the others."""
    from app.fetch import manifest
    from app.fetch.recipes import RECIPES
    from benchmarks.build import Build

    built: list[str] = []
    ready: list[str] = []
    begun: list[str] = []
    none: list[str] = []
    for name in benchmark_names():
        folder = workspace.build_folder(name)
        if folder.exists():
            try:
                Build.open(folder)
            except RashomonError as error:
                return CheckResult(
                    "data", False, str(error), f"`{workspace.command()} build {name} ...  --replace` builds it again."
                )
            built.append(name)
            continue
        state = manifest.state(workspace.source_folder(name)) if name in RECIPES else "none"
        {"fetched": ready, "begun": begun, "none": none}[state].append(name)
    named = (("built", built), ("fetched", ready), ("begun to fetch", begun), ("not here", none))
    told = "; ".join(f"{word}: {', '.join(names)}" for word, names in named if names)
    command = workspace.command()
    if begun:
        return CheckResult("data", True, told, f"`{command} data get {begun[0]}` goes on.")
    if ready:
        return CheckResult("data", True, told, f"`{command} build {ready[0]}` builds what was fetched.")
    if not built:
        return CheckResult(
            "data",
            True,
            told,
            f"`{command} data get cmc-bench` fetches a benchmark's data; `rashomon demo` needs none.",
        )
    return CheckResult("data", True, told)


def demo(workspace: Workspace) -> CheckResult:
    """Whether the demo's model and charts are there, whole."""
    from mlx_backends.models.discovery import inspect

    folder = ASSETS / "demo"
    try:
        for name in ("model-4bit", "model-bf16"):
            inspect(folder / name)
    except (RashomonError, OSError) as error:
        return CheckResult("demo", False, str(error), "install Rashomon again; its demo's model is part of it.")
    return CheckResult("demo", True, "its model is here, in 4 bits and bf16; `rashomon demo` runs it")


def device(workspace: Workspace) -> CheckResult:
    """Who has this machine's device now."""
    from app.engine.workers.device_lock import lease_path
    from app.store.locks import FileLock

    holder = FileLock(lease_path()).holder()
    return CheckResult("device", True, f"held by {holder}; other runs wait for it" if holder else "free")
