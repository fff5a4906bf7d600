"""Markers of reasoning that are in no list: a chat template shows them where it writes a message's reasoning."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.text.reasoning import ends_turn, is_reasoning_marker

_MARKER = r"(<[^<>\s]{1,40}>|\[[^\[\]\s]{1,40}\]|◁[^◁▷\s]{1,40}▷)"
_BEFORE, _AFTER = re.compile(_MARKER + r"\s*\Z"), re.compile(r"\s*" + _MARKER)
_REASONING, _ANSWER = "Rashomon000001Text", "Rashomon000002Text"


class OwnMarkers(NamedTuple):
    """The markers around a model's reasoning, if no list has them; else empty."""

    opening: str = ""
    closing: str = ""

    def translated(self, text: str) -> str:
        """Return ``text`` with the tags of most models in place of these."""
        if not self.opening:
            return text
        return text.replace(self.opening, "<think>").replace(self.closing, "</think>")


def own_markers(render: Callable[[list[dict[str, Any]]], str]) -> OwnMarkers:
    """Return the markers that a chat template writes around the reasoning of an earlier turn, if they are in no list.

    ``render`` returns a conversation as text, or raises anything.
    """
    user, reply = {"role": "user", "content": "Rashomon000000Text"}, {"role": "assistant", "content": _ANSWER}
    reasoning = dict.fromkeys(("reasoning_content", "reasoning", "thinking"), _REASONING)
    try:
        plain, text = render([user, reply]), render([user, {**reply, **reasoning}])
    except Exception:  # templates can raise anything
        return OwnMarkers()
    before, _, rest = text.partition(_REASONING)
    between, answer, _ = rest.partition(_ANSWER)
    opening, closing = _BEFORE.search(before), _AFTER.match(between)
    if not answer or opening is None or closing is None:
        return OwnMarkers()
    own = OwnMarkers(opening[1], closing[1])
    is_listed = any(is_reasoning_marker(marker) or ends_turn(marker) for marker in own)
    return OwnMarkers() if is_listed or own.opening == own.closing or any(marker in plain for marker in own) else own
