"""Checks of models, benchmark data, the demo and the device."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING

from app.doctor.check_result import CheckResult
from app.store.workspace import Workspace
from app.system.project_paths import ASSETS
from benchmarks.errors import RashomonError
from benchmarks.registry import working_benchmarks

if TYPE_CHECKING:
    from mlx_backends.models.model_discovery import ModelInfo

_MAX_LISTED = 5
_SUGGESTED_MODEL = "mlx-community/Qwen3-VL-4B-Instruct-4bit"


def models(workspace: Workspace) -> CheckResult:
    """Count the cached models that can run, and say why others cannot."""
    from benchmarks.fetch.hub_cache import hub_cache
    from mlx_backends.models.model_discovery import cached_models

    cached = cached_models()
    usable = [model for model in cached if model.problem is None]
    vision = sum(model.engine == "mlx-vlm" for model in usable)
    message = f"{vision} vision-language and {len(usable) - vision} text models in {hub_cache()}"
    if not usable:
        return CheckResult(
            "models",
            True,
            message,
            f"`rashomon models get {_SUGGESTED_MODEL}` fetches one; `rashomon demo` needs none.",
        )
    unusable_models = [model for model in cached if model.problem is not None]
    more = " `rashomon models` names the others." if len(unusable_models) > 1 else ""
    fix = f"{len(unusable_models)} more cannot run; {_reason(unusable_models[0])}{more}" if unusable_models else ""
    return CheckResult("models", True, message, fix)


def data(workspace: Workspace) -> CheckResult:
    """List the benchmarks that are built, and the state of the others."""
    from app.fetch import fetched_files_record
    from app.fetch.benchmark_downloads import RECIPES
    from benchmarks.build import Build

    built_names: list[str] = []
    ready_names: list[str] = []
    partial: list[str] = []
    none: list[str] = []
    for name in (benchmark.name for benchmark in working_benchmarks()):
        folder = workspace.build_folder(name)
        if folder.exists():
            try:
                Build.open(folder)
            except RashomonError as error:
                return CheckResult(
                    "data", False, str(error), f"`{workspace.command()} build {name} ...  --replace` builds it again."
                )
            built_names.append(name)
            continue
        state = fetched_files_record.fetch_state(workspace.source_folder(name)) if name in RECIPES else "none"
        {"fetched": ready_names, "begun": partial, "none": none}[state].append(name)
    names_by_state = (
        ("built", built_names),
        ("fetched", ready_names),
        ("partly fetched", partial),
        ("not fetched", none),
    )
    message = "; ".join(f"{state}: {', '.join(names)}" for state, names in names_by_state if names)
    command = workspace.command()
    if partial:
        return CheckResult("data", True, message, f"`{command} data get {partial[0]}` resumes fetching.")
    if ready_names:
        return CheckResult(
            "data", True, message, f"`{command} build {ready_names[0]}` builds it from the fetched data."
        )
    if not built_names:
        return CheckResult(
            "data",
            True,
            message,
            f"`{command} data get cmc-bench` fetches a benchmark's data; `rashomon demo` needs none.",
        )
    return CheckResult("data", True, message)


def demo(workspace: Workspace) -> CheckResult:
    """Check that the demo's models are installed and complete."""
    from mlx_backends.models.model_discovery import inspect

    folder = ASSETS / "demo"
    try:
        for name in ("model-4bit", "model-bf16"):
            inspect(folder / name)
    except (RashomonError, OSError) as error:
        return CheckResult("demo", False, str(error), "install Rashomon again; the demo's model is part of it.")
    return CheckResult("demo", True, "its model is installed, in 4-bit and bf16; `rashomon demo` runs it")


def checks(workspace: Workspace) -> CheckResult:
    """List the models whose stored checks the runs of this machine rest on."""
    from mlx_backends.stored_checks import checks_path, read_checks

    stored = [check for check in read_checks() if check.is_of_this_machine]
    if not stored:
        return CheckResult("checks", True, "none stored; the first run of each model checks how it may be answered")
    newest: dict[str, str] = {}
    for check in stored:
        newest.setdefault(check.model, time.strftime("%Y-%m-%d", time.localtime(check.at)))
    listed = ", ".join(f"{model} ({day})" for model, day in islice(newest.items(), _MAX_LISTED))
    more = f" and {len(newest) - _MAX_LISTED} more" if len(newest) > _MAX_LISTED else ""
    message = f"{len(stored)} stored of {listed}{more}, in {checks_path()}"
    return CheckResult("checks", True, f"{message}; `rashomon doctor --forget-checks` forgets them")


def features(workspace: Workspace) -> CheckResult:
    """Report the size of the vision features on disk, and their limit."""
    from mlx_backends.mlx.vision.feature_folder import FOLDER, LIMIT, default_cache, limit_bytes, stored_files

    cache = default_cache()
    folder = cache / FOLDER
    try:
        files = stored_files(cache)
        used = sum(file.size for file in files)
        limit = limit_bytes(cache, used)
    except OSError as error:
        return CheckResult("features", True, f"{folder}: {error.strerror}", "Runs encode images again; remove it.")
    size = f"{used / 1e9:.1f} of at most {limit / 1e9:.1f} GB" if limit else f"off by {LIMIT}, {used / 1e9:.1f} GB"
    message = f"{size} ({len(files)} files), in {folder}"
    return CheckResult("features", True, f"{message}; `rashomon doctor --forget-features` clears it")


def device(workspace: Workspace) -> CheckResult:
    """Report which run holds this machine's device."""
    from app.engine.workers.device_lock import device_lock_path
    from app.store.file_locks import FileLock

    holder = FileLock(device_lock_path()).holder()
    return CheckResult("device", True, f"held by {holder}; other runs wait for it" if holder else "free")


def _reason(model: ModelInfo) -> str:
    problem = model.problem or ""
    return problem if problem.startswith(f"{model.name} ") else f"{model.name}: {problem}"
