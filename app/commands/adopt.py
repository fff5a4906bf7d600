"""``rashomon adopt``: take over a run that this machine has not made."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from app.engine.adopt import ReceivedRun, adopt, build_at, examine
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.errors import SpecError

_SHOWN = 10
"""How many things that were left out are listed."""


def adopt_run(workspace: Workspace, run: str, *, name: str | None, data: Path | None, yes: bool) -> int:
    """Show what a received run would use, ask, and make a run of this machine of it; 1 where something was left out."""
    received = examine(workspace, workspace.run_folder(run))
    where = "was made on this machine" if received.own else "was not made on this machine"
    print(clean(f"{received.folder.name} {where}. It would use:"))
    for line in received.lines():
        print(clean(f"  {line}"))
    build = None if data is None else build_at(received, data)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise SpecError("nothing is adopted unasked; look at what is shown above, then add --yes.")
        import click

        if not click.confirm("Adopt it?", default=False):
            print("nothing was adopted.")
            return 0
        if build is None and received.here is None and received.named is not None:
            build = _named(received)
    adopted = adopt(workspace, received, name=name, data=build or received.here)
    name = adopted.folder.name
    print(
        clean(f"{name}: {adopted.answers} answers and {adopted.verdicts} verdicts adopted; the received folder stays.")
    )
    for why in adopted.left_out[:_SHOWN]:
        print(clean(f"  left out: {why}"))
    if len(adopted.left_out) > _SHOWN:
        print(f"  left out: {len(adopted.left_out) - _SHOWN} more")
    if build is None and received.here is None and received.named is not None:
        resume = f"{workspace.command()} resume {shlex.quote(name)} --data BUILD"
        print(clean(f"  It has no media folder: the one that it named was not confirmed; `{resume}` names one."))
    return 1 if adopted.left_out else 0


def _named(received: ReceivedRun) -> Path | None:
    import click

    if received.named is None or not click.confirm(f"Take media from {clean(str(received.named))}?", default=False):
        return None
    return build_at(received, received.named)
