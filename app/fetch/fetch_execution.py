"""Execution of a fetch plan, with confirmation and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from app.exit_codes import INTERRUPTED, EndedError
from app.fetch.fetch_plan import FetchPlan
from app.text.text_escaping import clean, size
from benchmarks.errors import SpecError
from benchmarks.fetch.file_download import DownloadProgress, download
from benchmarks.fetch.remote_file import FetchError, RemoteFile

PROGRESS_LINE = "RASHOMON_PROGRESS_LINE"
"""The environment variable by which the interface asks for one line of progress that is rewritten, as on a terminal."""
_LINE_SECONDS, _REWRITE_SECONDS = 3.0, 0.5
"""Seconds between lines of progress where standard error is not a terminal, and between versions of one that is rewritten."""


def confirm_fetch(yes: bool) -> bool:
    """Return whether to execute a plan: ``yes``, or the answer on the terminal. Raises SpecError without a terminal."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SpecError("fetching needs confirmation; check the plan above, then add --yes.")
    import click

    return click.confirm("Fetch it?", default=True)


def execute_plan(plan: FetchPlan, command: str) -> None:
    """Fetch the missing files. ``command`` is the command that resumes.

    Raises FetchError for files that could not be fetched, and EndedError if the user stops it.
    """
    if not plan.missing:
        return
    show = _progress_printer(plan)
    try:
        failures = download(plan.missing, show)
    except FetchError as error:
        if sys.stderr.isatty() or PROGRESS_LINE in os.environ:
            print(file=sys.stderr)  # below the progress line
        raise FetchError(f"{error}" if "same command" in str(error) else f"{error} Complete files are kept.") from error
    except BaseException as error:
        if isinstance(error, Exception):
            raise
        print(file=sys.stderr)  # below the progress line
        raise EndedError(INTERRUPTED, f"interrupted; complete files are kept, and `{command}` resumes.") from error
    if failures:
        raise FetchError(_failure_text(failures, len(plan.missing), command))


def _failure_text(failures: dict[RemoteFile, str], total: int, command: str) -> str:
    examples = "; ".join(f"{file.name}: {reason}" for file, reason in list(failures.items())[:3])
    more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
    count = f"{len(failures):,} of {total:,} files could not be fetched"
    others = "the others are kept, " if len(failures) < total else ""
    return f"{count} ({examples}{more}); {others}`{command}` tries again."


def _progress_printer(plan: FetchPlan) -> Callable[[DownloadProgress], None]:
    """Return a function that prints progress to standard error: one changing line on a terminal, or a line every few seconds."""
    terminal, rewrites = sys.stderr.isatty(), PROGRESS_LINE in os.environ
    interval = _REWRITE_SECONDS if rewrites else _LINE_SECONDS
    start = last = time.monotonic()
    total = len(plan.missing)
    ended = False

    def show(progress: DownloadProgress) -> None:
        nonlocal last, ended
        now = time.monotonic()
        if ended or (not terminal and now - last < interval and progress.files < total):
            return
        last, ended = now, progress.files == total
        rate = progress.bytes / max(now - start, 0.1)
        seconds_left = max(0, plan.bytes - progress.bytes) / rate if rate else None
        remaining = "" if seconds_left is None or ended else f", {_minutes(seconds_left)} left"
        done = f"{progress.files:,} of {total:,} files, {size(progress.bytes)} of {size(plan.bytes)}"
        line = f"{done}, {size(int(rate))}/s{remaining}"
        print(
            f"\r\x1b[K{clean(line)}" if terminal else f"\r{line}" if rewrites else line,
            end="" if (terminal or rewrites) and not ended else "\n",
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
