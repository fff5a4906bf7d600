"""Carrying out a plan: asked for first, shown while it goes on, kept where it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from app.fetch.download import DownloadProgress, download
from app.fetch.plan import FetchPlan
from app.fetch.remote_file import FetchError, RemoteFile
from app.text.escape import clean, size
from benchmarks.errors import SpecError

INTERRUPTED = 130

_EVERY = 10.0


class FetchInterrupted(Exception):
    """Somebody stopped it; the line that goes on was printed."""


def agreed(yes: bool) -> bool:
    """Whether a plan is to be carried out: ``yes``, else what is answered on the terminal. Raises SpecError without one."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SpecError("nothing is fetched unasked; look at what is said above, then say --yes.")
    import click

    return click.confirm("Fetch it?", default=True)


def carry_out(plan: FetchPlan, again: str) -> None:
    """Fetch what is missing. ``again`` is the command that goes on.

    Raises FetchError with what could not be had, and Interrupted where somebody stopped it.
    """
    if not plan.missing:
        return
    show = _shown(plan)
    try:
        lost = download(plan.missing, show)
    except FetchError as error:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # under the line that changes
        raise FetchError(f"{error}" if "same command" in str(error) else f"{error} What is whole is kept.") from error
    except BaseException as error:
        if isinstance(error, Exception):
            raise
        print(f"\nstopped; what is whole is kept, and `{again}` goes on.", file=sys.stderr)
        raise FetchInterrupted from error
    if lost:
        raise FetchError(_told(lost, len(plan.missing), again))


def _told(lost: dict[RemoteFile, str], wanted: int, again: str) -> str:
    some = "; ".join(f"{file.path.name}: {reason}" for file, reason in list(lost.items())[:3])
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    return f"{len(lost):,} of {wanted:,} files could not be fetched ({some}{more}); the others are kept, `{again}` tries again."


def _shown(plan: FetchPlan) -> Callable[[DownloadProgress], None]:
    """Writes how far it is to standard error: one line that changes on a terminal, else a line every ten seconds."""
    terminal = sys.stderr.isatty()
    start = last = time.monotonic()
    wanted = len(plan.missing)
    ended = False

    def show(progress: DownloadProgress) -> None:
        nonlocal last, ended
        now = time.monotonic()
        if ended or (not terminal and now - last < _EVERY and progress.files < wanted):
            return
        last, ended = now, progress.files == wanted
        rate = progress.bytes / max(now - start, 0.1)
        left = max(0, plan.bytes - progress.bytes) / rate if rate else None
        togo = "" if left is None or ended else f", {_minutes(left)} to go"
        line = f"{progress.files:,} of {wanted:,} files, {size(progress.bytes)} of {size(plan.bytes)}, {size(int(rate))}/s{togo}"
        print(
            f"\r\x1b[K{clean(line)}" if terminal else line,
            end="" if terminal and not ended else "\n",
            file=sys.stderr,
        )
        sys.stderr.flush()

    return show


def _minutes(seconds: float) -> str:
    return (
        f"{seconds / 3600:.1f} h"
        if seconds > 5400
        else f"{seconds / 60:.0f} min"
        if seconds > 90
        else f"{seconds:.0f} s"
    )
