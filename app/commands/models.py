"""``rashomon models get``: a model fetched from the Hugging Face Hub into its cache."""

from __future__ import annotations

from app.commands.spinner import spinner
from app.fetch.execute import INTERRUPTED, FetchInterrupted, confirm_fetch, execute_plan
from app.fetch.hub import check_online
from app.fetch.model import blobs_folder, link_snapshot, list_files
from app.fetch.plan import make_plan
from app.store.locks import FileLock
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.errors import ModelError, StoreError
from mlx_backends.models.catalog import catalog_models
from mlx_backends.models.discovery import inspect
from mlx_backends.models.memory_estimate import memory_fit


def get(workspace: Workspace, model: str, *, yes: bool, dry_run: bool, force: bool) -> int:
    """Fetch ``model`` after printing the plan; return the exit code."""
    if model.count("/") != 1:
        known = [entry.id for entry in catalog_models()]
        similar_names = [name for name in known if name.partition("/")[2].casefold().startswith(model.casefold())]
        hint = f"write org/name, for example {(similar_names or known)[0]}; `rashomon models` lists more."
        raise ModelError(f"{model!r} is not a Hub id; {hint}")
    check_online()
    with spinner(f"listing the files of {model}"):
        repository, files = list_files(model)
        weights = sum(file.size for file in repository.files if file.name.endswith(".safetensors"))
        fit = memory_fit(weights)
        plan = make_plan(model, blobs_folder(model).parent, files, [repository.licence or "not stated"], [fit.sentence])
    for line in plan.lines():
        print(line)
    plan.check_disk_space()
    if not fit.ok and not force:
        raise ModelError(f"{model} would not run here: {fit.sentence}; choose a smaller one, or add --force.")
    if dry_run:
        return 0
    if plan.missing and not confirm_fetch(yes):
        print("nothing was fetched.")
        return 0
    command = f"rashomon models get {model}"
    try:
        blobs_folder(model).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot write {blobs_folder(model)}: {error.strerror}; HF_HOME sets the folder of the cache."
        ) from error
    with FileLock(blobs_folder(model).parent / ".rashomon.lock") as lock:
        if not lock.acquire(f"`{command}`"):
            raise StoreError(f"{lock.holder() or 'another process'} is fetching {model}; wait for it to end.")
        try:
            execute_plan(plan, f"{command} --yes" if yes else command)
        except FetchInterrupted:
            return INTERRUPTED
        folder = link_snapshot(repository)
    info = inspect(folder)
    print(f"fetched {model}: {info.architecture}, {info.quantisation}, in {clean(str(folder))}")
    print(f"next: {workspace.command()} --batch --benchmark cmc-bench --model {model} --limit 50")
    return 0
