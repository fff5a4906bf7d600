"""The one exception family for what a user can cause and mend."""

from collections.abc import Iterable


class RashomonError(Exception):
    """Something the user can put right.

    The message is one sentence that says what is wrong and what to do. The command line prints it
    without a traceback and leaves with ``exit_code``. Every other exception is a bug and shows itself.
    """

    exit_code = 2


class SourceError(RashomonError):
    """A folder, file or data set that is not what the benchmark expects."""


class NothingUsableError(SourceError):
    """Sources of whose rows nothing can be made."""


class AnotherBuildError(SourceError):
    """A folder that holds another build than the one that is to be put there."""


class SpecError(RashomonError):
    """A run specification that names something that does not exist or does not fit together."""


class ModelError(RashomonError):
    """A model that cannot be loaded, or that does not fit in this machine's memory."""


class KeyMissingError(RashomonError):
    """A key that a remote engine needs and that neither the environment nor the keychain has."""


class AddressError(RashomonError):
    """A server that the user has not agreed to send anything to."""


class BudgetError(RashomonError):
    """The ceiling in tokens or money is reached; what was answered is safe."""

    exit_code = 1


class StoreError(RashomonError):
    """A workspace or run folder that cannot be read, written or resumed as asked."""


class MediaError(RashomonError):
    """A medium that cannot be used. ``reason`` is the message without the medium's name, one of a few, for counting."""

    def __init__(self, medium: str, reason: str) -> None:
        super().__init__(f"{medium} {reason}.")
        self.reason = reason


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error's sentence: the nearest known word, or all of them."""
    from difflib import get_close_matches

    words = list(known)
    near = get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(words)}."
