"""Log-likelihood of an instance's options, for engines that support teacher forcing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Generation, Likelihood, Request
from mlx_backends.core.probe import log_softmax

ForcedLogits = Callable[[Sequence[Sequence[int]]], Sequence[Any]]
"""Function that forces token sequences and returns the logits of each, of the shape (tokens, vocabulary)."""


@dataclass(frozen=True, slots=True)
class ScoredOptions:
    """The ``best`` option, its ``tokens``, and the scores of all options: sums of their tokens' natural logprobs."""

    best: str
    tokens: tuple[int, ...]
    scores: tuple[float, ...]

    def generation(self, request: Request, prompt_tokens: int, seconds: float, peak_memory: int | None) -> Generation:
        """Return the answer as a generation; ``completion_tokens`` is 0, since nothing was generated."""
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


def score_options(form: Likelihood, tokenizer: Any, forced_logits: ForcedLogits) -> ScoredOptions:
    """Score the options of ``form`` as the start of an answer, by their tokens; of equal scores the first wins.

    The end of the answer is not part of a score, and scores are not normalised by length. Options that share a prefix are
    forced once where one sequence covers the others: letters of one token each cost a single pass over the prompt.
    """
    import numpy as np

    words = [tuple(tokenizer.encode(word, add_special_tokens=False)) for word in form.words]
    if not words or not all(words):
        raise ModelError("an option without text cannot be scored.")
    sequences: list[tuple[int, ...]] = []
    for word in sorted(words, key=len, reverse=True):
        if not any(sequence[: len(word) - 1] == word[:-1] for sequence in sequences):
            sequences.append(word)
    logprobs = [log_softmax(np.asarray(logits, dtype=np.float64)) for logits in forced_logits(sequences)]
    scores = []
    for word in words:
        index = next(n for n, sequence in enumerate(sequences) if sequence[: len(word) - 1] == word[:-1])
        scores.append(float(sum(logprobs[index][position][token] for position, token in enumerate(word))))
    best = int(np.argmax(scores))
    return ScoredOptions(form.words[best], words[best], tuple(scores))
