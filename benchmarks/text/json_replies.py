"""Strict parser of a construction model's replies: a JSON object of short lines of text, optionally in a code fence."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.text.answer_text import visible_answer
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

LONGEST_REPLY = 20_000
LONGEST_LINE = 300
"""The maximum number of characters of a short line, such as a caption or text that a model wrote in place of one."""

_SPACES = frozenset(" \t")
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```\Z", re.DOTALL | re.IGNORECASE)


class UnreadableReply(ValueError):
    """A reply that is not of the requested form; the message says why."""


def read_object(reply: str) -> dict[str, Any]:
    """Return the JSON object that a reply consists of. Raises UnreadableReply."""
    text = visible_answer(reply)
    if len(text) > LONGEST_REPLY:
        raise UnreadableReply(f"it is longer than {LONGEST_REPLY} characters")
    fence = _FENCE.match(text)
    try:
        value = parse_json(fence[1] if fence else text)
    except OutsideJSONError as error:
        raise UnreadableReply("it is not a JSON object") from error
    if not isinstance(value, dict):
        raise UnreadableReply("it is not a JSON object")
    return value


def line_field(value: dict[str, Any], *path: str) -> str:
    """Return the text of the field at ``path``, which must be one short line. Raises UnreadableReply."""
    item: Any = value
    for name in path:
        item = item.get(name) if isinstance(item, dict) else None
    text = short_line(item)
    if text is None:
        raise UnreadableReply(f"the field {'.'.join(path)} is missing or is not one short line of text")
    return text


def short_line(value: Any) -> str | None:
    """Return ``value`` stripped, if it is a printable line of 1 to ``LONGEST_LINE`` characters; else None."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text or len(text) > LONGEST_LINE:
        return None
    return " ".join(text.split()) if all(c.isprintable() or c in _SPACES for c in text) else None
