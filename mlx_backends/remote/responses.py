"""What a server says: JSON that may hold anything, and which parameter an error refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

_MOST_TOKENS = 10**9
_LONGEST = 10_000
_FORMS = ("response_format", "output_config", "response_schema", "response_mime_type")
_CONTAINERS = ("body", "generation_config", "generationConfig")
_SENTENCE = re.compile(r"[.;!?](?:\s|$)|\n")
_REFUSES = re.compile(
    r"unsupported|not? (?:be )?support|n't support|not permitted|not allowed|deprecated|incompatible|only one of|"
    r"(?:unknown|unrecogni[sz]ed|unexpected)[ _](?:request |keyword |body |json |query )?"
    r"(?:name|param|field|arg|option|key|propert|input)|extra inputs|extra fields|extra_forbidden|"
    r"can ?not (?:both )?be (?:used|set|specified|combined|sent|given|provided|passed)",
    re.IGNORECASE,
)
_COMPLAINS = re.compile(r"invalid|malformed|must|should", re.IGNORECASE)
_AMOUNT = re.compile(r"too (?:large|long|many|big|high)|at most|exceed|maximum|above|more than|greater", re.IGNORECASE)
"""A value that is too much, of a parameter that the server takes."""


def read_json(text: str) -> Any:
    """The JSON in ``text``; None where it is none."""
    try:
        return parse_json(text)
    except OutsideJSONError:
        return None


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


def error_in(text: str) -> Any:
    """The error that a reply holds, whatever its shape; None where it is no JSON."""
    body = read_json(text)
    if isinstance(body, list):  # as Gemini's errors are, asked in some ways
        body = dig(body, 0)
    return dig(body, "error") or body


def message_in(error: Any) -> str | None:
    """The sentence or two that an error says; None where it says none."""
    if isinstance(error, str):
        return error
    return next((said for key in ("message", "detail") if isinstance(said := dig(error, key), str) and said), None)


def refused_parameter(text: str, sent: Iterable[str]) -> str | None:
    """The first parameter of ``sent`` that an error refuses; None where it refuses something else.

    Where the error has a ``param`` or a ``loc``, that is what it is about. Else the name must stand in one sentence of
    its message together with a word that refuses: messages quote prompts, bodies and much besides.
    """
    error = error_in(text)
    names = list(sent)
    blamed = _blamed(error)
    if blamed:
        return next(
            (
                name
                for name in names
                for parameter, said in blamed
                if parameter in (name, _camel(name)) and (name in _FORMS or any(map(_refuses, _sentences(said))))
            ),
            None,
        )
    sentences = _sentences(message_in(error) or "")
    return next((name for name in names if any(_refuses_by_name(name, sentence) for sentence in sentences)), None)


def _blamed(error: Any) -> list[tuple[str, str]]:
    """The parameters that an error says it is about, each with what it says of it."""
    param = dig(error, "param")
    if isinstance(param, str) and param not in ("", "None", "null"):  # LiteLLM writes None as a word
        return [(_outermost(param.split(".")), f"{message_in(error) or ''}\n{dig(error, 'code')}")]
    details = dig(error, "detail") or dig(error, "message", "detail")  # FastAPI's, and Mistral's around it
    return [
        (_outermost(loc), f"{dig(detail, 'msg')}\n{dig(detail, 'type')}")
        for detail in (details if isinstance(details, list) else [])
        if isinstance(loc := dig(detail, "loc"), list)
    ]


def _outermost(path: list[Any]) -> str:
    return next((step for step in path if isinstance(step, str) and step not in _CONTAINERS), "")


def _sentences(said: str) -> list[str]:
    # Pydantic's errors, printed, go on with the input: the whole body.
    told = re.split(r"['\"]input['\"]\s*:", said[:_LONGEST], maxsplit=1)[0]
    return _SENTENCE.split(told)


def _refuses(sentence: str) -> bool:
    return bool(_REFUSES.search(sentence)) and not _AMOUNT.search(sentence)


def _refuses_by_name(name: str, sentence: str) -> bool:
    spellings = "|".join(map(re.escape, (name, _camel(name))))
    if not re.search(rf"(?<!\w)(?:{spellings})(?!\w)", sentence):
        return False
    # A form that cannot be put to use can be done without; the rubric asks for it all the same.
    return _refuses(sentence) or (name in _FORMS and bool(_REFUSES.search(sentence) or _COMPLAINS.search(sentence)))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
