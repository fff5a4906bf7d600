"""What of a model's reply is its answer."""

from __future__ import annotations

import re

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_STRAY_END = re.compile(r"\A.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def visible_answer(text: str) -> str:
    """``text`` without its ``<think>`` blocks, stripped.

    A block that never closes runs to the end, so a reply that is all reasoning comes back empty. A closing tag
    whose opening one stood in the prompt (as some chat templates do) ends reasoning that began at the start.
    """
    without = _THINK.sub("", text)
    return _STRAY_END.sub("", without).strip()
