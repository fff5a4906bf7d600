"""Parsing of servers' responses: JSON that may hold anything, and the parameter that an error rejects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from benchmarks.text.reasoning import THINK
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

_MOST_TOKENS = 10**9
_MAX_CHARACTERS = 10_000
_FORMS = ("response_format", "output_config", "response_schema", "response_mime_type")
_CONTAINERS = ("body", "generation_config", "generationConfig")
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields of a message with its reasoning: DeepSeek's and SGLang's, and that of vLLM, Ollama and OpenRouter."""

_THINK_TAG = re.compile(f"{THINK.opening}|{THINK.closing}")
_SENTENCE = re.compile(r"[.;!?](?:\s|$)|\n")
_REJECTS = re.compile(
    r"unsupported|not? (?:be )?support|n't support|not permitted|not allowed|deprecated|incompatible|only one of|"
    r"(?:unknown|unrecogni[sz]ed|unexpected)[ _](?:request |keyword |body |json |query )?"
    r"(?:name|param|field|arg|option|key|propert|input)|extra inputs|extra fields|extra_forbidden|"
    r"can ?not (?:both )?be (?:used|set|specified|combined|sent|given|provided|passed)",
    re.IGNORECASE,
)
_FINDS_INVALID = re.compile(r"invalid|malformed|must|should", re.IGNORECASE)
_AMOUNT = re.compile(r"too (?:large|long|many|big|high)|at most|exceed|maximum|above|more than|greater", re.IGNORECASE)
"""Complaints about too large a value, of a parameter that the server accepts."""


def read_json(text: str) -> Any:
    """Return the JSON in ``text``; None where it is none."""
    try:
        return parse_json(text.removeprefix("\ufeff"))
    except OutsideJSONError:
        return None


def read_completion(text: str) -> Any:
    """Return the JSON in a response's ``text``; None where it is none, or a stream of events that broke off.

    Some servers stream although no stream was requested; a stream of OpenAI's chunks up to a finish reason is put together.
    """
    text = text.removeprefix("\ufeff")
    if not text.lstrip().startswith(("data:", "event:", ":")):
        return read_json(text)
    lines = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
    chunks = [chunk for line in lines if isinstance(chunk := read_json(line), dict)]
    if failure := next((chunk for chunk in chunks if chunk.get("error")), None):
        return failure
    message: dict[str, str] = {}
    reasons = [dig(chunk, "choices", 0, "finish_reason") for chunk in chunks]
    reason = next((reason for reason in reversed(reasons) if reason is not None), None)
    if reason is None:  # "[DONE]" ends broken streams too
        return None
    for chunk in chunks:
        for name in ("content", *REASONING_FIELDS, "refusal"):
            if isinstance(piece := dig(chunk, "choices", 0, "delta", name), str):
                message[name] = message.get(name, "") + piece
    named = {
        name: value
        for chunk in chunks
        for name in ("model", "usage", "system_fingerprint")
        if (value := chunk.get(name))
    }
    return {**named, "choices": [{"message": message, "finish_reason": reason}] if chunks else []}


def with_reasoning(reasoning: str, text: str) -> str:
    """Return an answer with reasoning that came apart from it, in the form in which most models write both."""
    reasoning = _THINK_TAG.sub("", reasoning).strip()  # one inside would end the block early
    return f"<think>\n{reasoning}\n</think>\n\n{text}" if reasoning and reasoning not in text else text


