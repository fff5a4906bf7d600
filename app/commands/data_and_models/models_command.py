"""``rashomon models``: models recommended and fetched from the Hugging Face Hub, and adapters in other formats."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from app.commands.data_and_models.list_commands import catalog_entry
from app.commands.terminal.spinner import spinner
from app.fetch.fetch_execution import confirm_fetch, execute_plan
from app.fetch.fetch_models import blobs_folder, list_files
from app.fetch.fetch_plan import FetchPlan, make_plan
from app.json_output.catalog_json import ModelRecommendation, RecommendedModel
from app.json_output.json_envelope import print_json
from app.store.file_locks import FileLock
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks import number_ranges as ranges
from benchmarks.errors import BusyError, ModelError, NoAccessError, SpecError
from benchmarks.fetch.hub_cache import link_snapshot
from benchmarks.fetch.hub_repository import Repository, check_online, is_id
from mlx_backends.model_recommendation import TYPICAL, PromptSize, recommend_models, smallest_need
from mlx_backends.models.memory_and_cache_sizes import MemoryFit, memory_fit
from mlx_backends.models.metal_working_set import GIB, estimated_working_set
from mlx_backends.models.model_catalog import catalog_models
from mlx_backends.models.model_discovery import ModelInfo, cached_models, inspect
from mlx_backends.models.weight_files import IncompleteModelError

THIS_MACHINE = "here"
_MOST_GIGABYTES = 100_000


def get(workspace: Workspace, model: str, *, yes: bool, dry_run: bool, force: bool) -> int:
    """Fetch ``model`` after printing the plan; return the exit code."""
    if not is_id(model):
        known = [entry.id for entry in catalog_models()]
        similar_names = [name for name in known if name.partition("/")[2].casefold().startswith(model.casefold())]
        hint = f"write org/name, for example {(similar_names or known)[0]}; `rashomon models` lists more."
        raise ModelError(f"{model!r} is not a Hub id; {hint}")
    check_online()
    listed = list_model(model)
    for line in listed.plan.lines():
        print(line)
    listed.plan.check_disk_space()
    listed.check_memory(force=force)
    if dry_run:
        return 0
    if listed.plan.missing and not confirm_fetch(yes):
        print("nothing was fetched.")
        return 0
    command = f"rashomon models get {model}"
    info, folder = fetch_model(listed, f"{command} --yes" if yes else command)
    print(f"fetched {model}: {info.architecture}, {info.quantisation}, in {clean(str(folder))}")
    print(f"next: {workspace.command()} --batch --benchmark cmc-bench --model {model} --limit 50")
    return 0


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as the Hub lists it, with the plan to fetch it and whether it fits in this machine's memory."""

    repository: Repository
    plan: FetchPlan
    fit: MemoryFit

    def check_memory(self, *, force: bool) -> None:
        """Raise ModelError if the model does not fit, unless the user forces it."""
        if not self.fit.ok and not force:
            raise ModelError(
                f"{self.repository.id} would not run here: {self.fit.sentence}; choose a smaller one, or add --force."
            )


def list_model(model: str) -> ListedModel:
    """Return what the Hub says of a model. Raises a RashomonError if it cannot be had."""
    with spinner(f"listing the files of {model}"):
        repository, files = list_files(model)
        fit = memory_fit(sum(file.size for file in repository.files if file.name.endswith(".safetensors")))
        licences = [repository.licence or "not stated"]
        return ListedModel(
            repository, make_plan(model, blobs_folder(model).parent, files, licences, [fit.sentence]), fit
        )


def fetch_model(listed: ListedModel, command: str) -> tuple[ModelInfo, Path]:
    """Fetch a listed model; return its properties and its folder. ``command`` is the command that resumes.

    Raises a RashomonError, and EndedError if the user stops it.
    """
    model = listed.repository.id
    try:
        blobs_folder(model).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoAccessError(
            f"cannot write {blobs_folder(model)}: {error.strerror}; HF_HOME sets the folder of the cache."
        ) from error
    with FileLock(blobs_folder(model).parent / ".rashomon.lock") as lock:
        if not lock.acquire(f"`{command}`"):
            raise BusyError(f"{lock.holder() or 'another process'} is fetching {model}; wait for it to end.")
        execute_plan(listed.plan, command)
        folder = link_snapshot(listed.repository)
    try:
        return inspect(folder), folder
    except IncompleteModelError as error:  # all that there is was fetched
        raise ModelError(f"{model} was fetched, and its repository {error.problem}; choose another version.") from error


def recommend(workspace: Workspace, memory: str | None, data: Path | None, *, as_json: bool) -> None:
    """Print three models to run next on this machine, or on a Mac with ``memory``, such as 16GB, and why.

    ``data`` is the build whose longest prompt counts. Raises SpecError for a memory that is none or is unknown, ModelError
    if no model of the catalog fits.
    """
    available, source = _memory_for_models(THIS_MACHINE if memory is None else memory)
    prompt = TYPICAL if data is None else _longest_prompt(workspace, data)
    recommended = recommend_models(available, prompt)
    if not recommended:
        raise ModelError(
            f"no listed model fits in the {available / 1e9:.1f} GB of {source}: the smallest needs "
            f"{smallest_need(prompt) / 1e9:.1f} GB, and a tenth is left to other programs; use a remote model, or "
            "`rashomon demo`."
        )
    fetched = {model.name for model in cached_models() if model.problem is None}
    if as_json:
        models = [
            RecommendedModel(
                model=catalog_entry(item.model, fetched),
                needs=item.needs,
                exact=item.is_exact,
                family=item.family,
                reason=item.reason,
                facts=item.facts,
            )
            for item in recommended
        ]
        print_json(
            "models",
            ModelRecommendation(available=available, memory=source, prompt=prompt, models=tuple(models)),
        )
        return
    print(f"memory: {available / 1e9:.1f} GB of {source}; a tenth is left to other programs")
    print(f"prompt: {prompt.name}")
    for number, item in enumerate(recommended, 1):
        print(f"\n{number}. {item.model.id}{' (fetched)' * (item.model.id in fetched)}")
        for fact in (item.reason, *item.facts):
            print(f"   {fact}")
    print(f"\nnext: rashomon models get {recommended[0].model.id}")


def _longest_prompt(workspace: Workspace, data: Path) -> PromptSize:
    from app.annotation.review_session import find_build  # the other commands need none of what it imports
    from app.new_run.longest_prompt import longest_prompt

    return longest_prompt(find_build(workspace, data))


def _memory_for_models(text: str) -> tuple[int, str]:
    """Return the bytes that a machine has for models, and a phrase for what they are a part of. Raises SpecError."""
    if text == THIS_MACHINE:
        fit = memory_fit(0)
        if not fit.available:
            raise SpecError("this machine does not say how much memory it has; name a Mac's, as in `--for 16GB`.")
        return fit.available, fit.source
    written = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?) ?GB", text.strip(), re.ASCII | re.IGNORECASE)
    gigabytes = float(written[1]) if written else 0.0
    if not 0 < gigabytes <= _MOST_GIGABYTES:
        raise SpecError(
            f"--for {ranges.shortened(text)}: give a Mac's memory with its unit, such as 16GB, or {THIS_MACHINE}."
        )
    return estimated_working_set(round(gigabytes * GIB)), f"working set on a Mac with {gigabytes:g} GB"
