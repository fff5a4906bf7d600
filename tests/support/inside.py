"""The command line in this process: everything from its arguments to its exit code, without the second that starting costs.

What a process of its own is needed for (signals, kills, pipes, a worker that dies) is in :mod:`tests.support.command`.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from app.engine.workers import standby_worker, worker_supervisor
from app.engine.workers.run_worker import Worker
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_process import exit_code_of
from app.main import main
from benchmarks.errors import RashomonError


def run_inside(
    arguments: Sequence[str], environment: Mapping[str, str], home: Path, *, real_workers: bool = False
) -> tuple[int, str, str]:
    """Run ``rashomon`` with these arguments in ``home``; its exit code and what it wrote. Raises what it does not catch.

    ``real_workers`` are processes, as a user's are.
    """
    written = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2)]
    code = 0
    with ExitStack() as inside:
        inside.enter_context(_at_home(environment, home))
        if not real_workers:
            inside.enter_context(patch.object(worker_supervisor.Supervisor, "_run_worker", work_here))
        inside.enter_context(redirect_stdout(written[0]))
        inside.enter_context(redirect_stderr(written[1]))
        try:
            main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    out, err = (_text(stream) for stream in written)
    return code, out, err


@contextmanager
def _at_home(environment: Mapping[str, str], home: Path) -> Iterator[None]:
    """This process as one that was started in ``home``, and afterwards as it was."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    before = Path.cwd()
    with (
        open(os.devnull) as nothing,
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "argv", ["rashomon"]),
        patch.object(sys, "stdin", nothing),
        patch.object(standby_worker, "start", lambda model: None),
    ):
        os.chdir(home)
        try:
            yield
        finally:
            os.chdir(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def work_here(supervisor: worker_supervisor.Supervisor, job: Job) -> Generator[None, None, worker_supervisor._End]:
    """Work a job off in this process, after the look at it that a worker's supervisor takes at least."""
    supervisor._show()
    supervisor._announce(job, os.getpid())
    yield
    worker = Worker(job)
    try:
        end = worker_supervisor._End(worker.work())
    except RashomonError as error:
        end = worker_supervisor._End(exit_code_of(error), str(error))
    return end


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8").replace("\r\n", "\n")
