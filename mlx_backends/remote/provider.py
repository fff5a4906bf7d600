"""Vendor: one API, one call at a time; what may be tried again and what may not."""

from __future__ import annotations

import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NoReturn

from benchmarks.base import Message, Request, Text
from benchmarks.errors import RashomonError
from mlx_backends.remote.api_keys import redact, without_keys
from mlx_backends.remote.images import EncodedImages
from mlx_backends.remote.model_names import RemoteModelName
from mlx_backends.remote.responses import dig, error_in, message_in, read_json, refused_parameter

_log = logging.getLogger("rashomon.remote")

LONGEST_TEXT = 1024 * 1024
"""Characters of an answer that are kept; a longer one is cut and counts as cut."""

REFUSED = "the provider refused: content filter"

LIMITS = ("max_tokens", "max_completion_tokens")
"""The two names of the limit on an answer; the other is sent where one is refused, so that nothing is left out."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply; tokens are None where the server did not say."""

    text: str
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class CallError(Exception):
    """A call that gave no answer; the message says why. Tokens are those of a whole reply that held none.

    ``sent`` is whether anything was sent at all.
    """

    def __init__(self, reason: str, prompt_tokens: int | None = None, completion_tokens: int | None = None) -> None:
        super().__init__(short(reason))
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens
        self.sent = True


class TransientError(CallError):
    """It may go better another time; after ``retry_after`` seconds, where the server said so. ``overloaded`` where the
    server has too much to do, ``unreached`` where there was no server."""

    retry_after: float | None = None
    overloaded = False
    unreached = False


class PermanentError(CallError):
    """It would fail again. ``refuses_key`` where the server does not take the key, at least not for this."""

    refuses_key = False


class RetryWithoutParameter(CallError):
    """The server refused a parameter that it is not sent from now on; ask once more, at once."""


