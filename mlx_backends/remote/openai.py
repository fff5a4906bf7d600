"""OpenAI's chat completions: OpenAI itself, Azure, and any server that speaks the same."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from benchmarks.base import JSONObject, Request
from mlx_backends.remote.api_keys import key
from mlx_backends.remote.images import EncodedImages
from mlx_backends.remote.model_names import KEYS, RemoteModelName
from mlx_backends.remote.provider import LIMITS, REFUSED, PermanentError, Provider, Reply, TransientError, parts, quiet
from mlx_backends.remote.responses import count, dig

_SCHEMA_SINCE = "2024-08-01"
"""The first version of Azure's API that takes a JSON schema."""


class OpenAIProvider(Provider):
    """The engines "openai", "azure" and "endpoint"."""

    def __init__(self, name: RemoteModelName, images: EncodedImages) -> None:
        super().__init__(name, images)
        from openai import AzureOpenAI, OpenAI

        from mlx_backends.remote.transport import client

        quiet("openai")
        self._client: Any
        if name.engine == "azure":
            self._client = AzureOpenAI(
                azure_endpoint=name.base_url,
                api_version=name.api_version,
                api_key=key(*KEYS["azure"], address=name.address, own=name.own),
                max_retries=0,
                http_client=client(name.base_url),
            )
        else:
            own = name.engine == "openai"
            secret = key(*KEYS["openai"], address=name.address, own=name.own) if own else _endpoint_key(name.address)
            self._client = OpenAI(
                base_url=name.base_url,
                api_key=secret,
                # Headers that the environment names for OpenAI may hold another key, and stand above this one.
                default_headers=None if own else {"Authorization": f"Bearer {secret}"},
                max_retries=0,
                http_client=client(name.base_url, bare=not own),
            )

    def close(self) -> None:
        self._client.close()

    def _parameters(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        asked: dict[str, Any] = {"temperature": decoding.temperature, "top_p": decoding.top_p, "seed": decoding.seed}
        if isinstance(request.form, JSONObject):
            asked["response_format"] = self._form(request.form)
        return asked

    def _body(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        decoding = request.decoding
        preferred, other = LIMITS if self._name.engine != "openai" else LIMITS[::-1]
        return {
            "model": self._name.model,
            "messages": [
                {"role": message.role, "content": _content(parts(message, self._images, decoding.max_pixels, _image))}
                for message in request.messages
            ],
            **{name: value for name, value in self._parameters(request).items() if name not in refused},
            other if preferred in refused else preferred: decoding.max_tokens,
        }

    def _form(self, form: JSONObject) -> dict[str, Any]:
        if self._name.api_version is not None and self._name.api_version[:10] < _SCHEMA_SINCE:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": form.schema()}}

    def _optional(self, body: dict[str, Any]) -> Iterable[str]:
        asked = ("response_format", "seed", "top_p", "temperature", *LIMITS)
        # Without either name of the limit nothing would bound an answer.
        swapped = bool(self._refused & set(LIMITS))
        return [
            name for name in asked if name in body and not (swapped and name in LIMITS and name not in self._refused)
        ]

    def _send(self, body: dict[str, Any], timeout: float) -> str:
        raw = self._client.chat.completions.with_raw_response.create(**body, timeout=timeout)
        return str(raw.http_response.text)

    def _read(self, said: dict[str, Any]) -> Reply:
        used = count(dig(said, "usage", "prompt_tokens")), count(dig(said, "usage", "completion_tokens"))
        message = dig(said, "choices", 0, "message")
        content, reason = dig(message, "content"), dig(said, "choices", 0, "finish_reason")
        if isinstance(content, list):
            content = "".join(text for part in content if isinstance(text := dig(part, "text"), str))
        if reason == "content_filter":
            raise PermanentError(REFUSED, *used)
        refusal = dig(message, "refusal")
        if isinstance(refusal, str) and refusal and not content:
            raise PermanentError(f"the provider refused: {refusal}", *used)
        if reason == "length":
            return Reply(content if isinstance(content, str) else "", "length", *used)
        if not isinstance(content, str) or not content:
            raise TransientError("the reply holds no text", *used)
        return Reply(content, "stop", *used)


def _endpoint_key(address: str) -> str:
    """A server of one's own often wants no key; OpenAI's is never shown to it."""
    from benchmarks.errors import KeyMissingError

    try:
        return key(*KEYS["endpoint"], address=address, own=False)
    except KeyMissingError:
        return "none"


def _image(png: bytes) -> dict[str, Any]:
    url = "data:image/png;base64," + b64encode(png).decode()
    return {"type": "image_url", "image_url": {"url": url, "detail": "high"}}


def _content(pieces: list[Any]) -> str | list[dict[str, Any]]:
    """A lone text as it stands, which every server takes; else the list of parts."""
    if len(pieces) == 1 and isinstance(pieces[0], str):
        return pieces[0]
    return [{"type": "text", "text": piece} if isinstance(piece, str) else piece for piece in pieces]
