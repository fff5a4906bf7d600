"""Provider: one API, one call at a time, with errors divided into transient and permanent ones."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from benchmarks.errors import ModelError, RashomonError
from benchmarks.vocabulary import Part, Request, Text
from mlx_backends.remote.api_keys import mask_keys
from mlx_backends.remote.finish_reasons import Finish, limited
from mlx_backends.remote.http_errors import classify_error, reported_failure
from mlx_backends.remote.remote_errors import CallError, PermanentError, RetryWithoutParameter, TransientError, shorten
from mlx_backends.remote.remote_media import MAX_REQUEST_BYTES, EncodedMedia, EncodedMedium
from mlx_backends.remote.remote_names_and_media import RemoteModelName, modalities
from mlx_backends.remote.server_responses_and_errors import (
    dig,
    image_tokens,
    read_completion,
    refused_parameter,
)

_log = logging.getLogger("rashomon.remote")

MAX_ANSWER_CHARACTERS = 1024 * 1024
"""Characters of an answer that are kept; a longer one is truncated and counts as such."""

LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
"""The two names of the limit on an answer; where one is refused the other is sent, so that the limit always applies."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole response; what the server did not report is None. ``fingerprint`` identifies the server's setup."""

    text: str
    finish_reason: Finish
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str | None = None
    fingerprint: str | None = None
    image_tokens: int | None = None


