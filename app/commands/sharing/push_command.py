"""``rashomon push``: runs as a data set on the Hugging Face Hub, after showing what would be sent."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.commands.terminal.spinner import spinner
from app.exports.export_writer import write_files, written_message
from app.exports.hub_data_set import SAMPLES, HubDataSet, make_data_set
from app.fetch.hub_upload import check_ready, repository_name, upload
from app.store.run_references import run_folders
from app.store.workspace import Workspace
from app.text.text_escaping import clean, size
from benchmarks.errors import SpecError
from benchmarks.untrusted.typed_paths import typed_path


def push_runs(
    workspace: Workspace,
    runs: Sequence[str],
    target: str,
    *,
    judge: str | None = None,
    public: bool = False,
    yes: bool = False,
    dry_run: bool = False,
    out: Path | None = None,
) -> None:
    """Show what would be sent, ask, and send it; with ``out``, write the files to that folder instead.

    With ``dry_run``, only show it, which needs neither a login nor the network.
    """
    name = repository_name(target)
    folders = run_folders(workspace, runs)
    with spinner("making the data set"):
        data_set = make_data_set(workspace, folders, name, judge)
    if out is not None and not dry_run:
        folder = typed_path(out)
        write_files(folder, dict(data_set.files))
        print(written_message(folder, data_set.files))
        return
    for line in _description(data_set, name, public=public):
        print(clean(line))
    if dry_run:
        print("nothing was sent.")
        return
    check_ready()
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise SpecError("sending needs confirmation; check the list above, then add --yes.")
        import click

        if not click.confirm("Send it?", default=False):
            print("nothing was sent.")
            return
    with spinner("sending"):
        page = upload(name, data_set.files, public=public, message=f"Add {', '.join(map(_name, folders))}")
    print(clean(f"sent to {page} ({_visibility(public=public)})"))


def _description(data_set: HubDataSet, name: str, *, public: bool) -> list[str]:
    """Return what would be sent, as lines."""
    lines = [f"to {name} on the Hub, {_visibility(public=public)}, {size(data_set.size)}:"]
    rows = {SAMPLES: f", {data_set.rows:,} rows: prompts, answers and verdicts; no media"}
    lines += [f"  {file:<22} {size(len(data))}{rows.get(file, '')}" for file, data in data_set.files.items()]
    return [*lines, *_licences("data", data_set.citations.data), *_licences("model", data_set.citations.models)]


def _licences(kind: str, licences: Mapping[str, str]) -> list[str]:
    return [f"  licence of {kind} {name}: {terms}" for name, terms in licences.items()]


def _visibility(*, public: bool) -> str:
    return "public" if public else "private"


def _name(folder: Path) -> str:
    return clean(folder.name)