class Provider(ABC):
    """An API. Everything but ``close`` may be used by many threads."""

    def __init__(self, name: RemoteModelName, images: EncodedImages) -> None:
        self._name = name
        self._images = images
        self._lock = threading.Lock()
        self._refused: frozenset[str] = frozenset()

    @property
    def refused(self) -> frozenset[str]:
        """The parameters that the server is known to refuse."""
        return self._refused

    def left_out(self, request: Request, refused: frozenset[str]) -> frozenset[str]:
        """What a request asks for and a server that refuses ``refused`` is not told."""
        return refused & self._parameters(request).keys()

    def call(self, request: Request, timeout: float, refused: frozenset[str]) -> Reply:
        """Make one call without what is ``refused``, which takes ``timeout`` seconds at most.

        Raises Transient, Permanent or Again.
        """
        try:
            body = self._body(request, refused)
        except Exception as error:  # an image that is not there, or whatever a hostile one makes a decoder raise
            unsent = PermanentError(
                str(error) if isinstance(error, RashomonError) else f"{type(error).__name__}: {error}"
            )
            unsent.sent = False
            raise unsent from None
        from mlx_backends.remote.transport import deadline, failure, unreached

        try:
            with deadline(timeout):
                said = self._send(body, timeout)
        except Exception as error:  # a vendor's library, given whatever a server says
            response: Any = getattr(error, "response", None)
            status = getattr(response, "status_code", None)
            if isinstance(status, int):
                self._failed(status, response.headers, response.text, body)
            lost = failure(error)
            if lost is None:
                raise PermanentError(f"{type(error).__name__}: {error}") from None
            failed = TransientError(lost)
            failed.unreached = unreached(error)
            raise failed from None
        reply = self._read(_object(said))
        text = without_keys(reply.text)
        if len(text) > LONGEST_TEXT:
            return Reply(text[:LONGEST_TEXT], "length", reply.prompt_tokens, reply.completion_tokens)
        return Reply(text, reply.finish_reason, reply.prompt_tokens, reply.completion_tokens)

    @abstractmethod
    def close(self) -> None:
        """Let go of the connections."""

    @abstractmethod
    def _parameters(self, request: Request) -> dict[str, Any]:
        """What a request asks for besides its messages and its limit; a server may refuse any of it."""

    @abstractmethod
    def _body(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        """What the vendor's library is called with. Raises RashomonError where the request cannot be put."""

    @abstractmethod
    def _send(self, body: dict[str, Any], timeout: float) -> str:
        """The body of the server's reply, through the vendor's library, without its own retries."""

    @abstractmethod
    def _read(self, said: dict[str, Any]) -> Reply:
        """The answer in a reply. Raises Transient where it holds none, Permanent where the provider refused."""

    @abstractmethod
    def _optional(self, body: dict[str, Any]) -> Iterable[str]:
        """The parameters of ``body`` that the server may do without, the first to go first."""

    def _failed(self, status: int, headers: Mapping[str, str], text: str, body: dict[str, Any]) -> NoReturn:
        """Raise what a reply with an error's status means."""
        failed = classify(status, headers, text)
        if isinstance(failed, PermanentError) and status in (400, 422):
            named = refused_parameter(text, self._optional(body))
            if named is not None:
                with self._lock:
                    first = named not in self._refused
                    self._refused |= {named}
                if first:
                    called = f"{self._name.engine}:{self._name.model}"
                    _log.warning("%s refuses %r and is asked without it from now on (%s).", called, named, failed)
                raise RetryWithoutParameter(str(failed)) from None
        raise failed from None


def quiet(*loggers: str) -> None:
    """Silence what vendors' libraries log: it quotes requests."""
    for name in (*loggers, "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def short(text: str) -> str:
    """What somebody said, without keys, as one line of printable text of at most 300 characters."""
    line = " ".join(redact(text[:4000]).split())
    return "".join(c if c.isprintable() else "?" for c in line)[:300]


def clean(text: str) -> str:
    """Text that can be sent: a lone surrogate, which UTF-8 has no form for, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def parts(message: Message, images: EncodedImages, max_pixels: int | None, image: Callable[[bytes], Any]) -> list[Any]:
    """The parts of a message in order: texts as str, images as what ``image`` makes of their PNG bytes."""
    return [
        clean(part.text) if isinstance(part, Text) else image(images.png(part, max_pixels)) for part in message.parts
    ]


def classify(status: int, headers: Mapping[str, str], text: str) -> TransientError | PermanentError:
    """What an HTTP error means."""
    error = error_in(text)
    codes = {code for key in ("code", "type", "status") if isinstance(code := dig(error, key), str)}
    if "content_filter" in codes or dig(error, "innererror", "code") == "ResponsibleAIPolicyViolation":
        return PermanentError(REFUSED)
    reason = f"HTTP {status}: {message_in(error) or text}"
    if 300 <= status < 400:
        return PermanentError(f"HTTP {status}: the server sends us elsewhere; name the address it really has.")
    passing = status in (408, 409, 425, 429) or status >= 500
    if not passing or "insufficient_quota" in codes:
        refused = PermanentError(reason)
        refused.refuses_key = status in (401, 403) or "API_KEY_INVALID" in _details(error, "reason")
        return refused
    failed = TransientError(reason)
    failed.overloaded = status in (429, 503, 529)
    failed.retry_after = retry_after(headers, error)
    return failed


def retry_after(headers: Mapping[str, str], error: Any = None, now: float | None = None) -> float | None:
    """Seconds to wait as a server says: ``retry-after-ms``, ``retry-after`` in seconds or as a date, Gemini's RetryInfo."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None:
        return seconds
    try:
        at = parsedate_to_datetime(given or "").timestamp()
        return max(0.0, at - (time.time() if now is None else now))
    except (ValueError, TypeError, OverflowError, IndexError):
        pass
    delays = _details(error, "retryDelay")
    return next((found for delay in delays if (found := _number(delay.removesuffix("s")))), None)


def _details(error: Any, key: str) -> list[str]:
    """What the details of Gemini's errors say under ``key``."""
    details = dig(error, "details")
    found = [dig(detail, key) for detail in details] if isinstance(details, list) else []
    return [said for said in found if isinstance(said, str)]


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else max(0.0, number)


def _object(text: str) -> dict[str, Any]:
    found = read_json(text)
    if not isinstance(found, dict):
        raise TransientError(f"the reply is not JSON: {text[:200]}")
    return found
