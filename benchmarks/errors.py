"""The exceptions for errors that a user can cause and correct."""

from collections.abc import Iterable, Mapping

WRONG, STOPPED, BUSY = 2, 3, 4
"""Exit codes: the command or its input is wrong; the work could not continue; another process is at it, try again later."""


class RashomonError(Exception):
    """An error that the user can correct.

    The message says what is wrong and what to do. The command line prints it without a traceback and exits with
    ``exit_code``. Any other exception is a bug and shows its traceback.
    """

    exit_code = WRONG


class SourceError(RashomonError):
    """A folder, file or data set that is not what the benchmark expects."""


class UnknownKeysError(SourceError):
    """A table or log without a column that it needs.

    ``guess`` is the likely key of each such column, as far as there is one, and ``known`` the key of each other column.
    ``reason`` is the message without the ``advice`` on what to write on the command line.
    """

    def __init__(self, reason: str, guess: Mapping[str, str], known: Mapping[str, str], advice: str = "") -> None:
        super().__init__(f"{reason} {advice}".rstrip())
        self.reason = reason
        self.guess, self.known = dict(guess), dict(known)


class NothingUsableError(SourceError):
    """Sources without a single usable row."""


class AnotherBuildError(SourceError):
    """A destination folder that already holds another build."""


class TemporaryFolderError(SourceError):
    """A temporary folder that is full or cannot be written; nothing was built."""

    exit_code = STOPPED


class SpecError(RashomonError):
    """A run specification that names something unknown or contradicts itself."""


class ModelError(RashomonError):
    """A model that cannot be loaded or does not fit into this machine's memory."""


class NoAnswerError(ModelError):
    """A model, or its server, that answers nothing now; the command is right, and may be repeated."""

    exit_code = STOPPED


class KeyMissingError(RashomonError):
    """An API key that a remote engine needs and that is neither in the environment nor in the keychain."""


class AddressError(RashomonError):
    """A server to which the user has not agreed to send data."""


class BudgetError(RashomonError):
    """A reached budget in tokens or money; all answers so far are stored."""

    exit_code = STOPPED


class StoreError(RashomonError):
    """A workspace or run folder that cannot be read, written or resumed."""


class StoreFullError(StoreError):
    """The disk is full, or the database has reached its page limit; what was committed is safe."""

    exit_code = STOPPED


class NoAccessError(StoreError):
    """A file or folder that this user cannot create, read or write."""

    exit_code = STOPPED


class BusyError(StoreError):
    """A run, a folder or the device that another process uses now. The message names the process where it is known."""

    exit_code = BUSY


class ExtraMissingError(RashomonError):
    """An optional library that is not installed. The message names the extra that brings it."""


class MediaError(RashomonError):
    """A medium that cannot be used. ``reason`` is the message without the medium's name, so that equal reasons can be counted."""

    def __init__(self, medium: str, reason: str) -> None:
        super().__init__(f"{medium} {reason}.")
        self.reason = reason


class DecoderError(RashomonError):
    """A decoder that does not work here, whatever the medium: a library's version, or a bug."""

    def __init__(self, medium: str, cause: str) -> None:
        super().__init__(
            f"{medium} was not read, and the file is not the cause: the decoder raised {cause}. Install the versions in "
            "constraints.txt, or report this."
        )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message about ``word``: the closest of the ``known`` words, or all of them."""
    from difflib import get_close_matches

    words = list(known)
    close = get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(words)}."
