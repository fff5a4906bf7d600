"""OpenAI's chat completions API: OpenAI itself, Azure, and any server that speaks the same."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import partial
from typing import Any

from benchmarks.vocabulary import JSONObject, Request
from mlx_backends.remote.api_keys import find_key
from mlx_backends.remote.api_provider import LIMIT_NAMES, Provider, Reply, silence_loggers
from mlx_backends.remote.finish_reasons import finish_of
from mlx_backends.remote.remote_errors import PermanentError, TransientError
from mlx_backends.remote.remote_media import EncodedMedia, EncodedMedium
from mlx_backends.remote.remote_names_and_media import KEYS, RemoteModelName
from mlx_backends.remote.server_responses_and_errors import REASONING_FIELDS, dig, text_of, token_count, with_reasoning

_SCHEMA_SINCE = "2024-08-01"
"""First version of Azure's API that accepts a JSON schema."""


class OpenAIProvider(Provider):
    """The engines "openai", "azure" and "endpoint"."""

    def __init__(self, name: RemoteModelName, media: EncodedMedia) -> None:
        super().__init__(name, media)
        from openai import AzureOpenAI, OpenAI

        from mlx_backends.remote.remote_transport import http_client

        silence_loggers("openai")
        self._client: Any
        if name.engine == "azure":
            self._client = AzureOpenAI(
                azure_endpoint=name.base_url,
                api_version=name.api_version,
                api_key=find_key(*KEYS["azure"], address=name.address, own=name.own),
                max_retries=0,
                http_client=http_client(name.base_url),
            )
        else:
            own = name.engine == "openai"
            secret = (
                find_key(*KEYS["openai"], address=name.address, own=name.own) if own else _endpoint_key(name.address)
            )
            self._client = OpenAI(
                base_url=name.base_url,
                api_key=secret,
                # Headers from OpenAI's environment variables may hold another key, and would replace this one.
                default_headers=None if own else {"Authorization": f"Bearer {secret}"},
                max_retries=0,
                http_client=http_client(name.base_url, bare=not own),
            )

    def close(self) -> None:
        self._client.close()

    def left_out(self, request: Request, refused: frozenset[str]) -> frozenset[str]:
        return super().left_out(request, refused) | (refused & {"detail"})

    def _parameters(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        parameters: dict[str, Any] = {
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "seed": decoding.seed,
        }
        if isinstance(request.form, JSONObject):
            parameters["response_format"] = self._form(request.form)
        return parameters

    def _body(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        decoding = request.decoding
        preferred, other = LIMIT_NAMES if self._name.engine != "openai" else LIMIT_NAMES[::-1]
        return {
            "model": self._name.model,
            "messages": [
                {"role": role, "content": _content(pieces)}
                for role, pieces in self._messages(request, partial(_medium, detailed="detail" not in refused))
            ],
            **{name: value for name, value in self._parameters(request).items() if name not in refused},
            other if preferred in refused else preferred: decoding.max_tokens,
        }

    def _form(self, form: JSONObject) -> dict[str, Any]:
        if self._name.api_version is not None and self._name.api_version[:10] < _SCHEMA_SINCE:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": form.schema()}}

    def _optional(self, body: dict[str, Any]) -> Iterable[str]:
        names = ("response_format", "seed", "top_p", "temperature", *LIMIT_NAMES)
        # Without either name of the limit, answers would have no bound.
        swapped = bool(self._refused & set(LIMIT_NAMES))
        return [
            name
            for name in names
            if name in body and not (swapped and name in LIMIT_NAMES and name not in self._refused)
        ] + ["detail"]

    def _send(self, body: dict[str, Any], timeout: float) -> str:
        raw = self._client.chat.completions.with_raw_response.create(**body, timeout=timeout)
        return str(raw.http_response.text)

    def _usage(self, response: dict[str, Any]) -> tuple[int | None, int | None]:
        usage = dig(response, "usage")
        return token_count(dig(usage, "prompt_tokens")), token_count(dig(usage, "completion_tokens"))

    def _read(self, response: dict[str, Any]) -> Reply:
        message = dig(response, "choices", 0, "message")
        content, reason = dig(message, "content"), dig(response, "choices", 0, "finish_reason")
        parts = content if isinstance(content, list) else [content]
        text = "".join(text_of(part) for part in parts if not _is_reasoning(part))
        fields = [dig(message, name) for name in REASONING_FIELDS]
        reasoning = next((field for field in fields if isinstance(field, str) and field), "")
        reasoning = reasoning or "".join(text_of(part) for part in parts if _is_reasoning(part))
        refusal = dig(message, "refusal")
        if isinstance(refusal, str) and refusal and not text:
            raise PermanentError(f"the provider refused: {refusal}")
        finish = finish_of("openai", reason)
        if finish == "stop" and not text.strip() and not reasoning.strip():
            raise TransientError("the reply holds no text")
        return Reply(with_reasoning(reasoning, text), finish)


def _is_reasoning(part: Any) -> bool:
    return dig(part, "type") in ("thinking", "reasoning", "redacted_thinking")


def _endpoint_key(address: str) -> str:
    """Return the key of a user's own server, "none" where it needs none; OpenAI's key is never sent to it."""
    from benchmarks.errors import KeyMissingError

    try:
        return find_key(*KEYS["endpoint"], address=address, own=False)
    except KeyMissingError:
        return "none"


def _medium(medium: EncodedMedium, *, detailed: bool = True) -> dict[str, Any]:
    data = b64encode(medium.data).decode()
    if medium.modality == "audio":
        return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    url = f"data:{medium.mime};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url, **({"detail": "high"} if detailed else {})}}


def _content(pieces: list[Any]) -> str | list[dict[str, Any]]:
    """Return a single text as it is, which every server accepts; else the list of parts."""
    if len(pieces) == 1 and isinstance(pieces[0], str):
        return pieces[0]
    return [{"type": "text", "text": piece} if isinstance(piece, str) else piece for piece in pieces]
