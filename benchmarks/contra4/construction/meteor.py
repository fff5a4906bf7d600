"""METEOR (exact, stem): Banerjee and Lavie 2005, with the first two of its stages; the third needs WordNet.

The paper's METEOR is NLTK's with WordNet, which finds synonyms too: ours is at most as high.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from benchmarks.text.stemming import stem

LABEL = "METEOR (exact, stem)"

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
"""Weight of precision against recall, exponent and weight of the penalty: the first paper's 10PR/(R + 9P) and 0.5 (c/m)^3."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MOST_WORDS = 200
_BEAM, _OPTIONS = 16, 4

Pair = tuple[int, int]


def words(text: str) -> list[str]:
    """Return the words that are compared: in small letters, without punctuation, at most 200."""
    return _WORD.findall(text.lower())[:_MOST_WORDS]


def meteor(candidate: str, reference: str) -> float:
    """Return the score of a caption next to one reference, from 0 to 1; 0 where no word is shared.

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

    In each stage as many as can be, and of such alignments one that crosses least, as far as a narrow beam finds it.
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


@dataclass(frozen=True, slots=True)
class _State:
    """An alignment under way: how often it crosses, how many of its pairs continue the one before, and what is used."""

    crossed: int = 0
    joined: int = 0
    pairs: tuple[Pair, ...] = ()
    passed: frozenset[int] = frozenset()

    @property
    def rank(self) -> tuple[int, int, int, tuple[Pair, ...]]:
        return self.crossed, -self.joined, sum(abs(i - j) for i, j in self.pairs), self.pairs


def _stage(said: dict[int, str], meant: dict[int, str], before: Sequence[Pair]) -> list[Pair]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for j, word in meant.items():
        places[word].append(j)
    counted = Counter(said.values())
    states = [_State()]
    for i, word in said.items():
        if word not in places:
            continue
        surplus = max(0, counted[word] - len(places[word]))  # so many of this word find no partner
        grown: list[_State] = []
        for state in states:
            used = {j for _, j in state.pairs}
            after = state.pairs[-1][1] + 1 if state.pairs else 0
            free = sorted((j for j in places[word] if j not in used), key=lambda j: (abs(j - after), j))
            for j in free[:_OPTIONS]:
                crossings = sum((i - a) * (j - b) < 0 for a, b in (*before, *state.pairs))
                joins = bool(state.pairs) and state.pairs[-1] == (i - 1, j - 1)
                grown.append(
                    replace(
                        state,
                        crossed=state.crossed + crossings,
                        joined=state.joined + joins,
                        pairs=(*state.pairs, (i, j)),
                    )
                )
            if sum(said[k] == word for k in state.passed) < surplus:
                grown.append(replace(state, passed=state.passed | {i}))
        states = sorted(grown, key=lambda state: state.rank)[:_BEAM]
    return list(states[0].pairs) if states else []
