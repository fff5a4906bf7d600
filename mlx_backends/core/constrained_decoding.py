"""Forms: a model's answer held, token by token, to what its request allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from benchmarks.base import Choice, Form, Likelihood
from benchmarks.errors import ModelError
from mlx_backends.mlx.load import contained


class Constrainer:
    """Makes the logits processors of one model.

    ``tokenizer`` is the model's Hugging Face tokenizer, ``ends`` are the tokens that end its answers. Grammars come from
    llguidance. The mask is applied by plain operations of MLX, because mlx-vlm's own works on Metal alone.
    """

    def __init__(self, tokenizer: Any, ends: Collection[int]) -> None:
        self._tokenizer = tokenizer
        self._ends = sorted(ends)
        self._known: Any = None

    def processors(self, form: Form | Likelihood | None) -> list[Constraint]:
        """The logits processors for one request: a fresh one if it has a form, and where the tokenizer allows it.

        llguidance reads fast tokenizers only; an answer of another one is left free. Raises ModelError for a form that
        no answer can have.
        """
        if form is None or not hasattr(self._tokenizer, "backend_tokenizer"):
            return []
        if isinstance(form, Likelihood):
            raise ModelError("this engine does not tell how likely it finds an option; leave --score out.")
        from llguidance import LLMatcher

        ends = [token for token in self._ends if token < len(self._tokenizer)]  # a configuration may name any number
        if not ends:
            raise ModelError("this model has no token that ends an answer, so that none can be held to a form.")
        if self._known is None:  # seconds for a large vocabulary
            from llguidance.hf import from_tokenizer

            with contained():
                self._known = from_tokenizer(self._tokenizer, eos_token=ends)
        matcher = LLMatcher(self._known, _grammar(form))
        if error := matcher.get_error():
            raise ModelError(f"no answer can have the form that was asked for: {error}")
        return [Constraint(matcher, self._known.vocab_size, ends)]


class Constraint:
    """A logits processor that leaves only the tokens a grammar allows next; it serves one request.

    Called as ``(tokens so far, logits)``, once for every token. The first call is the answer's first token. A token that
    ends an answer is allowed exactly where the answer is complete, and nothing else after that.
    """

    def __init__(self, matcher: Any, vocabulary: int, ends: Collection[int]) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._ends = list(ends)
        self._begun = False

    def __call__(self, tokens: Any, logits: Any) -> Any:
        import mlx.core as mx

        allowed = self.allowed(lambda: tokens.flatten()[-1].item(), logits.shape[-1])
        return mx.where(mx.array(allowed), logits, mx.array(-float("inf"), logits.dtype))

    def allowed(self, last: Callable[[], int], width: int) -> Any:
        """Which of ``width`` logits may be chosen next, as an array of bool; ``last`` tells the token that was chosen before."""
        # Engines compute one token ahead, so that they also come here after the last one.
        if self._begun and not self._matcher.is_stopped():
            self._matcher.consume_token(last())
        self._begun = True
        return self._allowed(width)

    def _allowed(self, width: int) -> Any:
        """Which of ``width`` logits may be chosen. A model has more logits than its tokenizer has tokens, or fewer."""
        import numpy as np
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        bits = allocate_token_bitmask(1, self._vocabulary)
        fill_next_token_bitmask(self._matcher, bits)
        known = np.unpackbits(bits.view(np.uint8), bitorder="little")[: self._vocabulary].astype(bool)
        if not self._matcher.is_accepting():
            known[self._ends] = False  # where such a token is also a piece of text
        allowed = np.zeros(width, dtype=bool)
        allowed[: len(known)] = known[:width]
        if error := self._matcher.get_error():
            raise ModelError(f"the answer left the form that was asked for: {error}")
        if not allowed.any():
            raise ModelError("no token of this model goes on with the form that was asked for.")
        return allowed


def _grammar(form: Form) -> str:
    """The grammar of ``form``, without any white space that the model could choose."""
    from llguidance import LLMatcher, grammar_from

    if isinstance(form, Choice):
        if not form.words:
            raise ModelError("a choice without words was asked for.")
        return str(grammar_from("choice", json.dumps(form.words)))
    compiled = LLMatcher.grammar_from_json_schema(
        form.schema(),
        overrides={"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    )
    return str(compiled)
