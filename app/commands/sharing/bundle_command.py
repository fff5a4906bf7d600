"""``rashomon bundle`` and ``rashomon open``: runs as one file, and a look at such a file without trusting it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from app.commands.results.runs_command import runs as print_runs
from app.commands.running.adopt_command import adopt_and_report, is_present, print_received
from app.commands.terminal.spinner import spinner
from app.engine.adopt_run import read_received_run
from app.exit_codes import DONE, FAILURES, EndedError
from app.exports.bundle_export import write_bundle
from app.json_output.bundles_json import WrittenBundle, opened_bundle
from app.json_output.json_envelope import print_json
from app.store.bundles.bundle_layout_and_limits import MediaChoice, read_manifest
from app.store.run_references import run_folders
from app.store.workspace import Workspace
from app.text.text_escaping import clean, size
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.typed_paths import typed_path

SUFFIX = ".rashomon.zip"


def bundle_runs(
    workspace: Workspace, runs: Sequence[str], *, out: Path | None, media: MediaChoice | None, as_json: bool
) -> None:
    """Write runs to one file, and print what it has and what it lacks."""
    folders = list(dict.fromkeys(run_folders(workspace, runs)))
    path = typed_path(out or Path(f"{folders[0].name}{SUFFIX}"))
    with spinner("reading the runs") as update:
        written = write_bundle(workspace, folders, path, media, update)
    if as_json:
        facts = WrittenBundle(
            file=path.name,
            bytes=written.size,
            run_count=written.runs,
            media=written.choice,
            media_files=written.media,
            notes=written.notes,
        )
        print_json("bundle", facts, folders=folders)
        return
    kind = "thumbnails" if written.choice == "thumbnails" else "media"
    noun = "run" if written.runs == 1 else "runs"
    print(clean(f"wrote {path}: {written.runs} {noun}, {written.media} {kind}, {size(written.size)}"))
    for note in written.notes:
        print(clean(note))


def list_bundle(workspace: Workspace, file: Path, *, imports: bool, yes: bool, as_json: bool) -> int:
    """List the runs of a bundle, or copy them to the workspace; return the exit code."""
    if imports and as_json:
        raise SpecError("--json lists a bundle's runs and --import prints no JSON; leave one of them out.")
    path = typed_path(file)
    with spinner("checking the bundle"):
        bundle = Workspace.open(path)
    if imports:
        return _import(workspace, bundle, yes=yes)
    facts = opened_bundle(path.name, read_manifest(bundle.path), bundle)
    if as_json:
        print_json("open", facts)
        return 0
    print(clean(f"{facts.file}: made by Rashomon {facts.written_by}, media: {facts.media}; read-only"))
    for note in facts.notes:
        print(clean(f"  {note}"))
    print_runs(bundle, as_json=False)
    print(
        clean(
            f"next: {bundle.command()} show RUN, or view RUN in a browser; --import copies the runs to your workspace"
        )
    )
    return 0


def _import(workspace: Workspace, bundle: Workspace, *, yes: bool) -> int:
    """Copy the runs of a bundle, and the builds that they need, to the workspace after asking.

    A run that the workspace has with the same content is skipped, so that an interrupted import resumes.
    """
    workspace.require_writable()
    if not bundle.run_names():
        raise StoreError(f"{bundle.bundle} has no runs; get a fresh copy from its author.")
    runs = [read_received_run(workspace, bundle.runs_folder / name) for name in bundle.run_names()]
    received = [run for run in runs if not is_present(workspace, run)]
    if not received:
        return 0
    for received_run in received:
        print_received(received_run)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise SpecError("importing needs confirmation; check the list above, then add --yes.")
        import click

        if not click.confirm(f"Copy {len(received)} runs to {clean(str(workspace.path))}?", default=False):
            print("nothing was imported.")
            return 0
    incomplete = []
    for received_run in received:
        try:
            adopt_and_report(workspace, received_run, name=None)
        except EndedError as end:
            incomplete.append(str(end))
    if incomplete:
        raise EndedError(FAILURES, " ".join(incomplete))
    return DONE
