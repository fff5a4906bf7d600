"""Vendor: one API, one call at a time; what may be tried again and what may not."""

from __future__ import annotations

import json
import logging
import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NoReturn

from benchmarks.base import Message, Request, Text
from benchmarks.errors import RashomonError
from mlx_backends.keys import redact, without_keys
from mlx_backends.remote.images import Images
from mlx_backends.remote.names import Name

_log = logging.getLogger("rashomon.remote")

LONGEST_TEXT = 1024 * 1024
"""Characters of an answer that are kept; a longer one is cut and counts as cut."""

REFUSED = "the provider refused: content filter"

_MOST_TOKENS = 10**9
_FORMS = ("response_format", "output_config", "response_schema", "response_mime_type")
_UNSUPPORTED = re.compile(
    r"unsupported|not? (?:be )?support|(?:n't|not) support|unknown|unrecogni[sz]ed|unexpected|extra inputs|not permitted|"
    r"not allowed|deprecated|cannot both|can ?not (?:both )?be|only one|incompatible",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply; tokens are None where the server did not say."""

    text: str
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Failed(Exception):
    """A call that gave no answer; the message says why. Tokens are those of a whole reply that held none.

    ``sent`` is whether anything was sent at all.
    """

    def __init__(self, reason: str, prompt_tokens: int | None = None, completion_tokens: int | None = None) -> None:
        super().__init__(short(reason))
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens
        self.sent = True


class Transient(Failed):
    """It may go better another time; after ``retry_after`` seconds, where the server said so. ``overloaded`` where the
    server has too much to do."""

    retry_after: float | None = None
    overloaded = False


class Permanent(Failed):
    """It would fail again."""


class Again(Failed):
    """The server refused a parameter that it is not sent from now on; ask once more, at once."""


class Vendor(ABC):
    """An API. ``call`` may be used by many threads."""

    def __init__(self, name: Name, images: Images) -> None:
        self._name = name
        self._images = images
        self._lock = threading.Lock()
        self._refused: frozenset[str] = frozenset()

    def call(self, request: Request, timeout: float) -> Reply:
        """Make one call, which takes ``timeout`` seconds at most. Raises Transient, Permanent or Again."""
        try:
            body = self._body(request)
        except Exception as error:  # an image that is not there, or whatever a hostile one makes a decoder raise
            unsent = Permanent(str(error) if isinstance(error, RashomonError) else f"{type(error).__name__}: {error}")
            unsent.sent = False
            raise unsent from None
        from mlx_backends.remote.transport import deadline, failure

        try:
            with deadline(timeout):
                said = self._send(body, timeout)
        except Exception as error:  # a vendor's library, given whatever a server says
            response: Any = getattr(error, "response", None)
            status = getattr(response, "status_code", None)
            if isinstance(status, int):
                self._failed(status, response.headers, response.text, body)
            lost = failure(error)
            raise Transient(lost) if lost else Permanent(f"{type(error).__name__}: {error}") from None
        reply = self._read(_object(said))
        text = without_keys(reply.text)
        if len(text) > LONGEST_TEXT:
            return Reply(text[:LONGEST_TEXT], "length", reply.prompt_tokens, reply.completion_tokens)
        return Reply(text, reply.finish_reason, reply.prompt_tokens, reply.completion_tokens)

    @abstractmethod
    def close(self) -> None:
        """Let go of the connections."""

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """What the vendor's library is called with. Raises RashomonError where the request cannot be put."""

    @abstractmethod
    def _send(self, body: dict[str, Any], timeout: float) -> str:
        """The body of the server's reply, through the vendor's library, without its own retries."""

    @abstractmethod
    def _read(self, said: dict[str, Any]) -> Reply:
        """The answer in a reply. Raises Transient where it holds none, Permanent where the provider refused."""

    def _optional(self, body: Mapping[str, Any]) -> Iterable[str]:
        """The parameters of ``body`` that the server may do without, the first to go first."""
        return body

    def _failed(self, status: int, headers: Mapping[str, str], text: str, body: dict[str, Any]) -> NoReturn:
        """Raise what a reply with an error's status means."""
        failed = classify(status, headers, text)
        if isinstance(failed, Permanent) and status in (400, 422):
            named = refused_parameter(text, self._optional(body))
            if named is not None:
                with self._lock:
                    first = named not in self._refused
                    self._refused |= {named}
                if first:
                    called = f"{self._name.engine}:{self._name.model}"
                    _log.warning("%s refuses %r and is asked without it from now on (%s).", called, named, failed)
                raise Again(str(failed)) from None
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


def parts(message: Message, images: Images, max_pixels: int | None, image: Callable[[bytes], Any]) -> list[Any]:
    """The parts of a message in order: texts as str, images as what ``image`` makes of their PNG bytes."""
    return [
        clean(part.text) if isinstance(part, Text) else image(images.png(part, max_pixels)) for part in message.parts
    ]


def dig(value: Any, *path: str | int) -> Any:
    """What lies at ``path`` in JSON; None where nothing does."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def count(value: Any) -> int | None:
    """A number of tokens as a server says it; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def classify(status: int, headers: Mapping[str, str], text: str) -> Transient | Permanent:
    """What an HTTP error means."""
    body = _json(text)
    if isinstance(body, list):  # as Gemini's errors are, asked in some ways
        body = dig(body, 0)
    error = dig(body, "error") or body
    codes = {code for key in ("code", "type", "status") if isinstance(code := dig(error, key), str)}
    message = next((said for key in ("message", "detail") if isinstance(said := dig(error, key), str) and said), None)
    message = message or (error if isinstance(error, str) else text)
    if "content_filter" in codes or dig(error, "innererror", "code") == "ResponsibleAIPolicyViolation":
        return Permanent(REFUSED)
    reason = f"HTTP {status}: {message}"
    if 300 <= status < 400:
        return Permanent(f"HTTP {status}: the server sends us elsewhere; name the address it really has.")
    passing = status in (408, 409, 425, 429) or status >= 500
    if not passing or "insufficient_quota" in codes:
        return Permanent(reason)
    failed = Transient(reason)
    failed.overloaded = status in (429, 503, 529)
    failed.retry_after = retry_after(headers, body)
    return failed


def retry_after(headers: Mapping[str, str], body: Any = None, now: float | None = None) -> float | None:
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
    details = dig(body, "error", "details")
    delays = [dig(detail, "retryDelay") for detail in details] if isinstance(details, list) else []
    return next(
        (found for delay in delays if isinstance(delay, str) and (found := _number(delay.removesuffix("s")))), None
    )


def refused_parameter(text: str, sent: Iterable[str]) -> str | None:
    """The first parameter of ``sent`` that an error refuses: by its ``param``, or by its name in a message that says so."""
    body = _json(text)
    names = list(sent)
    param = dig(body, "error", "param")
    if isinstance(param, str):
        param = param.partition(".")[0]
        names = [name for name in names if name == param] or names
    said = text[:10_000]
    for name in names:
        spellings = "|".join(map(re.escape, (name, _camel(name))))
        named = name == param or re.search(rf"(?<!\w)(?:{spellings})(?!\w)", said)
        # A form that is refused for whatever reason can be done without; the rubric asks for it all the same.
        if named and (name in _FORMS or _UNSUPPORTED.search(said)):
            return name
    return None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else max(0.0, number)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(text: str) -> dict[str, Any]:
    found = _json(text)
    if not isinstance(found, dict):
        raise Transient(f"the reply is not JSON: {text[:200]}")
    return found
