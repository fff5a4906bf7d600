"""METEOR (exact, stem): Banerjee and Lavie 2005, with the first two of its stages; the third needs WordNet.

The paper's METEOR is NLTK's with WordNet, which finds synonyms too: ours is at most as high.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

from benchmarks.porter import stem

LABEL = "METEOR (exact, stem)"

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
"""Weight of precision against recall, exponent and weight of the penalty: the first paper's 10PR/(R + 9P) and 0.5 (c/m)^3."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MOST_WORDS = 400
_BEAM = 40

Pair = tuple[int, int]


def words(text: str) -> list[str]:
    """The words that are compared: in small letters, without punctuation, at most 400."""
    return _WORD.findall(text.lower())[:_MOST_WORDS]


def meteor(candidate: str, reference: str) -> float:
    """The score of a caption beside one reference, from 0 to 1; 0 where no word is shared.

    With m matched words, P = m / words of the candidate, R = m / words of the reference and c chunks (runs of matches that
    are adjacent in both): ``PR / (ALPHA P + (1 - ALPHA) R) * (1 - GAMMA (c / m)^BETA)``.
    """
    said, meant = words(candidate), words(reference)
    pairs = align(said, meant)
    if not pairs:
        return 0.0
    matched = len(pairs)
    precision, recall = matched / len(said), matched / len(meant)
    mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
    return float(mean * (1 - GAMMA * (chunks(pairs) / matched) ** BETA))


def align(said: Sequence[str], meant: Sequence[str]) -> list[Pair]:
    """Which words match: first equal ones, then of those left the ones of one stem; in the order of ``said``.

    In each stage as many as can be, and of such alignments one that crosses least, as far as a beam of 40 finds it.
    """
    pairs: list[Pair] = []
    stages: tuple[Callable[[str], str], ...] = (str, stem)
    for stage in stages:
        taken, used = {i for i, _ in pairs}, {j for _, j in pairs}
        pairs += _stage(
            {i: stage(word) for i, word in enumerate(said) if i not in taken},
            {j: stage(word) for j, word in enumerate(meant) if j not in used},
            pairs,
        )
    return sorted(pairs)


def chunks(pairs: Sequence[Pair]) -> int:
    """Into how few runs an alignment in the order of the candidate falls."""
    starts = sum((i - 1, j - 1) != before for before, (i, j) in pairwise(pairs))
    return starts + 1 if pairs else 0


def _stage(said: dict[int, str], meant: dict[int, str], before: Sequence[Pair]) -> list[Pair]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for j, word in meant.items():
        places[word].append(j)
    left: defaultdict[str, int] = defaultdict(int)
    for word in said.values():
        left[word] += 1
    # Of each state the crossings so far, the pairs, and how many of each word's surplus were passed over.
    states: list[tuple[int, tuple[Pair, ...], frozenset[int], dict[str, int]]] = [(0, (), frozenset(), {})]
    for i, word in said.items():
        if word not in places:
            continue
        surplus = max(0, left[word] - len(places[word]))
        grown = []
        for crossed, pairs, used, passed in states:
            for j in places[word]:
                if j not in used:
                    crossings = sum((i - a) * (j - b) < 0 for a, b in (*before, *pairs))
                    grown.append((crossed + crossings, (*pairs, (i, j)), used | {j}, passed))
            if passed.get(word, 0) < surplus:
                grown.append((crossed, pairs, used, {**passed, word: passed.get(word, 0) + 1}))
        states = sorted(grown, key=lambda state: (state[0], chunks(sorted((*before, *state[1]))), state[1]))[:_BEAM]
    return list(states[0][1]) if states else []
