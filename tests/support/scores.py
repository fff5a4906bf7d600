"""Scores of answers, none of which is missing."""

from __future__ import annotations

from benchmarks.vocabulary import Generation


def scores_of(generation: Generation) -> list[float]:
    """Return the scores of an answer."""
    scores = [score for score in generation.scores if score is not None]
    assert len(scores) == len(generation.scores)
    return scores
