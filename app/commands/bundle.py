"""``rashomon bundle`` and ``rashomon open``: runs as one file, and a look at such a file without trusting it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from app.commands.adopt import adopt_and_report, print_received
from app.commands.runs import run_to_json
from app.commands.runs import runs as print_runs
from app.commands.spinner import spinner
from app.engine.adopt import ReceivedRun, find_build, read_received_run
from app.exports.bundle import write_bundle
from app.store.bundles.layout import BUILDS, MEDIA, MediaChoice, read_manifest
from app.store.workspace import Workspace
from app.system.paths import typed_path
from app.text.escape import clean, size
from benchmarks.build import Build
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.safe_files import make_folder

SUFFIX = ".rashomon.zip"


def bundle_runs(
    workspace: Workspace, runs: Sequence[str], *, out: Path | None, media: MediaChoice | None, as_json: bool
) -> None:
    """Write runs to one file, and print what it has and what it lacks."""
    folders = list(dict.fromkeys(workspace.run_folder(run) for run in runs))
    path = typed_path(out or Path(f"{folders[0].name}{SUFFIX}"))
    with spinner("reading the runs") as update:
        written = write_bundle(workspace, folders, path, media, update)
    if as_json:
        facts = {"path": str(path), "bytes": written.size, "runs": written.runs}
        print(json.dumps({**facts, "media": written.choice, "media files": written.media, "notes": written.notes}))
        return
    kind = "thumbnails" if written.choice == "thumbnails" else "media"
    noun = "run" if written.runs == 1 else "runs"
    print(clean(f"wrote {path}: {written.runs} {noun}, {written.media} {kind}, {size(written.size)}"))
    for note in written.notes:
        print(clean(note))


def list_bundle(workspace: Workspace, file: Path, *, imports: bool, yes: bool, as_json: bool) -> int:
    """List the runs of a bundle, or copy them to the workspace; return the exit code."""
    path = typed_path(file)
    with spinner("checking the bundle"):
        bundle = Workspace.open(path)
    if imports:
        return _import(workspace, bundle, yes=yes)
    manifest = read_manifest(bundle.path)
    if as_json:
        runs = [run_to_json(run) for run in bundle.summaries()]
        facts = {key: manifest.get(key) for key in ("format", "rashomon", "media", "licences", "notes")}
        print(json.dumps({**facts, "folder": str(bundle.path), "runs": runs}, indent=2))
        return 0
    print(clean(f"{path.name}: made by Rashomon {manifest.get('rashomon')}, media: {manifest.get('media')}; read-only"))
    notes = manifest.get("notes")
    for note in notes if isinstance(notes, list) else ():
        print(clean(f"  {note}"))
    print_runs(bundle, as_json=False)
    print(clean(f"next: {bundle.command()} show RUN; --import copies the runs to your workspace"))
    return 0


def _import(workspace: Workspace, bundle: Workspace, *, yes: bool) -> int:
    """Copy the runs of a bundle, and the builds that they need, to the workspace after asking."""
    workspace.require_writable()
    received = [read_received_run(workspace, bundle.runs_folder / name) for name in bundle.run_names()]
    for run in received:
        print_received(run)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise SpecError("importing needs confirmation; check the list above, then add --yes.")
        import click

        if not click.confirm(f"Copy {len(received)} runs to {clean(str(workspace.path))}?", default=False):
            print("nothing was imported.")
            return 0
    code = 0
    for run in received:
        data = find_build(workspace, run.spec.benchmark, run.digest) or _import_build(workspace, bundle, run)
        code = max(code, adopt_and_report(workspace, run, name=None, data=data))
    return code


def _import_build(workspace: Workspace, bundle: Workspace, run: ReceivedRun) -> Path | None:
    """Copy the build of a run to the workspace; return its folder, or None if the bundle lacks it or its media."""
    source = bundle.path / BUILDS / str(run.digest)
    if run.digest is None or not (source / MEDIA).is_dir():
        return None
    build = Build.open(source)
    if build.digest != run.digest or build.benchmark != run.spec.benchmark:
        raise StoreError(f"{bundle.bundle} has another build than {run.folder.name} was made from; get a fresh copy.")
    usual = workspace.build_folder(run.spec.benchmark)
    target = usual.with_name(f"{usual.name}-{run.digest[:8]}") if usual.exists() else usual
    workspace.make()
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = make_folder(target.parent, f".{target.name}.building")
    try:
        for path in sorted(source.rglob("*")):
            if path.is_file():
                copy = staging / path.relative_to(source)
                copy.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, copy)
        staging.rename(target)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise StoreError(f"cannot write {target}: {error.strerror}; name another --workspace.") from error
    print(clean(f"{target.name}: the build of {run.folder.name}, {build.manifest['instances']} rows"))
    return target
