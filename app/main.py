"""Entry point of the ``rashomon`` command. Errors a user can cause become one sentence and the documented exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from types import TracebackType

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    0 success; 1 failures were recorded or the run could not continue; 2 the command or spec is wrong; 130 interrupted.
    """
    if "_RASHOMON_COMPLETE" in os.environ:
        from app.cli import cli, completion

        sys.exit(completion.respond(cli))
    from app.cli import run_cli
    from app.cli.options import asks_for_events
    from app.system.open_file_limit import raise_open_files_limit
    from benchmarks.errors import RashomonError

    _warn_of_machine()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.excepthook = _report
    sys.unraisablehook = _repeat_lost_interrupt
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character the terminal cannot encode is no error
    arguments = sys.argv[1:] if arguments is None else arguments
    message = ""
    try:
        raise_open_files_limit()
        code = run_cli(arguments)
        sys.stdout.flush()
    except RashomonError as error:
        from app.text.escape import clean

        message = str(error)
        print(f"rashomon: {clean(message)}", file=sys.stderr)
        code = error.exit_code
    except (Interrupted, KeyboardInterrupt):
        code = _say_interrupted()
    except BrokenPipeError:
        # The reader of the output is gone, as with `| head`; the flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except RuntimeError as error:
        # Python 3.11 wraps what is raised while a class is created.
        if not isinstance(error.__cause__, Interrupted):
            raise
        code = _say_interrupted()
    if asks_for_events(arguments):
        from app.json_output.events import outcome

        outcome.print(code, message or (_INTERRUPTED if code == INTERRUPTED else ""))
    sys.exit(code)


_INTERRUPTED = "interrupted; run the same command again to resume or start over."


def _say_interrupted() -> int:
    print(f"rashomon: {_INTERRUPTED}", file=sys.stderr)
    return INTERRUPTED


def _warn_of_machine() -> None:
    """Print what keeps MLX from working on this Mac; its libraries would say less."""
    if sys.platform == "darwin":
        from app.system.requirements import machine_problem

        if problem := machine_problem():
            print(f"rashomon: {problem}", file=sys.stderr)


class Interrupted(BaseException):
    """SIGINT or SIGTERM outside of a run.

    It is not a KeyboardInterrupt, because CPython ends the process with SIGINT when one passes through ``exec`` (as happens
    while a dataclass is created), even if it is caught; the exit code would be lost.
    """


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug. It may quote foreign text, so terminal control characters are escaped."""
    import traceback

    from app.text.escape import clean

    print(clean("".join(traceback.format_exception(error)), newlines=True), end="", file=sys.stderr)


def _interrupt(*_: object) -> None:
    raise Interrupted


def _repeat_lost_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt again a moment later if the interruption was raised in a callback whose exceptions Python drops."""
    if isinstance(unraisable.exc_value, Interrupted):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    main()
