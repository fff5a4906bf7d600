"""Elision of what the texts of a list have in common, so that each shows what sets it apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from rich.cells import cell_len, set_cell_size

_WORD = re.compile(r"[^\s_/-]+[\s_/-]*|[\s_/-]+")
_CHARACTER = re.compile(r".", re.DOTALL)

Tokens = tuple[str, ...]


def elide_shared(texts: Sequence[str], width: int) -> list[str]:
    """Return each of ``texts`` in at most ``width`` terminal cells.

    A text that is too wide keeps the words at which it departs from others of the list, as far as they fit the ones nearest
    to its end first, then the words around them; an ellipsis stands for each part left out. A word that is itself too wide is
    cut within. Equal texts stay equal, and keep their end where there is no other text.
    """
    elided: dict[str, str] = {text: text for text in texts if cell_len(text) <= width}
    for pattern in (_WORD, _CHARACTER):
        if missing := [text for text in dict.fromkeys(texts) if text not in elided]:
            tokens = {text: tuple(pattern.findall(text)) for text in dict.fromkeys(texts)}
            departures = _departures(tokens.values())
            for text in missing:
                short = _shorten(tokens[text], departures[tokens[text]], width)
                if short is not None:
                    elided[text] = short
    return [
        set_cell_size(text, width) if cell_len(text) > width else text for text in (elided.get(t, "…") for t in texts)
    ]


def _departures(rows: Iterable[Tokens]) -> dict[Tokens, list[int]]:
    """Return the places at which each of ``rows`` departs from any other one, the last first."""
    ordered = sorted(set(rows))
    shared = [_shared_length(first, second) for first, second in pairwise(ordered)]
    departures = {}
    for number, row in enumerate(ordered):
        # In this order, a row shares with a further one what all between share.
        places = {*accumulate(shared[number:], min), *accumulate(reversed(shared[:number]), min)}
        departures[row] = sorted({min(place, len(row) - 1) for place in places or {len(row)}}, reverse=True)
    return departures


def _shared_length(first: Tokens, second: Tokens) -> int:
    """Return the number of tokens with which both begin."""
    return next(
        (place for place, (token, other) in enumerate(zip(first, second, strict=False)) if token != other),
        min(len(first), len(second)),
    )


def _shorten(tokens: Tokens, departures: Sequence[int], width: int) -> str | None:
    """Return ``tokens`` with ellipses; None if not even the last of the departures fits."""
    kept: set[int] = set()
    used = 1  # the ellipsis for everything

    def keep(place: int) -> bool:
        nonlocal used
        ellipses = (place > 0 and place - 1 not in kept) + (place < len(tokens) - 1 and place + 1 not in kept)
        cost = cell_len(tokens[place]) + ellipses - 1
        if fits := used + cost <= width:
            kept.add(place)
            used += cost
        return fits

    if not keep(departures[0]):
        return None
    for place in departures[1:]:
        keep(place)
    for direction in (range(departures[0] + 1, len(tokens)), range(departures[0] - 1, -1, -1)):
        for place in direction:
            if place not in kept and not keep(place):
                break
    return _joined(tokens, kept)


def _joined(tokens: Tokens, kept: set[int]) -> str:
    text = "" if 0 in kept else "…"
    for place in sorted(kept):
        text += tokens[place]
        if place < len(tokens) - 1 and place + 1 not in kept:
            text = f"{text.rstrip()}…"
    return text
