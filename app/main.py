"""Entry point of the ``rashomon`` command. Errors a user can cause become one sentence and the documented exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code, one of :mod:`app.exit_codes`."""
    _open_closed_streams()
    if "_RASHOMON_COMPLETE" in os.environ:
        from app.cli import cli, shell_completion

        sys.exit(shell_completion.respond(cli))
    sys.unraisablehook = _repeat_lost_interrupt
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character the terminal cannot encode is no error
    arguments = sys.argv[1:] if arguments is None else arguments
    message = ""
    end: BaseException | None = None
    try:
        from app.system.process_signals import handle_stop_signals

        handle_stop_signals(_interrupt)
        from app.cli import run_cli
        from app.system.open_file_limit import raise_open_files_limit

        _warn_of_machine()
        raise_open_files_limit()
        try:
            with _output(arguments):
                code = run_cli(arguments)
        finally:
            sys.stdout.flush()  # what ended the command comes last, also in a file that takes both streams
    except BaseException as error:  # also SystemExit, which a plugin may raise
        code, message = _end(error)
        end = error
    from app.system.process_signals import end_at_stop_signals, ignore_stop_signals

    ignore_stop_signals()  # while what has happened is reported
    from app.cli.cli_options import asks_for_events

    if asks_for_events(arguments):
        from app.json_output.json_events import outcome

        with suppress(OSError):  # standard output is full or closed, which is not what has ended the command
            outcome.print(code, message, end)
    if message:
        from app.text.text_escaping import clean

        print(f"rashomon: {clean(message)}", file=sys.stderr)
    end_at_stop_signals(code)
    sys.exit(code)


def _end(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the line on standard error for what has ended the command; no line if that is no error."""
    from app.exit_codes import INTERRUPTED, STOPPED
    from benchmarks.errors import RashomonError
    from benchmarks.plugins.find_plugins import packages_in_use, plugin_fault
    from benchmarks.untrusted.safe_files import is_disk_full

    # Python 3.11 wraps what is raised while a class is created.
    cause = error.__cause__ if isinstance(error, RuntimeError) and isinstance(error.__cause__, Interrupted) else error
    try:
        sys.stdout.flush()
    except OSError:  # it holds a rest that cannot be written, at which the flush at exit must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(cause, BrokenPipeError):  # the reader of the output is gone, as with `| head`
        return 0, ""
    if isinstance(cause, RashomonError):
        code, line = cause.exit_code, str(cause)
    elif isinstance(cause, Interrupted | KeyboardInterrupt):
        code, line = INTERRUPTED, "interrupted; run the same command again to resume or start over."
    elif isinstance(cause, OSError) and is_disk_full(cause):
        code, line = (
            STOPPED,
            f"cannot write {cause.filename or 'the output'}: {cause.strerror}; free some space and repeat.",
        )
    elif (fault := plugin_fault(error)) is not None:
        code, line = fault.exit_code, str(fault)
    else:
        _report(error)
        packages = packages_in_use()
        others = f", or in a package that adds to it ({', '.join(packages)})," if packages else ""
        code, line = (
            STOPPED,
            f"a bug in Rashomon{others} ended this command ({type(error).__name__}); report it with the lines above.",
        )
    return code, line


def _output(arguments: Sequence[str]) -> AbstractContextManager[None]:
    """Return the context of a command: one that prints JSON prints nothing else to standard output."""
    from app.cli.cli_options import asks_for_events

    if "--json" not in arguments and not asks_for_events(arguments):
        return nullcontext()
    from app.json_output.json_only_output import only_json

    return only_json()


def _open_closed_streams() -> None:
    """Let the standard streams that the caller has closed (``>&-``) be the null device.

    Otherwise Python has no object for them, and the next file that is opened, such as a database, would get their number.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - stays open for the rest of the process


def _warn_of_machine() -> None:
    """Print what keeps MLX from working on this Mac; its libraries would say less."""
    if sys.platform == "darwin":
        from app.system.requirements import machine_problem

        if problem := machine_problem():
            print(f"warning: {problem}", file=sys.stderr)


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP outside of a run.

    It is not a KeyboardInterrupt, because CPython ends the process with SIGINT when one passes through ``exec`` (as happens
    while a dataclass is created), even if it is caught; the exit code would be lost.
    """


def _report(error: BaseException) -> None:
    """Print the traceback of a bug. It may quote foreign text, so terminal control characters are escaped."""
    import traceback

    from app.text.text_escaping import clean

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
