"""Anthropic's Messages API."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from benchmarks.vocabulary import JSONObject, Request
from mlx_backends.remote.api_keys import find_key
from mlx_backends.remote.api_provider import Provider, Reply, silence_loggers
from mlx_backends.remote.finish_reasons import finish_of
from mlx_backends.remote.remote_errors import TransientError
from mlx_backends.remote.remote_media import EncodedMedia, EncodedMedium
from mlx_backends.remote.remote_names_and_media import KEYS, RemoteModelName
from mlx_backends.remote.server_responses_and_errors import dig, text_of, token_count, with_reasoning


class AnthropicProvider(Provider):
    """The engine "anthropic". The API has no seed."""

    def __init__(self, name: RemoteModelName, media: EncodedMedia) -> None:
        super().__init__(name, media)
        from anthropic import Anthropic

        from mlx_backends.remote.remote_transport import http_client

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

    def _usage(self, response: dict[str, Any]) -> tuple[int | None, int | None]:
        usage = dig(response, "usage")
        prompt = token_count(dig(usage, "input_tokens"))
        cached = [token_count(dig(usage, f"cache_{kind}_input_tokens")) or 0 for kind in ("creation", "read")]
        return None if prompt is None else prompt + sum(cached), token_count(dig(usage, "output_tokens"))

    def _read(self, response: dict[str, Any]) -> Reply:
        blocks = dig(response, "content")
        blocks = blocks if isinstance(blocks, list) else []
        text, reasoning = (
            "".join(text_of(dig(block, kind)) for block in blocks if dig(block, "type") == kind)
            for kind in ("text", "thinking")
        )
        finish = finish_of("anthropic", dig(response, "stop_reason"))
        if finish == "stop" and not text.strip() and not reasoning.strip():
            raise TransientError("the reply holds no text")
        return Reply(with_reasoning(reasoning, text), finish)


def _image(medium: EncodedMedium) -> dict[str, Any]:
    data = b64encode(medium.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": medium.mime, "data": data}}


def _part(piece: Any) -> dict[str, Any]:
    return {"type": "text", "text": piece} if isinstance(piece, str) else piece
