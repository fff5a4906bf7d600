"""Finish reasons: a closed list for each API; any other reason is a failure, not an answer."""

from __future__ import annotations

import re
from typing import Any, Literal

from mlx_backends.remote.remote_errors import PermanentError, TransientError

API = Literal["openai", "anthropic", "gemini"]
Finish = Literal["stop", "length"]

REFUSED = "the provider refused: content filter"


def _plain(name: str) -> str:
    """Return a reason without case, punctuation and prefix: "FinishReason.STOP", "FINISH_REASON_STOP" and "stop" are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("finishreason")


def _plain_names(*names: str) -> frozenset[str]:
    return frozenset(map(_plain, names))


STOPPED = {
    "openai": _plain_names(
        # "eos_token", "stop_sequence" and "eos_token_id" are of Text Generation Inference and its relatives, "end_turn" comes
        # from gateways to Anthropic, "finish" is Titan's, "normal" Baidu's, "endoftext" AI21's, "complete" Cohere's.
        *(
            "stop",
            "eos",
            "eos_token",
            "eos_token_id",
            "eos_found",
            "end_turn",
            "stop_token",
            "end_of_text",
            "endoftext",
        ),
        *("stop_sequence", "stop_sequence_reached", "stop_string", "stop_string_found", "stop_str"),
        *("complete", "completed", "finish", "finished", "done", "normal"),
    ),
    "anthropic": _plain_names("end_turn", "stop_sequence"),
    # Gemini's OTHER has an unknown cause, so that it is no sign that an answer is whole.
    "gemini": _plain_names("STOP", "FINISH_REASON_UNSPECIFIED"),
}
TRUNCATED = {
    "openai": _plain_names(
        # "model_length" is Mistral's, "token_limit" watsonx's, "error_limit" Cohere's, those that end in "reached" LM Studio's.
        *("length", "max_tokens", "max_length", "model_length", "token_limit", "max_output_tokens", "context_length"),
        *("max_completion_tokens", "context_length_exceeded", "model_context_window_exceeded", "maximum_tokens"),
        *("error_limit", "max_predicted_tokens_reached", "context_length_reached"),
    ),
    "anthropic": _plain_names("max_tokens", "model_context_window_exceeded"),
    "gemini": _plain_names("MAX_TOKENS"),
}
FILTERED = {
    "openai": _plain_names(
        *("content_filter", "refusal", "safety", "content_filtered", "guardrail", "guardrail_intervened"),
        *("prohibited_content", "error_toxic"),
    ),
    "anthropic": _plain_names("refusal"),
    "gemini": _plain_names(
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"),
        *("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    ),
}

PASSING = _plain_names(
    *("abort", "aborted", "error", "cancel", "cancelled", "canceled", "timeout", "insufficient_system_resource"),
    *("user_cancel", "user_stopped", "model_unloaded", "time_limit"),
)
"""Reasons for which a second call may succeed: "abort" is vLLM's and SGLang's, "error" OpenRouter's, the one on resources
DeepSeek's."""

LIMIT_SLACK = 16
"""Completion tokens by which a server may exceed the limit: some count the end of the turn, or write several tokens at once."""

_CHARACTERS_A_TOKEN = 32
"""Far more characters than a token of an answer has on average; a longer text without usage was not limited."""


def finish_of(api: API, reason: Any) -> Finish:
    """Return the finish reason that a server's ``reason`` stands for.

    Raises PermanentError for a refusal or an unknown reason, TransientError for one that may pass.

    OpenAI's specification demands a reason. Some servers and gateways send none with a complete answer; a whole response
    without a reason therefore counts as finished, if its usage does not show the opposite.
    """
    if reason is None or reason == "":
        return "stop"
    name = reason if isinstance(reason, str) else repr(reason)
    plain = _plain(reason) if isinstance(reason, str) else ""
    if plain in STOPPED[api]:
        return "stop"
    if plain in TRUNCATED[api]:
        return "length"
    if plain in FILTERED[api]:
        raise PermanentError(REFUSED)
    message = f"the server ended the answer with the reason {name[:60]!r}, so it is not complete"
    if plain in PASSING:
        raise TransientError(message)
    raise PermanentError(message)


def limited(finish: Finish, text: str, completion_tokens: int | None, limit: int) -> Finish:
    """Return the finish reason of a text by its size, whatever the server says. Raises PermanentError if it ignored the limit."""
    if completion_tokens is None:
        return "length" if len(text) > _CHARACTERS_A_TOKEN * limit else finish
    if completion_tokens > limit + LIMIT_SLACK:
        raise PermanentError(
            f"the server ignored the limit of the answer: {completion_tokens:,} tokens instead of at most {limit:,}"
        )
    return "length" if completion_tokens >= limit else finish
