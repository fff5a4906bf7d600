"""The process's entry: ``rashomon``. Turns what a user can cause into one sentence and the documented exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0 done; 1 failures were recorded or the run could not go on; 2 the command or spec is wrong; 130 interrupted.
    """
    from benchmarks.errors import RashomonError

    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
    except RashomonError as error:
        from app.report.text import clean

        print(f"rashomon: {clean(str(error))}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        print("rashomon: interrupted.", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does; the flush at exit must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from app.cli import run

    # `--batch` is how the headless mode is asked for; it is the command `batch`, wherever it stands.
    if "--batch" in arguments and "batch" not in arguments:
        arguments.remove("--batch")
        options = _leading_options(arguments)
        arguments = [*arguments[:options], "batch", *arguments[options:]]
    return run(arguments)


def _leading_options(arguments: Sequence[str]) -> int:
    # --workspace is the one option that stands before a command.
    if arguments and arguments[0] == "--workspace":
        return 2
    return 1 if arguments and arguments[0].startswith("--workspace=") else 0


if __name__ == "__main__":
    main()
