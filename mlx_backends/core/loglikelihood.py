"""Log-likelihood of a question's options, or of candidates beside an open answer, for engines that support teacher forcing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Candidates, Generation, Likelihood, Request
from mlx_backends.core.engine_probe import log_softmax
from mlx_backends.core.logits_recorders import ForcedAnswer

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


class ForcedWords:
    """Words as sequences of tokens to force: words that share a prefix are forced once where one sequence covers the others.

    Letters of one token each cost a single pass over the prompt.
    """

    def __init__(self, words: Sequence[str], tokenizer: Any) -> None:
        self.words = [tuple(tokenizer.encode(word, add_special_tokens=False)) if word else () for word in words]
        self.sequences: list[tuple[int, ...]] = []
        for word in sorted(filter(None, self.words), key=len, reverse=True):
            if not any(sequence[: len(word) - 1] == word[:-1] for sequence in self.sequences):
                self.sequences.append(word)

    def scores(self, logits: Sequence[Any]) -> tuple[float | None, ...]:
        """Return the sum of each word's logprobs from the logits of each sequence; None for a word without tokens."""
        import numpy as np

        logprobs = [log_softmax(np.asarray(rows, dtype=np.float64)) for rows in logits]

        def score(word: tuple[int, ...]) -> float | None:
            if not word:
                return None
            index = next(n for n, sequence in enumerate(self.sequences) if sequence[: len(word) - 1] == word[:-1])
            return float(sum(logprobs[index][position][token] for position, token in enumerate(word)))

        return tuple(map(score, self.words))


def score_options(form: Likelihood, tokenizer: Any, forced_logits: ForcedLogits) -> ScoredOptions:
    """Score the options of ``form`` as the start of an answer, by their tokens; of equal scores the first wins.

    The end of the answer is not part of a score, and scores are not normalised by length.
    """
    forced = ForcedWords(form.words, tokenizer)
    if not forced.words or not all(forced.words):
        raise ModelError("an option without text cannot be scored.")
    scores = [score for score in forced.scores(forced_logits(forced.sequences)) if score is not None]
    best = scores.index(max(scores))
    return ScoredOptions(form.words[best], forced.words[best], tuple(scores))


class AnswerLogprob:
    """Sum of the logprobs of a generated answer's tokens.

    It is a logits processor that changes nothing. Engines compute a token ahead, so it may be called once after the last one.
    """

    def __init__(self) -> None:
        self._logits: Any = None
        self._logprobs: list[float] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        import mlx.core as mx
        import numpy as np

        if self._logits is not None:
            self.add(int(tokens.flatten()[-1].item()))
        self._logits = np.array(logits.astype(mx.float32)).flatten()
        return logits

    def see(self, logits: Any) -> None:
        """Take the logits, an array of NumPy, that the next token is chosen from."""
        self._logits = logits

    def add(self, token: int) -> None:
        """Add the token that was chosen from the last logits."""
        self._logprobs.append(_logprob(self._logits, token))

    def total(self, tokens: Sequence[int]) -> float | None:
        """Return the sum over ``tokens``, the first of the answer; None without any."""
        if len(self._logprobs) < len(tokens):  # the engine did not compute ahead
            self.add(tokens[len(self._logprobs)])
        return sum(self._logprobs[: len(tokens)]) if tokens else None


class CandidateScoring:
    """Scoring of one request: its answer is observed, then its candidates are forced as continuations of its prompt.

    Attributes:
        answer: The logits processor of the row that generates the answer.
        sequences: The tokens to force once the answer is known, the longest first.
        forced: The logits processors of the rows that are forced through them.
    """

    def __init__(self, form: Candidates, tokenizer: Any) -> None:
        self._form = form
        self._tokenizer = tokenizer
        self._words = ForcedWords((), tokenizer)
        self.answer = AnswerLogprob()
        self.sequences: Sequence[Sequence[int]] = ()
        self.forced: list[ForcedAnswer] = []

    def start(self, answer: str) -> None:
        """Choose the sequences to force for an answer's text."""
        values, before = self._form.values, words_before(self._form.values, answer)
        known = [self._tokenizer.encode(value, add_special_tokens=False) if value else () for value in values]
        candidates = [before + value if tokens else "" for value, tokens in zip(values, known, strict=True)]
        self._words = ForcedWords([*candidates, self._form.abstention], self._tokenizer)
        self.sequences = self._words.sequences
        self.forced = [ForcedAnswer(sequence) for sequence in self.sequences]

    def scores(self, answer: Sequence[int], logits: Sequence[Any] | None = None) -> tuple[float | None, ...]:
        """Return the scores of the candidates and of the tokens of the ``answer``, without the one that ended it.

        ``logits`` are those of ``sequences``, if ``forced`` has not recorded them.
        """
        import numpy as np

        rows = [np.stack(forced.logits) for forced in self.forced] if logits is None else logits
        return (*self._words.scores(rows), self.answer.total(answer))


def words_before(values: Sequence[str], answer: str) -> str:
    """Return the part of an answer before the value that it states first; empty if it states none."""
    places = [
        match.start()
        for value in values
        if value.strip()
        for match in [re.search(rf"(?<!\w){re.escape(value.strip())}(?!\w)", answer, re.IGNORECASE)]
        if match is not None
    ]
    return answer[: min(places)] if places else ""


def _logprob(logits: Any, token: int) -> float:
    import numpy as np

    shifted = np.asarray(logits, dtype=np.float64)
    shifted = shifted - shifted.max()
    return float(shifted[token] - np.log(np.exp(shifted).sum()))
