"""Errors of a remote call: transient ones, which a retry may fix, and permanent ones."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.errors import ModelError
from mlx_backends.remote.api_keys import redact


def shorten(text: str) -> str:
    """Return a message without keys, as one line of printable text of at most 300 characters."""
    line = " ".join(redact(text[:4000]).split())
    return "".join(c if c.isprintable() else "?" for c in line)[:300]


class CallError(Exception):
    """A call without an answer; the message says why. Tokens are those of a whole response that held none.

    ``sent`` is whether anything was sent at all.
    """

    def __init__(self, reason: str, prompt_tokens: int | None = None, completion_tokens: int | None = None) -> None:
        super().__init__(shorten(reason))
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens
        self.sent = True


class TransientError(CallError):
    """A failure that a retry may fix.

    ``retry_after`` is the delay in seconds that the server asked for, ``overloaded`` whether it has too much to do,
    ``unreached`` whether there was no server, ``in_reply`` whether the server itself replied: if it does so again, the request
    is the cause.
    """

    retry_after: float | None = None
    overloaded = False
    unreached = False
    in_reply = False


class PermanentError(CallError):
    """A failure that a retry would not fix.

    ``refuses_key`` tells that the server does not accept the key, at least not for this, and ``misdirected`` that the key, the
    address or the model's name there may be wrong rather than the request.
    """

    refuses_key = False
    misdirected = False


class RetryWithoutParameter(CallError):
    """A parameter was refused, and is not sent from now on; retry at once."""


class EndpointChangedError(ModelError):
    """A server that stopped showing the model its pictures; ``unconfirmed`` are the instances answered since the last check."""

    def __init__(self, message: str, unconfirmed: Iterable[str]) -> None:
        super().__init__(message)
        self.unconfirmed = tuple(unconfirmed)
