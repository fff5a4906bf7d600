"""The altered sentence of a row's text, and the true text of rows that lack it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!\b[DMS]r)(?<!\bMrs)(?<!\bMs)(?<!\bSt)\. +(?=\S)")
"""A full stop before the next sentence, but not after an initial ("Samuel L. Jackson") or a title."""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, all but the last without the full stop, as the published code's ``split('. ')`` does."""
    return _SENTENCE_END.split(text.strip())


def altered_sentence(wrong: str, right: str) -> tuple[str, str]:
    """Return the only sentence of ``wrong`` that differs from ``right``, and its original; both empty unless exactly one does."""
    edited, true_sentences = split_sentences(wrong), split_sentences(right)
    if len(edited) == len(true_sentences):
        differing_pairs = [
            (sentence, other) for sentence, other in zip(edited, true_sentences, strict=True) if sentence != other
        ]
        if len(differing_pairs) == 1:
            return differing_pairs[0]
    return "", ""


def recover_true_text(edits: Iterable[tuple[str, str, str]]) -> str:
    """Return the text before ``edits``, each (edited text, its answer, the true answer); empty if they disagree.

    Restoring the true answer yields the text, unless the answer occurs twice or more than the answer was altered; so
    the result is the text that more than half of the edits yield.
    """
    candidates = [
        wrong_text.replace(counter, own_text)
        for wrong_text, counter, own_text in edits
        if counter and own_text and wrong_text.count(counter) == 1
    ]
    text, votes = Counter(candidates).most_common(1)[0] if candidates else ("", 0)
    return text if 2 * votes > len(candidates) else ""
