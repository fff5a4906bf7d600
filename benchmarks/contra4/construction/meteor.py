"""METEOR: Banerjee and Lavie 2005, with its stages exact and stem, and its third, synonyms, where WordNet is given.

The paper's METEOR is NLTK's with WordNet; without synonyms, ours is at most as high.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from benchmarks.contra4.construction.wordnet import Synonyms
from benchmarks.text.stemming import stem

LABEL = "METEOR (exact, stem)"
LABEL_WITH_SYNONYMS = "METEOR (exact, stem, synonym)"

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
"""Weight of precision against recall, exponent and weight of the penalty: the first paper's 10PR/(R + 9P) and 0.5 (c/m)^3."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MOST_WORDS = 200
_BEAM, _OPTIONS = 16, 4

Pair = tuple[int, int]


def words(text: str) -> list[str]:
    """Return the words to compare: in lower case, without punctuation, at most 200."""
    return _WORD.findall(text.lower())[:_MOST_WORDS]


def meteor(candidate: str, reference: str, synonyms: Synonyms | None = None) -> float:
    """Return the score of a caption against one reference, from 0 to 1; 0 if no word is shared.

    With m matched words, P = m / words of the candidate, R = m / words of the reference and c chunks (runs of matches that
    are adjacent in both): ``PR / (ALPHA P + (1 - ALPHA) R) * (1 - GAMMA (c / m)^BETA)``.
    """
    candidate_words, reference_words = words(candidate), words(reference)
    pairs = align(candidate_words, reference_words, synonyms)
    if not pairs:
        return 0.0
    matched = len(pairs)
    precision, recall = matched / len(candidate_words), matched / len(reference_words)
    mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
    return float(mean * (1 - GAMMA * (chunks(pairs) / matched) ** BETA))


def align(candidate: Sequence[str], reference: Sequence[str], synonyms: Synonyms | None = None) -> list[Pair]:
    """Return the pairs of matching words in the candidate's order.

    First equal words are matched, then of the others those of one stem, then synonyms. The first two stages match as many
    words as possible, with the fewest crossings that a narrow beam search finds. For synonyms, each word takes the
    nearest one that is left, as in NLTK the choice is greedy.
    """
    pairs: list[Pair] = []
    stages: tuple[Callable[[str], str], ...] = (str, stem)
    for stage in stages:
        used_candidates, used_references = {i for i, _ in pairs}, {j for _, j in pairs}
        pairs += _stage(
            {i: stage(word) for i, word in enumerate(candidate) if i not in used_candidates},
            {j: stage(word) for j, word in enumerate(reference) if j not in used_references},
            pairs,
        )
    return sorted(pairs + _synonym_pairs(candidate, reference, pairs, synonyms) if synonyms else pairs)


def _synonym_pairs(
    candidate: Sequence[str], reference: Sequence[str], before: Sequence[Pair], synonyms: Synonyms
) -> list[Pair]:
    used_candidates, used_references = {i for i, _ in before}, {j for _, j in before}
    pairs: list[Pair] = []
    for i, word in enumerate(candidate):
        if i in used_candidates:
            continue
        others = synonyms(word)
        unused = (j for j, other in enumerate(reference) if j not in used_references and other in others)
        nearest = min(unused, key=lambda j: (abs(i - j), j), default=None)
        if nearest is not None:
            used_references.add(nearest)
            pairs.append((i, nearest))
    return pairs


def chunks(pairs: Sequence[Pair]) -> int:
    """Return the number of runs of adjacent matches in an alignment in the order of the candidate."""
    starts = sum((i - 1, j - 1) != before for before, (i, j) in pairwise(pairs))
    return starts + 1 if pairs else 0


@dataclass(frozen=True, slots=True)
class _State:
    """A partial alignment: its number of crossings, its pairs that continue the previous one, and the words without a pair."""

    crossed: int = 0
    joined: int = 0
    pairs: tuple[Pair, ...] = ()
    passed: frozenset[int] = frozenset()

    @property
    def rank(self) -> tuple[int, int, int, tuple[Pair, ...]]:
        return self.crossed, -self.joined, sum(abs(i - j) for i, j in self.pairs), self.pairs


def _stage(candidate: dict[int, str], reference: dict[int, str], before: Sequence[Pair]) -> list[Pair]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for j, word in reference.items():
        places[word].append(j)
    counts = Counter(candidate.values())
    states = [_State()]
    for i, word in candidate.items():
        if word not in places:
            continue
        surplus = max(0, counts[word] - len(places[word]))  # occurrences of this word without a partner
        extended: list[_State] = []
        for state in states:
            used_indexes = {j for _, j in state.pairs}
            after = state.pairs[-1][1] + 1 if state.pairs else 0
            unused = sorted((j for j in places[word] if j not in used_indexes), key=lambda j: (abs(j - after), j))
            for j in unused[:_OPTIONS]:
                crossings = sum((i - a) * (j - b) < 0 for a, b in (*before, *state.pairs))
                joins = bool(state.pairs) and state.pairs[-1] == (i - 1, j - 1)
                extended.append(
                    replace(
                        state,
                        crossed=state.crossed + crossings,
                        joined=state.joined + joins,
                        pairs=(*state.pairs, (i, j)),
                    )
                )
            if sum(candidate[k] == word for k in state.passed) < surplus:
                extended.append(replace(state, passed=state.passed | {i}))
        states = sorted(extended, key=lambda state: state.rank)[:_BEAM]
    return list(states[0].pairs) if states else []
