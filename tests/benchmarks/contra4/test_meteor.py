"""METEOR (exact, stem), worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.contra4.construction.meteor import align, chunks, meteor, words


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        # 6 matches in 1 chunk: 1 - 0.5 (1/6)^3.
        ("the cat sat on the mat", "the cat sat on the mat", 0.9977),
        # The alignment that crosses least has 6 chunks: 1 - 0.5.
        ("on the mat sat the cat", "the cat sat on the mat", 0.5),
        # P 6/7, R 1: 10PR / (R + 9P) = 0.98361; 2 chunks of 6 matches: 1 - 0.5 (2/6)^3.
        ("the cat was sat on the mat", "the cat sat on the mat", 0.9654),
        # Stems: dogs/dog, barking/barks. P 2/2, R 2/3: (2/3) / (0.9 + 0.1 * 2/3) = 0.68966; 1 chunk of 2: 1 - 0.5 / 8.
        ("Dogs barking", "A dog barks.", 0.6466),
        ("a red car", "two men sing", 0.0),
        ("", "a red car", 0.0),
    ],
)
def test_scores_match_manual_computation(candidate: str, reference: str, score: float) -> None:
    assert meteor(candidate, reference) == pytest.approx(score, abs=5e-5)


def test_exact_matches_precede_stem_matches() -> None:
    assert align(["dogs", "dog"], ["dog", "dogs"]) == [(0, 1), (1, 0)]
    assert align(["dogs", "dogs"], ["dog", "dogs"]) == [(0, 0), (1, 1)]
    assert chunks([(0, 0), (1, 1), (2, 4)]) == 2


@given(st.lists(st.sampled_from(["a", "dog", "dogs", "runs", "run"]), max_size=12), st.data())
def test_alignment_is_one_to_one_and_maximal(candidate: list[str], data: st.DataObject) -> None:
    reference = data.draw(st.lists(st.sampled_from(["a", "dog", "dogs", "runs", "run"]), max_size=12))
    pairs = align(candidate, reference)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    stems = {"dogs": "dog", "runs": "run"}
    left, right = ([stems.get(word, word) for word in words] for words in (candidate, reference))
    assert len(pairs) == sum(min(left.count(word), right.count(word)) for word in set(left))
    assert 0 <= meteor(" ".join(candidate), " ".join(reference)) <= 1


def test_hostile_text_is_bounded() -> None:
    assert len(words("word " * 100_000)) == 200
    assert meteor("the " * 200, "the " * 150 + "cat a " * 25) > 0
