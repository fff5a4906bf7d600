"""``rashomon adopt``: a new run from the valid answers of a run from another machine."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from app.engine.adopt_run import ReceivedRun, adopt, find_adopted, matching_build, read_received_run, usable_build
from app.exit_codes import DONE, FAILURES, EndedError
from app.store.run_references import run_folder
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean
from benchmarks.errors import SpecError

_MAX_LISTED = 10
"""The number of left-out items that are listed."""


def adopt_run(workspace: Workspace, run: str, *, name: str | None, data: Path | None, yes: bool) -> int:
    """Show what a received run would use, ask, and copy it to a new run; return 0. Raises as :func:`adopt_and_report`."""
    received = read_received_run(workspace, run_folder(workspace, run))
    if is_present(workspace, received, name):
        return DONE
    print_received(received)
    build = None if data is None else matching_build(received, data)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise SpecError("adopting needs confirmation; check the list above, then add --yes.")
        import click

        if not click.confirm("Adopt it?", default=False):
            print("nothing was adopted.")
            return 0
        if build is None and received.needs_confirmed_build:
            build = _confirmed_build(received)
    return adopt_and_report(workspace, received, name=name, data=build)


def is_present(workspace: Workspace, received: ReceivedRun, name: str | None = None) -> bool:
    """Return whether the workspace has a run with the same content, called ``name`` unless that is None; print its name."""
    names = [known for known in find_adopted(workspace, received) if name in (None, known)]
    if names:
        print(clean(f"{received.folder.name} is in the workspace already, as {names[0]}."))
    return bool(names)


def print_received(received: ReceivedRun) -> None:
    """Print what a received run would use."""
    origin = "was created on this machine" if received.own else "was not created on this machine"
    print(clean(f"{received.folder.name} {origin}. It would use:"))
    for line in received.lines():
        print(clean(f"  {line}"))


def adopt_and_report(workspace: Workspace, received: ReceivedRun, *, name: str | None, data: Path | None = None) -> int:
    """Copy a received run to a new run and print the result; return 0. Raises EndedError if anything was left out.

    Its build is the one in ``data``, else the workspace's, else a copy of the one in its bundle.
    """
    data = data or usable_build(workspace, received)
    adopted = adopt(workspace, received, name=name, data=data)
    name = adopted.folder.name
    print(
        clean(
            f"{name}: {adopted.answers} answers and {adopted.verdicts} verdicts adopted; the received folder is unchanged."
        )
    )
    for item in adopted.left_out[:_MAX_LISTED]:
        print(clean(f"  left out: {item}"))
    if len(adopted.left_out) > _MAX_LISTED:
        print(f"  left out: {len(adopted.left_out) - _MAX_LISTED} more")
    if data is None and received.named_build is not None:
        resume = f"{workspace.command()} resume {shlex.quote(name)} --data BUILD"
        print(clean(f"  It has no media folder, because the named one was not confirmed; `{resume}` sets one."))
    if adopted.left_out:
        rows = count_of(len(adopted.left_out), "item")
        raise EndedError(FAILURES, f"{name} was adopted without {rows}, damaged or invalid; they are listed above.")
    return DONE


def _confirmed_build(received: ReceivedRun) -> Path | None:
    import click

    if received.named_build is None or not click.confirm(
        f"Use the media in {clean(str(received.named_build))}?", default=False
    ):
        return None
    return matching_build(received, received.named_build)
