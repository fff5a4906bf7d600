"""The likeliest of an instance's options: what they score, for an engine that can be led through tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.base import Generation, Likelihood, Request
from benchmarks.errors import ModelError
from mlx_backends.core.probe import log_softmax

Led = Callable[[Sequence[Sequence[int]]], Sequence[Any]]
"""The logits, each of the shape (tokens, vocabulary), that a model has when it is led through each of some token sequences."""


@dataclass(frozen=True, slots=True)
class ScoredOptions:
    """The ``best`` of the words, the ``tokens`` of it, and all their scores: sums of natural logprobs of their tokens."""

    best: str
    tokens: tuple[int, ...]
    scores: tuple[float, ...]

    def generation(self, request: Request, prompt_tokens: int, seconds: float, peak_memory: int | None) -> Generation:
        """The answer; ``completion_tokens`` is 0, since nothing was generated."""
        return Generation(
            request.id,
            self.best,
            "stop",
            tokens=self.tokens,
            prompt_tokens=prompt_tokens,
            completion_tokens=0,
            prefill_s=seconds,
            decode_s=0.0,
            peak_memory=peak_memory,
            scores=self.scores,
        )


def score(form: Likelihood, tokenizer: Any, led: Led) -> ScoredOptions:
    """Score the words of ``form`` as the beginning of an answer, by their tokens; of equal scores the first wins.

    The end of the answer is not part of a score, nor is the words' length taken out. Words that begin alike are computed
    together as far as one sequence tells of the other: letters of one token each cost a single reading of the prompt.
    """
    import numpy as np

    words = [tuple(tokenizer.encode(word, add_special_tokens=False)) for word in form.words]
    if not words or not all(words):
        raise ModelError("an option without any text cannot be scored.")
    sequences: list[tuple[int, ...]] = []
    for word in sorted(words, key=len, reverse=True):
        if not any(longer[: len(word) - 1] == word[:-1] for longer in sequences):
            sequences.append(word)
    found = [log_softmax(np.asarray(logits, dtype=np.float64)) for logits in led(sequences)]
    scores = []
    for word in words:
        place = next(n for n, longer in enumerate(sequences) if longer[: len(word) - 1] == word[:-1])
        scores.append(float(sum(found[place][at][token] for at, token in enumerate(word))))
    best = int(np.argmax(scores))
    return ScoredOptions(form.words[best], words[best], tuple(scores))