def text_of(value: Any) -> str:
    """Return the text in a part of a message: a string, an object with a text, or a list of these; empty for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(text_of, value))
    if isinstance(value, dict):
        return next(
            (text_of(value[key]) for key in ("text", "thinking", "reasoning", "summary", "content") if value.get(key)),
            "",
        )
    return ""


def dig(value: Any, *path: str | int) -> Any:
    """Return the value at ``path`` in JSON; None where there is none."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def token_count(value: Any) -> int | None:
    """Return a number of tokens as a server reports it, some as a string or a whole float; None for anything else."""
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) <= 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def image_tokens(response: Any) -> int | None:
    """Return the prompt tokens that a server's usage names as those of images; None where it names none."""
    usage = dig(response, "usage")
    places = (usage, *(dig(usage, f"{name}_tokens_details") for name in ("prompt", "input")))
    counts = [token_count(dig(place, name)) for place in places for name in ("image_tokens", "vision_tokens")]
    gemini = dig(response, "usageMetadata", "promptTokensDetails")
    for entry in gemini if isinstance(gemini, list) else []:
        if dig(entry, "modality") == "IMAGE":
            counts.append(token_count(dig(entry, "tokenCount")))
    return max((count for count in counts if count is not None), default=None)


def parse_error(text: str) -> Any:
    """Return the error in a response, whatever its shape; None where it is no JSON."""
    body = read_json(text)
    if isinstance(body, list):  # as some of Gemini's errors are
        body = dig(body, 0)
    return dig(body, "error") or body


def error_message(error: Any) -> str | None:
    """Return the message of an error; None where it has none."""
    if isinstance(error, str):
        return error
    return next(
        (message for key in ("message", "detail") if isinstance(message := dig(error, key), str) and message), None
    )


def refused_parameter(text: str, sent: Iterable[str]) -> str | None:
    """Return the first parameter of ``sent`` that an error refuses; None where it refuses something else.

    Where the error has a ``param`` or a ``loc``, that is the parameter it is about. Else the name must stand in one sentence of
    its message together with a word of refusal: messages quote prompts, bodies and much besides.
    """
    error = parse_error(text)
    names = list(sent)
    causes = _causes(error)
    if causes:
        return next(
            (
                name
                for name in names
                for parameter, message in causes
                if parameter in (name, _camel(name)) and (name in _FORMS or any(map(_refuses, _sentences(message))))
            ),
            None,
        )
    sentences = _sentences(error_message(error) or "")
    return next((name for name in names if any(_refuses_by_name(name, sentence) for sentence in sentences)), None)


def _causes(error: Any) -> list[tuple[str, str]]:
    """Return the parameters that an error names as its cause, each with its message."""
    param = dig(error, "param")
    if isinstance(param, str) and param not in ("", "None", "null"):  # LiteLLM writes None as a string
        return [(_outermost(param.split(".")), f"{error_message(error) or ''}\n{dig(error, 'code')}")]
    details = dig(error, "detail") or dig(error, "message", "detail")  # FastAPI's, and Mistral's around it
    return [
        (_outermost(loc), f"{dig(detail, 'msg')}\n{dig(detail, 'type')}")
        for detail in (details if isinstance(details, list) else [])
        if isinstance(loc := dig(detail, "loc"), list)
    ]


def _outermost(path: list[Any]) -> str:
    if path[-1:] == ["detail"]:  # of a picture, deep within the messages
        return "detail"
    return next((step for step in path if isinstance(step, str) and step not in _CONTAINERS), "")


def _sentences(message: str) -> list[str]:
    # Pydantic's printed errors end with the input, which is the whole body.
    own_words = re.split(r"['\"]input['\"]\s*:", message[:_MAX_CHARACTERS], maxsplit=1)[0]
    return _SENTENCE.split(own_words)


def _refuses(sentence: str) -> bool:
    return bool(_REJECTS.search(sentence)) and not _AMOUNT.search(sentence)


def _refuses_by_name(name: str, sentence: str) -> bool:
    spellings = "|".join(map(re.escape, (name, _camel(name))))
    if not re.search(rf"(?<!\w)(?:{spellings})(?!\w)", sentence):
        return False
    # An unusable form can be left out; the rubric's text asks for it anyway.
    return _refuses(sentence) or (name in _FORMS and bool(_REJECTS.search(sentence) or _FINDS_INVALID.search(sentence)))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
