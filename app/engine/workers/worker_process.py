"""Worker processes as such: their output, the report of their end, and what an exception means for their work."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NoReturn, Self, TextIO

from app.exit_codes import STOPPED
from app.system.worker_logs import report_exception, write_single_lines
from benchmarks.errors import ModelError, RashomonError
from benchmarks.plugins.find_plugins import plugin_fault
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import DeviceLostError, metal_fault

if TYPE_CHECKING:
    from app.store.run_store import RunStore


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a worker.

    Attributes:
        code: The exit code of the command.
        message: An error that the user can correct.
        death: A cause of death that a new worker may survive, a phrase that follows "the worker".
        memory: Flag for a death by lack of memory.
        failure: An exception that nobody expected, in one line.
    """

    code: int
    message: str = ""
    death: str = ""
    memory: bool = True
    failure: str = ""

    @classmethod
    def read(cls, report: bytes) -> Self | None:
        """Return what a worker has reported; None if it ended without a report, or in the middle of it."""
        try:
            return cls(**json.loads(report))
        except ValueError:
            return None


def ending(code: int, outcome: Outcome | None) -> str:
    """Return how a worker failed, from its exit code and report: a phrase that follows "the worker of RUN"."""
    if outcome is not None and outcome.failure:
        return f"failed ({outcome.failure})"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def take_output() -> TextIO:
    """Return the pipe to the parent, for the report; whatever libraries print goes to standard error, in single lines."""
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    write_single_lines()
    sys.stdout = sys.stderr
    return report


def note_state(store: RunStore, state: str, note: str = "", *, ended: bool = False) -> None:
    """Record the state of a run that this process works on, and a note on it; durably if the work has ``ended``."""
    store.set_meta("state", {"state": state, "note": note, "pid": os.getpid()}, durable=ended)


def outcome_of(error: BaseException) -> Outcome:
    """Return the end of a worker that ``error`` has ended, and write its traceback unless it is the user's to correct."""
    from mlx_backends.core.metal_faults import out_of_memory

    if isinstance(error, RashomonError) and not isinstance(error, DeviceLostError):
        return Outcome(exit_code_of(error), str(error))
    report_exception(error)
    if metal_fault(error) is not None and not isinstance(error, DeviceLostError):
        error = DeviceLostError(error)
    if isinstance(error, DeviceLostError):
        return Outcome(STOPPED, death=error.cause, memory=error.fault.is_excess)
    if out_of_memory(error):
        return Outcome(STOPPED, death=f"ran out of memory ({one_line(error)})")
    if (fault := plugin_fault(error)) is not None:
        return Outcome(fault.exit_code, str(fault))
    return Outcome(STOPPED, failure=one_line(error))


def exit_code_of(error: RashomonError) -> int:
    """Return the exit code for an error that has ended a worker: a model that was right when the run was planned is none now."""
    return STOPPED if isinstance(error, ModelError) else error.exit_code


def end_process(report: TextIO, outcome: Outcome) -> NoReturn:
    """Report the outcome and end this process.

    The interpreter's teardown is skipped: library threads must not keep a finished worker, and its device, alive.
    """
    with suppress(OSError):  # the parent may be gone
        print(json.dumps(asdict(outcome)), file=report, flush=True)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(outcome.code)
