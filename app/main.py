"""The process's entry: ``rashomon``. Turns what a user can cause into one sentence and the documented exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Collection, Sequence
from types import TracebackType

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0 done; 1 failures were recorded or the run could not go on; 2 the command or spec is wrong; 130 interrupted.
    """
    if "_RASHOMON_COMPLETE" in os.environ:
        from app.cli.completion import answer

        sys.exit(answer())
    from app.cli import cli, run_cli
    from app.system.open_files import raise_open_files_limit
    from benchmarks.errors import RashomonError

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.excepthook = _report
    sys.unraisablehook = _repeat_lost_interrupt
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character is no error
    try:
        raise_open_files_limit()
        code = run_cli(arranged(list(sys.argv[1:] if arguments is None else arguments), cli.commands))
        sys.stdout.flush()
    except RashomonError as error:
        from app.text.escape import clean

        print(f"rashomon: {clean(str(error))}", file=sys.stderr)
        code = error.exit_code
    except (Interrupted, KeyboardInterrupt):
        print("rashomon: interrupted; the same command again goes on or starts anew.", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does; the flush at exit must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


class Interrupted(BaseException):
    """SIGINT or SIGTERM outside of a run.

    Not KeyboardInterrupt: where one passes through ``exec``, as it does while dataclasses are made, CPython ends the process
    by SIGINT although it was caught, and the exit code is lost.
    """


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A fault of the program's own: its traceback, whose values may be outside text, without what could steer a terminal."""
    import traceback

    from app.text.escape import clean

    print(clean("".join(traceback.format_exception(error)), newlines=True), end="", file=sys.stderr)


def _interrupt(*_: object) -> None:
    raise Interrupted


def _repeat_lost_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt again a moment later where an interruption was raised in a callback whose exceptions Python drops."""
    if isinstance(lost.exc_value, Interrupted):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


def arranged(arguments: list[str], commands: Collection[str]) -> list[str]:
    """The arguments with --workspace in front, wherever it stood, and with --batch as the command it is."""
    from benchmarks.errors import SpecError

    front: list[str] = []
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--workspace":
            value = next(waiting, None)
            if value is None:
                raise SpecError("--workspace needs a folder.")
            front += [argument, value]
        elif argument.startswith("--workspace="):
            front.append(argument)
        else:
            rest.append(argument)
    if "--batch" in rest and rest[0] not in commands:
        rest.remove("--batch")
        rest.insert(0, "batch")
    return front + rest


if __name__ == "__main__":
    main()
