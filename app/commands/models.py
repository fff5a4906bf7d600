"""``rashomon models get``: a model from the Hub into its cache."""

from __future__ import annotations

from app.commands.spinner import doing
from app.fetch.execute import INTERRUPTED, FetchInterrupted, agreed, carry_out
from app.fetch.hub import check_online
from app.fetch.model import blobs, link, listed
from app.fetch.plan import make_plan
from app.store.locks import FileLock
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.errors import ModelError, StoreError
from mlx_backends.models.catalog import curated
from mlx_backends.models.discovery import inspect
from mlx_backends.models.memory_estimate import fits


def get(workspace: Workspace, model: str, *, yes: bool, dry_run: bool, force: bool) -> int:
    """Fetch ``model`` after saying what that is; the exit code."""
    if model.count("/") != 1:
        known = [each.id for each in curated()]
        near = [name for name in known if name.partition("/")[2].casefold().startswith(model.casefold())]
        hint = f"write it like org/name, such as {(near or known)[0]}; `rashomon models` lists more."
        raise ModelError(f"{model!r} is no id of the Hub; {hint}")
    check_online()
    with doing(f"asking the Hub for {model}"):
        found, files = listed(model)
        weights = sum(file.size for file in found.files if file.name.endswith(".safetensors"))
        fit = fits(weights)
        plan = make_plan(model, blobs(model).parent, files, [found.licence or "not stated"], [fit.sentence])
    for line in plan.lines():
        print(line)
    plan.check_room()
    if not fit.ok and not force:
        raise ModelError(f"{model} would not run here: {fit.sentence}; take a smaller one, or add --force.")
    if dry_run:
        return 0
    if plan.missing and not agreed(yes):
        print("nothing was fetched.")
        return 0
    again = f"rashomon models get {model}"
    try:
        blobs(model).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot write {blobs(model)}: {error.strerror}; HF_HOME says where the cache lies."
        ) from error
    with FileLock(blobs(model).parent / ".rashomon.lock") as lock:
        if not lock.acquire(f"`{again}`"):
            raise StoreError(f"{lock.holder() or 'another process'} is fetching {model}; wait for it.")
        try:
            carry_out(plan, f"{again} --yes" if yes else again)
        except FetchInterrupted:
            return INTERRUPTED
        folder = link(found)
    told = inspect(folder)
    print(f"fetched {model}: {told.architecture}, {told.quantisation}, in {clean(str(folder))}")
    print(f"next: {workspace.command()} --batch --benchmark cmc-bench --model {model} --limit 50")
    return 0