class Provider(ABC):
    """One provider's API. Everything but ``close`` is thread-safe."""

    def __init__(self, name: RemoteModelName, media: EncodedMedia) -> None:
        self._name = name
        self._media = media
        self._lock = threading.Lock()
        self._refused: frozenset[str] = frozenset()

    def _messages(self, request: Request, wrap: Callable[[EncodedMedium], Any]) -> list[tuple[str, list[Any]]]:
        """Return the role and the parts of each message: texts as str, media as ``wrap`` returns them encoded.

        Raises ModelError where the model takes no such media, or they are too large to be sent.
        """
        size = 0

        def part_of(part: Part) -> Any:
            nonlocal size
            if isinstance(part, Text):
                return replace_surrogates(part.text)
            takes = modalities(self._name)
            if part.modality not in takes:
                model = f"{self._name.engine}:{self._name.model}"
                raise ModelError(
                    f"{model} takes {' and '.join(takes)} media only, and this request holds {part.modality}."
                )
            encoded = self._media.encode(part, request.decoding.max_pixels)
            size += len(encoded.data) if encoded.modality != "image" else 0
            if size > MAX_REQUEST_BYTES:
                limit = MAX_REQUEST_BYTES // 2**20
                raise ModelError(
                    f"the sounds and videos of this request exceed {limit} MB; cut or compress them and build again."
                )
            return wrap(encoded)

        return [(message.role, [part_of(part) for part in message.parts]) for message in request.messages]

    @property
    def address(self) -> str:
        """Return the address of the server."""
        return self._name.address

    @property
    def refused(self) -> frozenset[str]:
        """Return the parameters that the server is known to refuse."""
        return self._refused

    def left_out(self, request: Request, refused: frozenset[str]) -> frozenset[str]:
        """Return the parameters of a request that are not sent to a server that refuses ``refused``."""
        return refused & self._parameters(request).keys()

    def call(self, request: Request, timeout: float, refused: frozenset[str]) -> Reply:
        """Make one call without the ``refused`` parameters, in ``timeout`` seconds at most.

        Raises TransientError, PermanentError or RetryWithoutParameter.
        """
        try:
            body = self._body(request, refused)
        except Exception as error:  # a missing image, or anything a hostile one makes a decoder raise
            unsent = PermanentError(
                str(error) if isinstance(error, RashomonError) else f"{type(error).__name__}: {error}"
            )
            unsent.sent = False
            raise unsent from None
        from mlx_backends.remote.remote_transport import deadline, failure_reason, is_unreached

        try:
            with deadline(timeout):
                response_text = self._send(body, timeout)
        except Exception as error:  # the library can raise anything for a server's response
            response: Any = getattr(error, "response", None)
            status = getattr(response, "status_code", None)
            if isinstance(status, int):
                self._failed(status, response.headers, response.text, body)
            reason = failure_reason(error)
            if reason is None:
                raise PermanentError(f"{type(error).__name__}: {error}") from None
            failed = TransientError(reason)
            failed.unreached = is_unreached(error)
            raise failed from None
        return self._reply(response_text, request.decoding.max_tokens)

    def _reply(self, response_text: str, limit: int) -> Reply:
        """Return the answer in a response; raises as :meth:`call`."""
        response = _object(response_text)
        if (failure := reported_failure(response)) is not None:
            raise failure
        prompt, completion = (count or None for count in self._usage(response))  # some servers report 0 for everything
        try:
            reply = self._read(response)
            text = mask_keys(reply.text)
            finish = limited(reply.finish_reason, text, completion, limit)
        except CallError as error:
            error.prompt_tokens, error.completion_tokens = prompt, completion
            if isinstance(error, TransientError):
                error.in_reply = True
            raise
        if len(text) > MAX_ANSWER_CHARACTERS:
            text, finish = text[:MAX_ANSWER_CHARACTERS], "length"
        model, fingerprint = (short_name(dig(response, key)) for key in ("model", "system_fingerprint"))
        return Reply(text, finish, prompt, completion, model, fingerprint, image_tokens(response))

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    @abstractmethod
    def _parameters(self, request: Request) -> dict[str, Any]:
        """Return a request's parameters besides its messages and its limit; a server may refuse any of them."""

    @abstractmethod
    def _body(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        """Return the arguments for the provider's library. Raises RashomonError where the request cannot be represented."""

    @abstractmethod
    def _send(self, body: dict[str, Any], timeout: float) -> str:
        """Return the body of the server's response, through the provider's library, without its own retries."""

    @abstractmethod
    def _usage(self, response: dict[str, Any]) -> tuple[int | None, int | None]:
        """Return the prompt and completion tokens of a response, None where it does not report them."""

    @abstractmethod
    def _read(self, response: dict[str, Any]) -> Reply:
        """Return the text and the finish reason of a response.

        Raises TransientError where it holds no text, PermanentError where the provider refused or the text is not whole.
        """

    @abstractmethod
    def _optional(self, body: dict[str, Any]) -> Iterable[str]:
        """Return the parameters of ``body`` that the server may do without, the first to omit first."""

    def _failed(self, status: int, headers: Mapping[str, str], text: str, body: dict[str, Any]) -> NoReturn:
        """Raise the error that a response with an error status stands for."""
        failed = classify_error(status, headers, text)
        if isinstance(failed, PermanentError) and status in (400, 422):
            parameter = refused_parameter(text, self._optional(body))
            if parameter is not None:
                with self._lock:
                    first = parameter not in self._refused
                    self._refused |= {parameter}
                if first:
                    model = f"{self._name.engine}:{self._name.model}"
                    _log.warning("%s refuses %r, which is left out from now on (%s).", model, parameter, failed)
                raise RetryWithoutParameter(str(failed)) from None
        raise failed from None


def silence_loggers(*loggers: str) -> None:
    """Silence the logs of providers' libraries, which quote requests."""
    for name in (*loggers, "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def replace_surrogates(text: str) -> str:
    """Return text that can be sent: lone surrogates, which UTF-8 cannot encode, become question marks."""
    return text.encode("utf-8", "replace").decode()


def _object(text: str) -> dict[str, Any]:
    value = read_completion(text)
    if isinstance(value, str):
        raise PermanentError(f"the server sent a text instead of a completion: {value}")
    if not isinstance(value, dict):
        streamed = text.lstrip().startswith("data:")
        broken = TransientError(
            "the server streamed an answer and did not say that it is whole (no finish reason)"
            if streamed
            else f"the reply is not JSON: {text[:200]}"
        )
        broken.in_reply = True
        raise broken
    return value


def short_name(value: Any) -> str | None:
    """Return a name that a server reports, as one line of at most 100 characters; None where it reports none."""
    return shorten(value)[:100] or None if isinstance(value, str) else None
