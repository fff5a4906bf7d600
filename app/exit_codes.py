"""Exit codes of the commands; for every code but 0, a command ends with one line on standard error."""

from collections.abc import Mapping

from benchmarks.errors import BUSY as BUSY
from benchmarks.errors import STOPPED as STOPPED
from benchmarks.errors import WRONG as WRONG
from benchmarks.errors import RashomonError

DONE, FAILURES, REGRESSED, INCONCLUSIVE, INTERRUPTED = 0, 1, 5, 6, 130

MEANINGS: Mapping[int, str] = {
    DONE: "done",
    FAILURES: "ended with failures recorded, or a check found something",
    WRONG: "the command, its input or the spec is wrong",
    STOPPED: "could not continue (disk, access, model, server, budget)",
    BUSY: "busy, try again later (another process has the run, the folder or the device)",
    REGRESSED: "regressed, or worse",
    INCONCLUSIVE: "inconclusive, or not shown",
    INTERRUPTED: "interrupted, with what is done saved",
}
"""The meaning of each code, in ``--help`` and in the docs."""

VERDICTS = (DONE, REGRESSED, INCONCLUSIVE)
"""The codes of a command that came to a verdict."""


class EndedError(RashomonError):
    """The end of a command with a code other than 0, after it has printed its results."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = code
