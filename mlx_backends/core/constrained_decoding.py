"""Constrained decoding: answers restricted, token by token, to the form that a request asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.vocabulary import AnyForm, Candidates, Choice, Form, Likelihood, Stated
from mlx_backends.core.library_isolation import contained


class Constrainer:
    """Factory of the logits processors of one model.

    ``tokenizer`` is the model's Hugging Face tokenizer, ``ends`` are the tokens that end its answers. Grammars come from
    llguidance. The mask is applied by plain operations of MLX, because mlx-vlm's own works on Metal alone.
    """

    def __init__(self, tokenizer: Any, ends: Collection[int]) -> None:
        self._tokenizer = tokenizer
        self._ends = sorted(ends)
        self._llg_tokenizer: Any = None

    def processors(self, form: AnyForm | None) -> list[Constraint]:
        """Return the logits processors for one request: a new one if it has a form and the tokenizer allows it.

        llguidance reads fast tokenizers only; with another one the answer is unconstrained. Raises ModelError for a form that no
        answer can have.
        """
        if form is None or not hasattr(self._tokenizer, "backend_tokenizer"):
            return []
        assert not isinstance(form, Stated), "no model is called for an answer that is stated"
        if isinstance(form, Likelihood | Candidates):
            raise ModelError("this engine reports no likelihoods; leave --score out.")
        from llguidance import LLMatcher

        ends = [token for token in self._ends if token < len(self._tokenizer)]  # a configuration may name any number
        if not ends:
            raise ModelError(
                "this model has no token that ends an answer, so its answers cannot be constrained to a form."
            )
        if self._llg_tokenizer is None:  # seconds for a large vocabulary
            from llguidance.hf import from_tokenizer

            with contained():
                self._llg_tokenizer = from_tokenizer(self._tokenizer, eos_token=ends)
        matcher = LLMatcher(self._llg_tokenizer, _grammar(form))
        if error := matcher.get_error():
            raise ModelError(f"no answer can have the requested form: {error}")
        return [Constraint(matcher, self._llg_tokenizer.vocab_size, ends)]


class Constraint:
    """Logits processor that leaves only the tokens a grammar allows next; it serves one request.

    Called as ``(tokens so far, logits)``, once for every token. The first call is the answer's first token. A token that
    ends an answer is allowed exactly where the answer is complete, and nothing else after that.
    """

    def __init__(self, matcher: Any, vocabulary: int, ends: Collection[int]) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._ends = list(ends)
        self._started = False

    def __call__(self, tokens: Any, logits: Any) -> Any:
        import mlx.core as mx

        allowed = self.allowed(lambda: tokens.flatten()[-1].item(), logits.shape[-1])
        return mx.where(mx.array(allowed), logits, mx.array(-float("inf"), logits.dtype))

    def allowed(self, last: Callable[[], int], width: int) -> Any:
        """Return which of ``width`` logits may be chosen next, as an array of bool; ``last`` returns the previous token."""
        # Engines compute one token ahead, so they also call this after the last one.
        if self._started and not self._matcher.is_stopped():
            self._matcher.consume_token(last())
        self._started = True
        return self._allowed(width)

    def _allowed(self, width: int) -> Any:
        """Return which of ``width`` logits may be chosen; a model can have more or fewer logits than its tokenizer has tokens."""
        import numpy as np
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        bits = allocate_token_bitmask(1, self._vocabulary)
        fill_next_token_bitmask(self._matcher, bits)
        permitted = np.unpackbits(bits.view(np.uint8), bitorder="little")[: self._vocabulary].astype(bool)
        if not self._matcher.is_accepting():
            permitted[self._ends] = False  # where such a token is also a piece of text
        allowed = np.zeros(width, dtype=bool)
        allowed[: len(permitted)] = permitted[:width]
        if error := self._matcher.get_error():
            raise ModelError(f"the answer left the requested form: {error}")
        if not allowed.any():
            raise ModelError("no token of this model continues the requested form.")
        return allowed


def _grammar(form: Form) -> str:
    """Return the grammar of ``form``, without any white space that the model could choose."""
    from llguidance import grammar_from

    if isinstance(form, Choice):
        if not form.words:
            raise ModelError("a choice needs at least one option, and this one has none.")
        text = json.dumps(form.words)
        grammar = str(grammar_from("choice", text))
    else:
        text = json.dumps({**form.schema(), "x-guidance": _NO_SPACE})
        grammar = f"start: %json {text}"
    # Text that is forced is split into tokens as a prompt is, where SentencePiece reads this character as a space.
    return f'%llguidance {{"no_forcing": true}}\n{grammar}' if _WORD_MARK in text else grammar


_NO_SPACE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_WORD_MARK = json.dumps("\u2581").strip('"')
"""The character that SentencePiece writes for a space, as JSON; as text it is spelled in bytes."""
