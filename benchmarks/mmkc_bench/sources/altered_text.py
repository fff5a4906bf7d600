"""The texts of a row as sentences: which one was altered, and what the true text was where a row does not have it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!\b[DMS]r)(?<!\bMrs)(?<!\bMs)(?<!\bSt)\. +(?=\S)")
"""A full stop before the next sentence; not one after an initial ("Samuel L. Jackson") or a title."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, each but the last without its full stop, as the published code's ``split('. ')`` leaves them."""
    return _SENTENCE_END.split(text.strip())


def altered(wrong: str, right: str) -> tuple[str, str]:
    """The one sentence of ``wrong`` that ``right`` has otherwise, and that of ``right``; both empty where it is not just one."""
    shown, true = sentences(wrong), sentences(right)
    if len(shown) == len(true):
        differ = [(one, other) for one, other in zip(shown, true, strict=True) if one != other]
        if len(differ) == 1:
            return differ[0]
    return "", ""


def true_text(edits: Iterable[tuple[str, str, str]]) -> str:
    """The text that ``edits`` were made of: (edited text, the answer it gives, the true answer); empty where they disagree.

    Putting the true answer back gives it, unless the answer stands in the text twice or was not all that was altered; so it
    is what more than half of the edits give.
    """
    found = [
        wrong.replace(counter, own) for wrong, counter, own in edits if counter and own and wrong.count(counter) == 1
    ]
    text, votes = Counter(found).most_common(1)[0] if found else ("", 0)
    return text if 2 * votes > len(found) else ""
