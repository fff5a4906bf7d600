"""Anthropic's Messages API."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from benchmarks.vocabulary import JSONObject, Request
from mlx_backends.remote.api_keys import find_key
from mlx_backends.remote.media import EncodedMedia, EncodedMedium
from mlx_backends.remote.model_names import KEYS, RemoteModelName
from mlx_backends.remote.provider import (
    REFUSED,
    PermanentError,
    Provider,
    Reply,
    TransientError,
    silence_loggers,
)
from mlx_backends.remote.responses import dig, token_count


class AnthropicProvider(Provider):
    """The engine "anthropic". The API has no seed."""

    def __init__(self, name: RemoteModelName, media: EncodedMedia) -> None:
        super().__init__(name, media)
        from anthropic import Anthropic

        from mlx_backends.remote.transport import http_client

        silence_loggers("anthropic")
        self._client: Any = Anthropic(
            base_url=name.base_url,
            api_key=find_key(*KEYS["anthropic"], address=name.address, own=name.own),
            max_retries=0,
            http_client=http_client(name.base_url),
        )

    def close(self) -> None:
        self._client.close()

    def _parameters(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        # Newer models accept neither parameter, older ones only one at a time.
        parameters: dict[str, Any] = {"temperature": decoding.temperature}
        if decoding.top_p < 1:
            parameters["top_p"] = decoding.top_p
        if isinstance(request.form, JSONObject):
            parameters["output_config"] = {"format": {"type": "json_schema", "schema": request.form.schema()}}
        return parameters

    def _body(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        decoding = request.decoding
        messages = [(role, [_part(piece) for piece in pieces]) for role, pieces in self._messages(request, _image)]
        body: dict[str, Any] = {
            "model": self._name.model,
            "max_tokens": decoding.max_tokens,
            "messages": [{"role": role, "content": content} for role, content in messages if role != "system"],
            **{name: value for name, value in self._parameters(request).items() if name not in refused},
        }
        if any(role == "system" for role, _ in messages):
            body["system"] = [piece for role, content in messages if role == "system" for piece in content]
        return body

    def _optional(self, body: dict[str, Any]) -> Iterable[str]:
        return [name for name in ("output_config", "top_p", "temperature") if name in body]

    def _send(self, body: dict[str, Any], timeout: float) -> str:
        # The library no longer has the sampling parameters; the API still does, for the models that accept them.
        sampling = {name: body[name] for name in ("temperature", "top_p") if name in body}
        rest = {name: value for name, value in body.items() if name not in sampling}
        raw = self._client.messages.with_raw_response.create(**rest, extra_body=sampling, timeout=timeout)
        return str(raw.http_response.text)

    def _read(self, response: dict[str, Any]) -> Reply:
        usage = dig(response, "usage")
        prompt_counts = [
            dig(usage, name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        ]
        prompt = token_count(prompt_counts[0])
        used_tokens = (
            None if prompt is None else prompt + sum(token_count(cached) or 0 for cached in prompt_counts[1:]),
            token_count(dig(usage, "output_tokens")),
        )
        blocks = dig(response, "content")
        texts = (
            [dig(block, "text") for block in blocks if dig(block, "type") == "text"] if isinstance(blocks, list) else []
        )
        text = "".join(piece for piece in texts if isinstance(piece, str))
        reason = dig(response, "stop_reason")
        if reason == "refusal":
            raise PermanentError(REFUSED, *used_tokens)
        if reason in ("max_tokens", "model_context_window_exceeded"):
            return Reply(text, "length", *used_tokens)
        if not text:
            raise TransientError("the reply holds no text", *used_tokens)
        return Reply(text, "stop", *used_tokens)


def _image(medium: EncodedMedium) -> dict[str, Any]:
    data = b64encode(medium.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": medium.mime, "data": data}}


def _part(piece: Any) -> dict[str, Any]:
    return {"type": "text", "text": piece} if isinstance(piece, str) else piece
