"""``rashomon data``: what benchmarks need from elsewhere, and fetching it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.commands.spinner import doing
from app.fetch import manifest
from app.fetch.execute import INTERRUPTED, FetchInterrupted, agreed, carry_out
from app.fetch.hub import check_online
from app.fetch.plan import make_plan, read_small
from app.fetch.recipes import NOT_PUBLISHED, RECIPES, recipe, sources_text
from app.store.locks import FileLock
from app.store.workspace import Workspace
from app.system.paths import typed_path
from app.text.escape import clean, size
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import make_folder


def listing(workspace: Workspace, *, as_json: bool) -> None:
    """Print what each benchmark needs, and whether it was fetched."""
    found: list[dict[str, Any]] = []
    for name in (*RECIPES, *NOT_PUBLISHED):
        folder = workspace.source_folder(name)
        known = manifest.fetched(folder)
        found.append(
            {
                "benchmark": name,
                "what": RECIPES[name].what if name in RECIPES else NOT_PUBLISHED[name],
                "state": manifest.state(folder) if name in RECIPES else "not published",
                "folder": str(folder),
                "files": known.files if known else None,
                "bytes": known.bytes if known else None,
            }
        )
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for one in found:
        fetched = f"fetched: {one['files']:,} files, {size(one['bytes'])} in {one['folder']}" if one["files"] else None
        begun = f"begun, not complete: `{workspace.command()} data get {one['benchmark']}` goes on"
        told = fetched or {"begun": begun, "none": "not fetched"}.get(one["state"], one["state"])
        print(f"{one['benchmark']:<18} {clean(one['what'])}\n{'':<18} {clean(told)}")


def get(workspace: Workspace, benchmark: str, *, to: Path | None, yes: bool, dry_run: bool) -> int:
    """Fetch what ``benchmark`` needs, after saying what that is; the exit code."""
    wanted = recipe(benchmark)
    folder = typed_path(to) if to else workspace.source_folder(benchmark)
    check_online()
    with doing(f"asking the servers what {benchmark} needs"):
        needed = wanted.needed(folder, read_small)
        notes = [wanted.by_hand] if wanted.by_hand else []
        plan = make_plan(f"{benchmark}: {wanted.what}", folder, needed.files, needed.licences, notes)
    for line in plan.lines():
        print(line)
    plan.check_room()
    if dry_run:
        return 0
    again = f"{workspace.command()} data get {benchmark}" + (f" --to {shlex.quote(str(folder))}" if to else "")
    if plan.missing and not agreed(yes):
        print("nothing was fetched.")
        return 0
    _make(folder)
    with FileLock(folder / ".lock") as lock:
        if not lock.acquire(f"`{again}`"):
            raise StoreError(f"{lock.holder() or 'another process'} is fetching to {folder}; wait for it.")
        try:
            if plan.missing:
                manifest.forget(folder)
                _make(folder, {file.path.parent for file in plan.missing})
                carry_out(plan, f"{again} --yes" if yes else again)
        except FetchInterrupted:
            return INTERRUPTED
        total = sum(file.path.stat().st_size for file in needed.files)
        manifest.note(
            folder, manifest.FetchManifest(benchmark, len(needed.files), total, needed.licences, needed.revisions)
        )
    print(f"fetched {len(needed.files):,} files, {size(total)}, to {clean(str(folder))}")
    sources = f" {sources_text(wanted.pairs(folder))}" if to else ""
    print(f"next: {workspace.command()} build {benchmark}{clean(sources)}")
    return 0


def _make(folder: Path, inner: Iterable[Path] = ()) -> None:
    """Make a folder, and those ``inner`` ones of it that are not there, none of which may be a link."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for place in sorted(set(inner) - {folder}):
            make_folder(folder, str(place.relative_to(folder)))
    except OSError as error:
        raise StoreError(
            f"cannot write {folder}: {error.strerror}; name another folder with --to or --workspace."
        ) from error
