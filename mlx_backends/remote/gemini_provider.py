"""Gemini's generateContent API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.vocabulary import AnyForm, Choice, JSONObject, Request
from mlx_backends.remote.api_keys import find_key
from mlx_backends.remote.api_provider import Provider, Reply, silence_loggers
from mlx_backends.remote.finish_reasons import REFUSED, finish_of
from mlx_backends.remote.remote_errors import PermanentError, TransientError
from mlx_backends.remote.remote_media import EncodedMedia, EncodedMedium
from mlx_backends.remote.remote_names_and_media import KEYS, RemoteModelName
from mlx_backends.remote.server_responses_and_errors import dig, text_of, token_count, with_reasoning

_FORM = ("response_schema", "response_mime_type")
_LARGEST_SEED = 2**31


class GeminiProvider(Provider):
    """The engine "gemini"."""

    def __init__(self, name: RemoteModelName, media: EncodedMedia) -> None:
        super().__init__(name, media)
        from google import genai

        from mlx_backends.remote.remote_transport import http_client

        silence_loggers("google_genai", "google.genai")
        self._http = http_client(name.base_url)
        # The library also makes an asynchronous client, which is not used, and must not read the environment's proxies.
        unused = {"trust_env": False}
        options: Any = {"base_url": name.base_url, "httpx_client": self._http, "async_client_args": unused}
        secret = find_key(*KEYS["gemini"], address=name.address, own=name.own)
        self._client: Any = genai.Client(vertexai=False, api_key=secret, http_options=options)

    def close(self) -> None:
        self._http.close()

    def _parameters(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        return {
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "seed": decoding.seed % _LARGEST_SEED,
            **_form(request.form),
        }

    def _body(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        decoding = request.decoding
        messages = [(role, [_part(piece) for piece in pieces]) for role, pieces in self._messages(request, _medium)]
        # The two halves of a form only work together.
        omitted = refused if refused.isdisjoint(_FORM) else refused | set(_FORM)
        config = {name: value for name, value in self._parameters(request).items() if name not in omitted}
        config["max_output_tokens"] = decoding.max_tokens
        if any(role == "system" for role, _ in messages):
            config["system_instruction"] = {
                "parts": [piece for role, content in messages if role == "system" for piece in content]
            }
        contents = [
            {"role": "model" if role == "assistant" else "user", "parts": content}
            for role, content in messages
            if role != "system"
        ]
        return {"model": self._name.model, "contents": contents, "config": config}

    def _optional(self, body: dict[str, Any]) -> Iterable[str]:
        return [name for name in (*_FORM, "seed", "top_p", "temperature") if name in body["config"]]

    def _send(self, body: dict[str, Any], timeout: float) -> str:
        config = {
            **body["config"],
            "http_options": {"timeout": max(1, int(timeout * 1000))},
            "automatic_function_calling": {"disable": True},
            "should_return_http_response": True,
        }
        response = self._client.models.generate_content(model=body["model"], contents=body["contents"], config=config)
        return str(response.sdk_http_response.body)

    def _usage(self, response: dict[str, Any]) -> tuple[int | None, int | None]:
        usage = dig(response, "usageMetadata")
        written = [token_count(dig(usage, name)) for name in ("candidatesTokenCount", "thoughtsTokenCount")]
        prompt = token_count(dig(usage, "promptTokenCount"))
        # A response stopped before its first token omits their count.
        return prompt, sum(tokens or 0 for tokens in written) if prompt is not None or any(written) else None

    def _read(self, response: dict[str, Any]) -> Reply:
        if dig(response, "promptFeedback", "blockReason"):
            raise PermanentError(REFUSED)
        pieces = dig(response, "candidates", 0, "content", "parts")
        pieces = pieces if isinstance(pieces, list) else []
        text, reasoning = (
            "".join(text_of(dig(piece, "text")) for piece in pieces if bool(dig(piece, "thought")) is thought)
            for thought in (False, True)
        )
        finish = finish_of("gemini", dig(response, "candidates", 0, "finishReason"))
        if finish == "stop" and not text.strip() and not reasoning.strip():
            raise TransientError("the reply holds no text")
        return Reply(with_reasoning(reasoning, text), finish)


def _form(form: AnyForm | None) -> dict[str, Any]:
    match form:
        case Choice(words):
            schema: dict[str, Any] = {"type": "STRING", "enum": list(words)}
            return {"response_mime_type": "text/x.enum", "response_schema": schema}
        case JSONObject(properties):
            fields = {
                name: {"type": "STRING", "enum": list(words)} if words else {"type": "STRING"}
                for name, words in properties.items()
            }
            names = list(properties)
            schema = {"type": "OBJECT", "properties": fields, "required": names, "property_ordering": names}
            return {"response_mime_type": "application/json", "response_schema": schema}
    return {}


def _medium(medium: EncodedMedium) -> dict[str, Any]:
    return {"inline_data": {"data": medium.data, "mime_type": medium.mime}}


def _part(piece: Any) -> dict[str, Any]:
    return {"text": piece} if isinstance(piece, str) else piece
