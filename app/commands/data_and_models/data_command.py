"""``rashomon data``: the data that benchmarks are built from, listed and fetched."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.commands.terminal.spinner import spinner
from app.fetch import fetched_files_record
from app.fetch.benchmark_downloads import NOT_FETCHED, RECIPES, Recipe, RequiredFiles, get_recipe, source_options
from app.fetch.fetch_execution import confirm_fetch, execute_plan
from app.fetch.fetch_plan import FetchPlan, make_plan, read_small
from app.json_output.catalog_json import DataEntry
from app.json_output.json_envelope import print_json
from app.report.runs.portable_facts import portable_path
from app.store.file_locks import FileLock
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean, size
from benchmarks.errors import BusyError, NoAccessError
from benchmarks.fetch.hub_repository import check_online
from benchmarks.untrusted.safe_files import make_folder
from benchmarks.untrusted.typed_paths import typed_path


def listing(workspace: Workspace, *, as_json: bool) -> None:
    """Print the data each benchmark is built from, and whether it was fetched."""
    entries: list[DataEntry] = []
    for name in (*RECIPES, *NOT_FETCHED):
        folder = workspace.source_folder(name)
        fetched = fetched_files_record.read_manifest(folder)
        entries.append(
            DataEntry(
                benchmark=name,
                description=RECIPES[name].what if name in RECIPES else NOT_FETCHED[name],
                state=fetched_files_record.fetch_state(folder) if name in RECIPES else "not fetched by Rashomon",
                folder=portable_path(folder, workspace.path),
                files=fetched.files if fetched else None,
                bytes=fetched.bytes if fetched else None,
            )
        )
    if as_json:
        print_json("data", entries)
        return
    for entry in entries:
        state = entry.state
        if state == "fetched":
            folder = workspace.source_folder(entry.benchmark)
            state = f"fetched: {count_of(entry.files or 0, 'file')}, {size(entry.bytes or 0)} in {folder}"
        elif state == "begun":
            state = f"partly fetched; `{workspace.command()} data get {entry.benchmark}` resumes"
        elif state == "none":
            state = "not fetched"
        print(f"{entry.benchmark:<18} {clean(entry.description)}\n{'':<18} {clean(state)}")


def get(workspace: Workspace, benchmark: str, *, to: Path | None, yes: bool, dry_run: bool) -> int:
    """Fetch the data of ``benchmark`` after printing the plan; return the exit code."""
    benchmark_recipe = get_recipe(benchmark)
    folder = typed_path(to) if to else workspace.source_folder(benchmark)
    check_online()
    listed = list_data(benchmark_recipe, folder)
    for line in listed.plan.lines():
        print(line)
    listed.plan.check_disk_space()
    if dry_run:
        return 0
    command = f"{workspace.command()} data get {benchmark}" + (f" --to {shlex.quote(str(folder))}" if to else "")
    if listed.plan.missing and not confirm_fetch(yes):
        print("nothing was fetched.")
        return 0
    fetch_data(listed, f"{command} --yes" if yes else command)
    print_fetched(listed)
    sources = f" {source_options(benchmark_recipe.pairs(folder))}" if to else ""
    print(f"next: {workspace.command()} build {benchmark}{clean(sources)}")
    return 0


@dataclass(frozen=True, slots=True)
class ListedData:
    """The data of a benchmark as servers list them, with the plan to fetch them."""

    benchmark: str
    needed: RequiredFiles
    plan: FetchPlan


def list_data(recipe: Recipe, folder: Path) -> ListedData:
    """Return what servers say of the data of a recipe. Raises a RashomonError if they cannot be had."""
    with spinner(f"listing the files that {recipe.benchmark} needs"):
        needed = recipe.needed(folder, read_small)
        notes = [recipe.manual_steps] if recipe.manual_steps else []
        plan = make_plan(f"{recipe.benchmark}: {recipe.what}", folder, needed.files, needed.licences, notes)
    return ListedData(recipe.benchmark, needed, plan)


def fetch_data(listed: ListedData, command: str) -> None:
    """Fetch listed data to the folder of their plan. ``command`` is the command that resumes.

    Raises a RashomonError, and EndedError if the user stops it.
    """
    plan, folder = listed.plan, listed.plan.folder
    _make(folder)
    with FileLock(folder / ".lock") as lock:
        if not lock.acquire(f"`{command}`"):
            raise BusyError(f"{lock.holder() or 'another process'} is fetching to {folder}; wait for it to end.")
        if plan.missing:
            fetched_files_record.remove_manifest(folder)
            _make(folder, {file.path.parent for file in plan.missing})
            execute_plan(plan, command)
        needed = listed.needed
        fetched_files_record.write_manifest(
            folder,
            fetched_files_record.FetchManifest(
                listed.benchmark, len(plan.files), _total(plan), needed.licences, needed.revisions
            ),
        )


def print_fetched(listed: ListedData) -> None:
    """Print how much was fetched, and where it is."""
    plan = listed.plan
    print(f"fetched {count_of(len(plan.files), 'file')}, {size(_total(plan))}, to {clean(str(plan.folder))}")


def _total(plan: FetchPlan) -> int:
    return sum(file.path.stat().st_size for file in plan.files)


def _make(folder: Path, inner: Iterable[Path] = ()) -> None:
    """Create a folder and its ``inner`` folders, none of which may be a link. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(set(inner) - {folder}):
            make_folder(folder, str(path.relative_to(folder)))
    except OSError as error:
        raise NoAccessError(
            f"cannot write {folder}: {error.strerror}; name another folder with --to or --workspace."
        ) from error
