"""What a model replies in a construction, read strictly: a JSON object, perhaps in a fence, of short one-line texts."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.text.answer_text import visible_answer
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

LONGEST_REPLY = 20_000
LONGEST = 300
"""Characters that a short line may have: a caption, or anything that a model writes for one."""

_SPACES = frozenset(" \t")
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```\Z", re.DOTALL | re.IGNORECASE)


class UnreadableReply(ValueError):
    """A reply that is not what was asked for; the message says what is amiss."""


def read_object(reply: str) -> dict[str, Any]:
    """The JSON object that a reply consists of. Raises Unreadable."""
    text = visible_answer(reply)
    if len(text) > LONGEST_REPLY:
        raise UnreadableReply(f"it is longer than {LONGEST_REPLY} characters")
    fenced = _FENCE.match(text)
    try:
        value = parse_json(fenced[1] if fenced else text)
    except OutsideJSONError as error:
        raise UnreadableReply("it is not a JSON object") from error
    if not isinstance(value, dict):
        raise UnreadableReply("it is not a JSON object")
    return value


def field(value: dict[str, Any], *path: str) -> str:
    """A field's text, which is one line and not long. Raises Unreadable."""
    found: Any = value
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    text = short_line(found)
    if text is None:
        raise UnreadableReply(f"the field {'.'.join(path)} is missing or is not one short line of text")
    return text


def short_line(value: Any) -> str | None:
    """``value`` stripped, if that is a text of one printable line and of 1 to ``LONGEST`` characters; else None."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text or len(text) > LONGEST:
        return None
    return " ".join(text.split()) if all(c.isprintable() or c in _SPACES for c in text) else None
