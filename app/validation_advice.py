"""Advice on a value of a spec that pydantic refuses, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.run_name_patterns import NAME_ADVICE

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def refused_key(error: ErrorDetails) -> str:
    """Return the key of a value that is refused, as ``decoding.top_p`` within a section."""
    return ".".join(str(part) for part in error["loc"])


_ADVICE = {
    "bool_type": "give true or false",
    "dataclass_type": "give a table, such as {key = 1}",
    "dict_type": "give a table, such as {key = 1}",
    "model_type": "give a table, such as {key = 1}",
    "string_pattern_mismatch": NAME_ADVICE,
    "string_too_short": "give a text that is not empty",
    "string_type": "give a text",
    "string_unicode": "it holds half of a surrogate pair, which is not valid text",
    "tuple_type": "give a text, or a list of texts",
}


def advice(error: ErrorDetails) -> str:
    """Return what to write instead."""
    if error["type"] in ("too_short", "missing"):
        return "name at least one"
    if error["type"] in _ADVICE:
        return _ADVICE[error["type"]]
    if error["type"] == "string_too_long":
        longest = error["ctx"]["max_length"]
        return NAME_ADVICE if error["loc"] == ("name",) else f"give a text of at most {longest:,} characters"
    return error["msg"][:1].lower() + error["msg"][1:]
